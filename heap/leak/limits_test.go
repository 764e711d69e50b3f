package leak

import (
	"math"
	"slices"
	"testing"
	"time"
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

// A daily cycle may explain the rise at the end of a boot of a quarter of a day to two days.
func TestPossibleCycles(t *testing.T) {
	for hours, want := range map[float64]string{5.9: "", 6.1: dailyWhy, 47.9: dailyWhy, 48.1: ""} {
		var of Boot
		lowest := math.Max(0, hours-12)
		for i := range 60 { // a bin each
			at := hours * float64(i) / 59
			of.At, of.Value = append(of.At, at), append(of.Value, 40000-3000*math.Cos(2*math.Pi*(at-lowest)/24))
		}
		s := newSet([]*boot{reduce(&of, 0, 8)}, 8)
		from := int(math.Ceil(float64(s.slots) * lowest / hours))
		if s.cuts = []int{0, from, s.slots}; from == 0 {
			s.cuts = s.cuts[1:]
		}
		if got := s.otherwise(window{since: from, to: s.slots}, true); got != want {
			t.Errorf("%v hours: %q, want %q", hours, got, want)
		}
	}
}

// Three paths that grow by the same part, to 15 %, grow together. The growth is that from the first to the last values: of each 16
// reports one.
func TestAlike(t *testing.T) {
	path := func(reports, ends int, growth float64) (s Series) {
		v := slices.Repeat([]float64{1000}, reports)
		for i := range ends {
			v[i], v[reports-1-i] = 100, 100*(1+growth)
		}
		return Series{Boots: []Boot{{Value: v}}}
	}
	for _, c := range []struct {
		reports, ends int
		growth        []float64
		want          bool // of the first
	}{
		{31, 1, []float64{0.5, 0.5, 0.5}, true}, {31, 1, []float64{0.5, 0.5}, false}, {31, 1, []float64{0.5, 0.57, 0.43}, true}, {31, 1, []float64{0.5, 0.58, 0.5}, false},
		{32, 2, []float64{0.5, 0.5, 0.5}, true}, {32, 1, []float64{0.5, 0.5, 0.5}, false}, {1, 1, []float64{0.5, 0.5, 0.5}, false},
	} {
		growth := map[int]float64{}
		for i, g := range c.growth {
			growth[i] = lastGrowth(path(c.reports, c.ends, g).Boots)
		}
		if got := alike(growth); got[0] != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A path is a part of the load if it has a value for each time, and varies by half a block.
func TestPathsOfLoad(t *testing.T) {
	for _, c := range []struct {
		boot Boot
		want int
	}{
		{Boot{At: []float64{1, 2, 3}, Value: []float64{100, 102, 104}}, 1}, {Boot{At: []float64{1, 2, 3}, Value: []float64{100, 102, 103}}, 0},
		{Boot{At: []float64{1, 2, 3}, Value: []float64{100, 104}}, 0}, {Boot{At: []float64{1, 2, 3}, Value: []float64{-4, 0, 4}}, 0}, {Boot{}, 0},
	} {
		var l load
		if l.add(Series{Boots: []Boot{c.boot}, Quantum: 8}); len(l.curves) != c.want {
			t.Errorf("%v: %d curves, want %d", c.boot, len(l.curves), c.want)
		}
	}
}

// Paths without a value at first are like no other, and many paths are not compared one by one, which takes 20 s.
func TestManyAlike(t *testing.T) {
	growth := map[int]float64{0: 0.5, 1: 0.56, 2: 0.45, 3: math.Inf(1), 4: math.Inf(1), 5: math.Inf(1), 6: math.NaN()}
	got := alike(growth)
	for i, g := range growth {
		if got[i] != (i == 0) {
			t.Errorf("%v: %v", g, got[i])
		}
	}
	for i := range 50_000 {
		growth[i] = 0.11 + float64(i)/20_000
	}
	if start := time.Now(); len(alike(growth)) == 0 || time.Since(start) > 5*time.Second {
		t.Errorf("%v for %d paths", time.Since(start), len(growth))
	}
}
