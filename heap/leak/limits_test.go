package leak

import (
	"math"
	"slices"
	"testing"
)

// A report without a number, not later than the one before, or with an impossible part of the blocks does not count.
func TestUnusableReports(t *testing.T) {
	clean := shape(30, ramp)
	want := Judge(Series{Boots: []Boot{clean}, Quantum: 8, Per: "hour"})
	for _, c := range []struct{ at, value, kept float64 }{
		{10, 9e6, 1}, {9.5, 9e6, 1}, {math.NaN(), 40500, 1}, {math.Inf(1), 40500, 1}, {10.5, math.NaN(), 1}, {10.5, math.Inf(-1), 1},
		{10.5, 40500, 0}, {10.5, 40500, -1}, {10.5, 40500, 1.01}, {10.5, 40500, math.NaN()},
	} {
		b := Boot{At: slices.Insert(slices.Clone(clean.At), 10, c.at), Value: slices.Insert(slices.Clone(clean.Value), 10, c.value)}
		if c.kept != 1 {
			b.Kept = slices.Insert(slices.Repeat([]float64{1}, 30), 10, c.kept)
		}
		if got := Judge(Series{Boots: []Boot{b}, Quantum: 8, Per: "hour"}); got.Rate != want.Rate || got.Probability != want.Probability || got.Low != want.Low || got.Since != want.Since {
			t.Errorf("with %v at %v, kept %v: %+v, want %+v", c.value, c.at, c.kept, got, want)
		}
	}
}

// Values are divided by the part of the blocks that the log has; those of the series stay.
func TestCorrected(t *testing.T) {
	from := []Boot{{Value: []float64{10, 20, 30}, Kept: []float64{0.5, 0.25}}, {Value: []float64{7}}}
	got := values(from)
	if want := []float64{20, 80, 30, 7}; !slices.Equal(got, want) || from[0].Value[0] != 10 {
		t.Errorf("%v of %v, want %v", got, from, want)
	}
}

// The segments of a line are on it.
func TestTraceOfLine(t *testing.T) {
	s := Series{Boots: []Boot{shape(30, ramp)}, Quantum: 8, Per: "hour"}
	j := Judge(s)
	traces, n := Trace(s, &j), 0
	for _, b := range traces {
		for _, g := range b.Segments {
			n++
			for _, p := range [][2]float64{{g.From, g.Start}, {g.To, g.End}} {
				if want := ramp(p[0] - 1); math.Abs(p[1]-want) > 60 || p[0] < 0 || p[0] > 31 {
					t.Errorf("%v at %v, want %v: %+v", p[1], p[0], want, g)
				}
			}
		}
	}
	if n == 0 {
		t.Errorf("no segments: %+v", traces)
	}
}
