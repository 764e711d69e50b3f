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
