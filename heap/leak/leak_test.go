package leak_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/lwsbt/lwsbt/heap/leak"
)

// form is a boot of n points, an hour apart, of bytes in use.
func form(n int, f func(i int) float64) (b Boot) {
	for i := range n {
		b.At, b.Value = append(b.At, float64(i+1)), append(b.Value, f(i))
	}
	return b
}

func line(i int) float64 { return 40000 + 50*float64(i) }

func heap(boots ...Boot) Series { return Series{Boots: boots, Kind: Heap, Per: "hour"} }

func Example() {
	b := Boot{}
	for hour := range 48 {
		b.At, b.Value = append(b.At, float64(hour)), append(b.Value, 40000+50*float64(hour))
	}
	j := Judge(Series{Boots: []Boot{b}, Kind: Heap, Per: "hour"})
	fmt.Printf("%v, %.0f bytes per %s\n", j.Verdict, j.Rate, j.Per)
	// Output: leak, 50 bytes per hour
}

// No input panics, or gives numbers that are none.
func TestAnyInput(t *testing.T) {
	for seed := range uint64(20000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var boots []Boot
		for range rng.IntN(6) {
			b := Boot{Version: string(rune('a' + rng.IntN(2)))}
			at, v := 0.0, 0.0
			kind := rng.IntN(9)
			for range rng.IntN(1 << rng.IntN(9)) {
				at += rng.Float64() + 1e-6
				switch kind {
				case 0:
					v += rng.NormFloat64() * 100
				case 1:
					v = float64(rng.IntN(3))
				case 2:
					v -= 10
				case 3:
					v += float64(rng.IntN(2)) * 1e12
				case 4:
					if rng.IntN(20) == 0 {
						v = rng.Float64() * 1e6
					}
				case 5:
					v = []float64{math.NaN(), math.Inf(1), 5, 7}[rng.IntN(4)]
				case 6:
					at += []float64{math.NaN(), math.Inf(-1), -3}[rng.IntN(3)]
				case 7:
					b.Kept = append(b.Kept, rng.Float64()*1.2-0.1)
				}
				b.At, b.Value = append(b.At, at), append(b.Value, v)
			}
			boots = append(boots, b)
		}
		j := Judge(Series{Boots: boots, Kind: Kind(seed % 2)})
		for _, x := range []float64{j.Probability, j.Weight, j.Rate, j.Gain, j.Since.At, j.Bound} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("seed %d: %+v", seed, j)
			}
		}
		if !(j.Low <= j.High) || j.Since.Boot >= max(1, len(boots)) || (j.Verdict == Leak) != (j.Probability >= 0.5) || (j.Verdict == Unknown) != (j.Why != "") {
			t.Fatalf("seed %d: %+v", seed, j)
		}
	}
}

func TestDeadline(t *testing.T) {
	h := Judge(heap(form(60, func(i int) float64 { return 1280 * float64(i) })))
	path := Judge(Series{Boots: []Boot{form(60, func(i int) float64 { return 620 * float64(i) })}, Quantum: 31})
	for _, c := range []struct {
		name  string
		heap  Judgement
		paths []Judgement
		want  float64
	}{
		{"the heap itself, of which blocks of 31 bytes take 64", h, []Judgement{path}, 19.25},
		{"two paths lose more than the heap did", h, []Judgement{path, path, path}, 24640.0 / 1860},
		{"no report of the heap", Judgement{}, []Judgement{path}, 24640.0 / 620},
		{"nothing leaks", Judgement{}, nil, math.Inf(1)},
	} {
		if d, ok := Exhausted(24640, 1, c.heap, c.paths); ok == math.IsInf(c.want, 1) || ok && math.Abs(d.In/c.want-1) > 0.01 || d.From > d.In || d.To < d.In {
			t.Errorf("%s: %+v, want %v", c.name, d, c.want)
		}
	}
	if d, _ := Exhausted(24640, 2, Judgement{}, []Judgement{path}); math.Abs(d.In*1240/24640-1) > 0.01 {
		t.Errorf("the allocator takes two bytes for one: %+v", d)
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(Judge(heap(form(60, line))))
	var j Judgement
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil || j.Verdict != Leak || j.Per != "hour" || j.Until != nil {
		t.Errorf("%s %v %+v", text, err, j)
	}
}

func BenchmarkPaths(b *testing.B) { // 300 call paths of 200 dumps
	rng := rand.New(rand.NewPCG(1, 1))
	var paths []Series
	for p := range 300 {
		paths = append(paths, Series{Boots: []Boot{form(200, func(i int) float64 { return 64 * (20 + math.Floor(float64(p%7)*float64(i)/20+10*rng.Float64())) })}, Quantum: 64})
	}
	b.ReportAllocs()
	for b.Loop() {
		JudgeAll(slices.Values(paths))
	}
}

func BenchmarkDevice(b *testing.B) { // 50 points
	rng := rand.New(rand.NewPCG(1, 1))
	s := Series{Boots: []Boot{form(50, func(i int) float64 { return 64 * (20 + float64(i)/3 + 10*rng.Float64()) })}, Quantum: 64}
	b.ReportAllocs()
	for b.Loop() {
		Judge(s)
	}
}
