package profile

import (
	"cmp"
	"math"
	"slices"
)

// Growth is a call path over several dumps.
type Growth struct {
	Stack  []Site  // innermost first
	Points []Value // by dump
	// Slope is the growth per dump of the straight line that fits the points best,
	// by least squares.
	Slope float64
	// Fit is how much of the points' variation the line explains, 0 to 1.
	Fit float64
	// Every reports that each dump holds more than the one before it.
	Every bool
}

// First returns the point of the first dump.
func (g *Growth) First() Value { return g.Points[0] }

// Last returns the point of the last dump.
func (g *Growth) Last() Value { return g.Points[len(g.Points)-1] }

// Growth returns the call paths that grow over the dumps of the table, of which
// there must be two or more: those that grew in every dump first, and of these the
// steepest.
func (t *Table) Growth(w Weight) []Growth {
	var list []Growth
	for i := range t.Rows {
		r := &t.Rows[i]
		g := Growth{Stack: t.Names(r), Points: r.Values}
		g.Slope, g.Fit = line(r.Values, w)
		g.Every = rises(r.Values, w)
		if g.Slope > 0 {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(a, b Growth) int {
		if a.Every != b.Every {
			if a.Every {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Slope, a.Slope)
	})
	return list
}

// TotalGrowth returns all call paths together as one.
func (t *Table) TotalGrowth(w Weight) Growth {
	g := Growth{Points: t.Total, Every: rises(t.Total, w)}
	g.Slope, g.Fit = line(t.Total, w)
	return g
}

func rises(points []Value, w Weight) bool {
	for i := 1; i < len(points); i++ {
		if w.Of(points[i]) <= w.Of(points[i-1]) {
			return false
		}
	}
	return len(points) > 1
}

// line fits a straight line to points at 0, 1, 2, … .
func line(points []Value, w Weight) (slope, fit float64) {
	n := float64(len(points))
	if n < 2 {
		return 0, 0
	}
	var mean float64
	for _, p := range points {
		mean += float64(w.Of(p)) / n
	}
	var xy, xx, yy float64
	for i, p := range points {
		x, y := float64(i)-(n-1)/2, float64(w.Of(p))-mean
		xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
	}
	if yy == 0 {
		return 0, 1
	}
	return xy / xx, min(1, xy*xy/(xx*yy))
}

// Sparkline draws points as bars from the least to the largest, at most width of
// them: of more, some are left out evenly, the first and the last never.
func Sparkline(points []Value, w Weight, width int) string {
	if len(points) > width && width > 1 {
		some := make([]Value, width)
		for i := range some {
			some[i] = points[int(math.Round(float64(i)*float64(len(points)-1)/float64(width-1)))]
		}
		points = some
	}
	low, high := uint64(math.MaxUint64), uint64(0)
	for _, p := range points {
		low, high = min(low, w.Of(p)), max(high, w.Of(p))
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, len(points))
	for i, p := range points {
		level := 0
		if high > low {
			level = int(float64(w.Of(p)-low) / float64(high-low) * float64(len(bars)-1))
		}
		out[i] = bars[level]
	}
	return string(out)
}
