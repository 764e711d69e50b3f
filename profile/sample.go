package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// more holds the values of a call path in a dump besides its live value.
type more struct {
	id           uint32 // of the path
	ever         Value
	peak         uint64
	bytes, count float64 // variances of the live value
}

// moreOf returns the values of an allocation besides its live value, without the id.
func moreOf(a *Allocation) more {
	return more{0, a.Ever, a.Peak, a.BytesErr * a.BytesErr, a.CountErr * a.CountErr}
}

// add adds the values of another record of the same path. The peaks may be of different
// moments, so their sum is an upper bound.
func (m *more) add(o *more) (saturated bool) {
	saturated = m.ever.Add(o.ever)
	peak := Value{Bytes: m.peak}
	saturated = peak.Add(Value{Bytes: o.peak}) || saturated
	m.peak = peak.Bytes
	m.bytes += o.bytes
	m.count += o.count
	return saturated
}

// fill sets the fields of an allocation.
func (m more) fill(a *Allocation) {
	a.Ever, a.Peak, a.BytesErr, a.CountErr = m.ever, m.peak, math.Sqrt(m.bytes), math.Sqrt(m.count)
}

func (d *Dump) moreOf(id uint32) more {
	i, ok := slices.BinarySearchFunc(d.more, id, func(m more, id uint32) int { return cmp.Compare(m.id, id) })
	if !ok {
		return more{}
	}
	return d.more[i]
}

// Freed returns the call paths that allocated since the boot and hold nothing now. Their
// Value is zero.
func (d *Dump) Freed() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		if d == nil {
			return
		}
		for _, m := range d.more {
			if _, live := slices.BinarySearch(d.ids, m.id); live || m.ever.IsZero() && m.peak == 0 {
				continue
			}
			a := Allocation{Path: Path{d.in, m.id}}
			m.fill(&a)
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
	for _, m := range d.more {
		bytes += m.bytes
		count += m.count
	}
	return math.Sqrt(bytes), math.Sqrt(count)
}
