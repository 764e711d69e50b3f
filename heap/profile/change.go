package profile

import (
	"cmp"
	"slices"
)

// Change is the value of a row in the first and in the last dump of a profile.
type Change struct {
	Row
	Before, After Value
}

// New reports whether the row is zero before and not after.
func (c *Change) New() bool { return c.Before.IsZero() && !c.After.IsZero() }

// Gone reports whether the row is zero after and not before.
func (c *Change) Gone() bool { return !c.Before.IsZero() && c.After.IsZero() }

// Delta returns the growth of the row.
func (c *Change) Delta(w Weight) Delta { return Sub(w.Of(c.After), w.Of(c.Before)) }

// Diff returns the rows that differ between the first and the last dump. The row that grew
// most is first, the row that shrank most is last.
func (p *Profile) Diff(w Weight) []Change {
	var list []Change
	_, last := p.last()
	for row := range p.Rows() {
		if c := (Change{row, row.At(0), row.At(last)}); c.Before != c.After {
			list = append(list, c)
		}
	}
	other := Bytes
	if w == Bytes {
		other = Count
	}
	slices.SortFunc(list, func(a, b Change) int {
		return cmp.Or(b.Delta(w).Compare(a.Delta(w)), b.Delta(other).Compare(a.Delta(other)), cmp.Compare(a.number, b.number))
	})
	return list
}

// Growth is the growth of a row over the complete dumps of a profile.
type Growth struct {
	Row
	// Slope is the growth per dump: the slope of the least-squares line through the values.
	Slope float64
	Every bool // each dump holds more than the one before it
}

// Trend is the growth of all rows over the complete dumps.
type Trend struct {
	Rows  []Growth // rows that grew in every dump first, the steepest first in each group
	Total Growth   // of all rows together; its Row is empty
}

// Growth returns the growth over the complete dumps. It is empty if fewer than two dumps
// are complete.
func (p *Profile) Growth(w Weight) Trend {
	dumps := p.Dumps()
	number := make([]int, len(dumps)) // index among the complete dumps, -1 for incomplete dumps
	n := 0
	var total []point
	for i, d := range dumps {
		number[i] = -1
		if d.Complete() {
			number[i] = n
			total = append(total, point{n, w.Of(p.Total(i))})
			n++
		}
	}
	if n < 2 {
		return Trend{}
	}
	t := Trend{Total: Growth{Row{}, slope(total, n), rises(total, n)}}
	var points []point
	for row := range p.Rows() {
		points = points[:0]
		for dump, v := range row.Values() {
			if number[dump] >= 0 {
				points = append(points, point{number[dump], w.Of(v)})
			}
		}
		if s := slope(points, n); s > 0 {
			t.Rows = append(t.Rows, Growth{row, s, rises(points, n)})
		}
	}
	slices.SortFunc(t.Rows, func(a, b Growth) int {
		if a.Every != b.Every {
			if a.Every {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Slope, a.Slope), cmp.Compare(a.number, b.number))
	})
	return t
}

// point is a value at position 0, 1, 2, …; a position without a point has the value 0.
type point struct {
	x int
	y uint64
}

// rises reports whether each of the n values is larger than the one before it.
func rises(points []point, n int) bool {
	if len(points) < n-1 || len(points) < n && (points[0].x == 0 || points[0].y == 0) { // the first value alone may be zero
		return false
	}
	for i := 1; i < len(points); i++ {
		if points[i].y <= points[i-1].y {
			return false
		}
	}
	return true
}

// slope returns the slope of the least-squares line through n values; n is at least 2.
func slope(points []point, n int) float64 {
	count, middle := float64(n), float64(n-1)/2
	var mean float64
	for _, p := range points {
		mean += float64(p.y) / count
	}
	// The places without a point are at -mean. The sum of all x is 0.
	var xy, xs float64
	for _, p := range points {
		x := float64(p.x) - middle
		xy, xs = xy+x*(float64(p.y)-mean), xs+x
	}
	return (xy + xs*mean) / (count * (count*count - 1) / 12) // the divisor is the sum of (x-mean)²
}
