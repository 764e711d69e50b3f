package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// addMore adds all but the Value of another record of the same path. The peaks may be of
// different moments, so their sum is an upper bound.
func (a *Allocation) addMore(o *Allocation) (saturated bool) {
	peak := Value{Bytes: a.Peak}
	saturated = peak.Add(Value{Bytes: o.Peak})
	a.Peak = peak.Bytes
	a.BytesErr = math.Hypot(a.BytesErr, o.BytesErr)
	a.CountErr = math.Hypot(a.CountErr, o.CountErr)
	return a.Ever.Add(o.Ever) || saturated
}

// moreOf returns what d.more has of a path.
func (d *Dump) moreOf(id uint32) (a Allocation) {
	if i, found := slices.BinarySearchFunc(d.more, id, func(a Allocation, id uint32) int { return cmp.Compare(a.id, id) }); found {
		a = d.more[i]
	}
	return a
}

// Freed returns the call paths that allocated since the boot and hold nothing now. Their
// Value is zero.
func (d *Dump) Freed() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		if d == nil {
			return
		}
		for _, a := range d.more {
			if _, live := slices.BinarySearch(d.ids, a.id); live || a.Ever.IsZero() && a.Peak == 0 {
				continue
			}
			if !yield(a) {
				return
			}
		}
	}
}

// TotalStdErr returns the standard errors of Total in a sampled dump, 0 if the dump is not
// sampled.
func (d *Dump) TotalStdErr() (bytes, count float64) {
	if d == nil {
		return 0, 0
	}
	for _, a := range d.more {
		bytes, count = math.Hypot(bytes, a.BytesErr), math.Hypot(count, a.CountErr)
	}
	return bytes, count
}
