package profile

import (
	"cmp"
	"math"
	"slices"
)

// Growth is how a row of a table grows over its dumps.
type Growth struct {
	Row int // -1 if it is all rows together
	// Slope is the growth per dump of the straight line that fits the values best, by
	// least squares.
	Slope float64
	// Every reports that each dump holds more than the one before it.
	Every bool
}

// Growth returns the rows that grow over the dumps of the table, of which there must
// be two or more: those that grew in every dump first, and of these the steepest.
func (t *Table) Growth(w Weight) []Growth {
	var list []Growth
	for row := range t.Rows() {
		if g := t.growth(row, t.Row(row), w); g.Slope > 0 {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b Growth) int {
		if a.Every != b.Every {
			if a.Every {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Slope, a.Slope), cmp.Compare(a.Row, b.Row))
	})
	return list
}

// TotalGrowth returns how all rows together grow.
func (t *Table) TotalGrowth(w Weight) Growth { return t.growth(-1, t.All(), w) }

func (t *Table) growth(row int, r TableRow, w Weight) Growth {
	return Growth{row, r.slope(len(t.Dumps), w), r.rises(len(t.Dumps), w)}
}

// rises reports whether each of the n dumps holds more than the one before it.
func (r TableRow) rises(n int, w Weight) bool {
	if n < 2 || len(r.values) < n-1 { // zero twice
		return false
	}
	last := uint64(0)
	for i := range n {
		v := w.Of(r.Value(i))
		if i > 0 && v <= last {
			return false
		}
		last = v
	}
	return true
}

// slope fits a straight line to the n points at 0, 1, 2, … of a row.
func (r TableRow) slope(n int, w Weight) float64 {
	if n < 2 {
		return 0
	}
	count, middle := float64(n), float64(n-1)/2
	var mean float64
	for _, v := range r.values {
		mean += float64(w.Of(v.Value)) / count
	}
	// The dumps that have nothing of it are at -mean; all x together are 0.
	var xy, xs float64
	for _, v := range r.values {
		x, y := float64(v.dump)-middle, float64(w.Of(v.Value))-mean
		xy, xs = xy+x*y, xs+x
	}
	return (xy + xs*mean) / (count * (count*count - 1) / 12) // by the sum of (x-middle)²
}

// Sparkline draws points as bars from the least to the largest, and those that are nil
// as dots; at most width of them: of more, some are left out evenly, the first and the
// last never.
func Sparkline(points []*Value, w Weight, width int) string {
	if len(points) > width && width > 1 {
		some := make([]*Value, width)
		for i := range some {
			some[i] = points[int(math.Round(float64(i)*float64(len(points)-1)/float64(width-1)))]
		}
		points = some
	}
	low, high := uint64(math.MaxUint64), uint64(0)
	for _, p := range points {
		if p != nil {
			low, high = min(low, w.Of(*p)), max(high, w.Of(*p))
		}
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, len(points))
	for i, p := range points {
		level := 0
		switch {
		case p == nil:
			out[i] = '·'
			continue
		case high > low:
			level = int(float64(w.Of(*p)-low) / float64(high-low) * float64(len(bars)-1))
		}
		out[i] = bars[level]
	}
	return string(out)
}
