package profile

import (
	"cmp"
	"slices"
)

// Change is what a row holds in the first and in the last dump of a profile.
type Change struct {
	Row
	Before, After Value
}

// New reports whether the row held nothing before.
func (c *Change) New() bool { return c.Before.IsZero() && !c.After.IsZero() }

// Gone reports whether the row holds nothing after.
func (c *Change) Gone() bool { return !c.Before.IsZero() && c.After.IsZero() }

// Delta returns how much the row grew.
func (c *Change) Delta(w Weight) Delta { return Sub(w.Of(c.After), w.Of(c.Before)) }

// Diff returns the rows that differ between the first and the last dump: those that
// grew the most first, those that shrank the most last.
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

// Growth is how a row grows over the dumps of a profile that are complete.
type Growth struct {
	Row
	// Slope is the growth per dump of the straight line that fits the values best, by
	// least squares.
	Slope float64
	Every bool // each dump holds more than the one before it
}

// Trend is what grows over dumps.
type Trend struct {
	Rows  []Growth // those that grew in every dump first, of these the steepest first
	Total Growth   // of all rows together; its Row is empty
}

// Growth returns what grows over the dumps that are complete. It is empty if there are
// fewer than two.
func (p *Profile) Growth(w Weight) Trend {
	dumps := p.Dumps()
	number := make([]int, len(dumps)) // among the complete dumps, -1 for others
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

// point is a value at one of the places 0, 1, 2, …; at places without point it is 0.
type point struct {
	x int
	y uint64
}

// rises reports whether each of the n values is larger than the one before it.
func rises(points []point, n int) bool {
	if len(points) < n-1 { // zero twice
		return false
	}
	next, last := 0, uint64(0)
	for x := range n {
		y := uint64(0)
		if next < len(points) && points[next].x == x {
			y = points[next].y
			next++
		}
		if x > 0 && y <= last {
			return false
		}
		last = y
	}
	return true
}

// slope fits a straight line to n values, of which there are two or more.
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
	return (xy + xs*mean) / (count * (count*count - 1) / 12) // by the sum of (x-middle)²
}
