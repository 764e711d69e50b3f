package main

import (
	"cmp"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// change is the value of a row in the first and in the last dump of a profile.
type change struct {
	profile.Row
	before, after profile.Value
}

// delta returns the growth of the row.
func (c *change) delta(w profile.Weight) delta { return subtract(w.Of(c.after), w.Of(c.before)) }

// changes returns the rows that differ between the first and the last dump. The row that grew
// most is first, the row that shrank most is last.
func changes(p *profile.Profile, w profile.Weight) (list []change) {
	for row := range p.Rows() {
		if c := (change{row, row.At(0), row.Value()}); c.before != c.after {
			list = append(list, c)
		}
	}
	other := profile.Bytes
	if w == profile.Bytes {
		other = profile.Count
	}
	slices.SortStableFunc(list, func(a, b change) int {
		return cmp.Or(b.delta(w).compare(a.delta(w)), b.delta(other).compare(a.delta(other)))
	})
	return list
}

// delta is a difference of two unsigned values, which int64 cannot hold.
type delta struct {
	negative  bool
	magnitude uint64
}

// subtract returns after minus before.
func subtract(after, before uint64) delta {
	if after < before {
		return delta{true, before - after}
	}
	return delta{false, after - before}
}

// compare returns -1 if d is less than o, 1 if it is greater, 0 if they are equal.
func (d delta) compare(o delta) int {
	switch minus := d.negative && d.magnitude > 0; {
	case minus != (o.negative && o.magnitude > 0):
		if minus {
			return -1
		}
		return 1
	case minus:
		return cmp.Compare(o.magnitude, d.magnitude)
	}
	return cmp.Compare(d.magnitude, o.magnitude)
}

// over reports whether d is an increase of more than limit.
func (d delta) over(limit uint64) bool { return !d.negative && d.magnitude > limit }
