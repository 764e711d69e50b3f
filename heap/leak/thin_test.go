package leak_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	. "github.com/lwsbt/lwsbt/heap/leak"
)

// process draws a growth: a leak or none, with a start-up, noise, a cycle, teeth and spikes. value returns the
// memory in use at an hour.
func process(t *rapid.T) (rate float64, value func(i int) float64) {
	rate = rapid.SampledFrom([]float64{0, 20, 50, 200}).Draw(t, "rate")
	start := rapid.Float64Range(0, 30000).Draw(t, "start-up")
	tau := rapid.Float64Range(0.5, 12).Draw(t, "time of the start-up")
	noise := rapid.Float64Range(0, 2000).Draw(t, "noise")
	cycle := rapid.SampledFrom([]float64{0, 0, 500, 2000}).Draw(t, "cycle")
	tooth := rapid.SampledFrom([]int{0, 0, 7, 12}).Draw(t, "teeth")
	seed := rapid.Float64Range(0, 1000).Draw(t, "seed")
	return rate, func(i int) float64 {
		x := float64(i)
		_, random := math.Modf(math.Abs(math.Sin(x*12.9898+seed)) * 43758.5453)
		v := 40000 + rate*x - start*math.Exp(-x/tau) + noise*random*random + cycle*math.Sin(x*math.Pi/12)
		if tooth > 0 {
			v += 3000 * float64(i%tooth) / float64(tooth)
		}
		return v
	}
}

// Every second, fourth or eighth point of a series is never judged more surely than all of it.
func TestThinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, value := process(t)
		b := form(rapid.IntRange(100, 1500).Draw(t, "points"), value)
		whole := Judge(heap(b))
		for _, every := range []int{2, 4, 8} {
			var part Boot
			for i := 0; i < len(b.At); i += every {
				part.At, part.Value = append(part.At, b.At[i]), append(part.Value, b.Value[i])
			}
			if j := Judge(heap(part)); j.Sure() && !whole.Sure() || j.Verdict == Leak && whole.Verdict == None {
				t.Fatalf("all: %v %.3f, every %d: %v %.3f", whole.Verdict, whole.Probability, every, j.Verdict, j.Probability)
			}
		}
	})
}

// Points of the same process that are appended never turn a leak into none.
func TestAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, value := process(t)
		n := rapid.IntRange(50, 500).Draw(t, "points")
		b := form(2*n, value)
		before, after := Judge(heap(Boot{At: b.At[:n], Value: b.Value[:n]})), Judge(heap(b))
		if rate > 0 && before.Sure() && after.Verdict == None && after.Bound < rate {
			t.Fatalf("%d points: leak %.3f of %v, true %v; %d points: none above %v", n, before.Probability, before.Rate, rate, 2*n, after.Bound)
		}
	})
}
