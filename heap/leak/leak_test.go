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
	for _, none := range []Series{{}, heap(Boot{}), heap(form(2, line))} { // nothing bounds the rate
		j := Judge(none)
		text, err := json.Marshal(j)
		var back Judgement
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || !math.IsInf(back.High, 1) || back.Why != j.Why {
			t.Errorf("%s %v %+v", text, err, back)
		}
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

// What a boot did while the memory was full is not judged: an exhausted heap leaks, and is full.
func TestFull(t *testing.T) {
	fills := form(300, func(i int) float64 { return math.Min(60000, 40000+200*float64(i)) })
	s := heap(fills)
	if j := Judge(s); j.Full != nil {
		t.Errorf("full since %v, of a series that does not say when it is full", j.Full)
	}
	s.Full = 60000
	j := Judge(s)
	if !j.Sure() || math.Abs(j.Rate/200-1) > 0.05 || j.Full == nil || math.Abs(j.Full.At-101) > 3 {
		t.Errorf("%+v", j)
	}
	for part, full := range map[float64]bool{62: false, 66: true} { // the 20,000 that it took, and a part of them that is free
		s.Full = 60000 + 20000/(part-1)
		if j := Judge(s); (j.Full != nil) != full {
			t.Errorf("1/%v is free: full since %v", part, j.Full)
		}
	}
	s.Full = 70000 // a cache that leaves a third free
	if j := Judge(s); j.Full != nil || j.Verdict != None {
		t.Errorf("%+v", j)
	}
	s.Boots = append(s.Boots, form(60, line)) // after a reboot it is not full
	s.Full = 60000
	if j := Judge(s); j.Full != nil {
		t.Errorf("full since %v, of the boot before", j.Full)
	}
}

// Memory that is only freed has no leak above the least change.
func TestGivenBack(t *testing.T) {
	for n := 5; n < 400; n = n * 3 / 2 {
		j := Judge(heap(form(n, func(i int) float64 { return 60000 - 100*float64(i) })))
		if j.Verdict != None || j.Bound > 8.4/float64(n-1) {
			t.Errorf("%d points: %v, bound %v", n, j.Verdict, j.Bound)
		}
	}
}

// Kept may be shorter than At, or have parts that are none.
func TestKeptShort(t *testing.T) {
	var paths []Series
	for i := range 12 {
		b := form(40, func(k int) float64 { return 1000 * float64(i+1) * (1 + float64(k)/40) })
		b.Kept = []float64{1, 0.5, 0, math.NaN(), 0.9}[:i%6]
		paths = append(paths, Series{Boots: []Boot{b}})
	}
	for _, j := range JudgeAll(slices.Values(paths)) {
		if math.IsNaN(j.Rate) || math.IsNaN(j.Probability) {
			t.Errorf("%+v", j)
		}
	}
	JudgeAll(slices.Values([]Series{{Boots: []Boot{{At: []float64{1, 2, 3}, Value: []float64{1}}}}}))
}

// The rate of a leak beside a load is its own.
func TestBesideLoad(t *testing.T) {
	var paths []Series
	for i := range 12 {
		own := 0.0
		if i == 0 {
			own = 250
		}
		paths = append(paths, Series{Quantum: 8, Boots: []Boot{form(96, func(k int) float64 {
			return 10000*(1+float64(k)/96) + own*float64(k) + 100*math.Abs(math.Sin(float64(k*(i+3))))
		})}})
	}
	list := JudgeAll(slices.Values(paths))
	if j := list[0]; j.Verdict != Leak || j.Low > 250 || j.High < 250 || math.Abs(j.Rate/250-1) > 0.1 {
		t.Errorf("%+v, want 250", j)
	}
	for i, j := range list[1:] {
		if j.Verdict == Leak {
			t.Errorf("path %d follows the load: %+v", i+1, j)
		}
	}
}

// Of many boots, the last are judged. The begin is found among all.
func TestManyBoots(t *testing.T) {
	var s Series
	s.Kind = Heap
	for range 3000 {
		s.Boots = append(s.Boots, form(8, line))
	}
	if j := Judge(s); !j.Sure() || j.Boots != 512 || j.Since.Boot != 0 || math.Abs(j.Rate/50-1) > 0.01 {
		t.Errorf("%+v", j)
	}
}

// The more call paths of a log grow, the less likely each leaks.
func TestRivals(t *testing.T) {
	last := 1.0
	for _, n := range []int{10, 30, 100} {
		var paths []Series
		for i := range n {
			paths = append(paths, Series{Quantum: 64, Boots: []Boot{form(12, func(k int) float64 { return 64 * math.Floor(float64(k)*float64(i+3)/float64(i+2)) })}})
		}
		j := JudgeAll(slices.Values(paths))[0]
		if j.Probability >= last {
			t.Errorf("%d paths: %v, of fewer %v", n, j.Probability, last)
		}
		last = j.Probability
	}
}
