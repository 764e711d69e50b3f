package profile

import (
	"iter"
	"math"
	"slices"
)

// more is what an [Allocation] has besides its path and its Value.
type more struct {
	ever               Value
	peak               uint64
	bytesErr, countErr float64
}

func moreOf(a *Allocation) more { return more{a.Ever, a.Peak, a.BytesErr, a.CountErr} }

func (m more) allocation(p Path, v Value) Allocation {
	return Allocation{p, v, m.ever, m.peak, m.bytesErr, m.countErr}
}

// add adds those of another record of the same path. The peaks may be of different moments, so
// their sum is an upper bound.
func (m *more) add(o more) (saturated bool) {
	peak := Value{Bytes: m.peak}
	saturated = peak.Add(Value{Bytes: o.peak})
	m.peak = peak.Bytes
	m.bytesErr = math.Hypot(m.bytesErr, o.bytesErr)
	m.countErr = math.Hypot(m.countErr, o.countErr)
	return m.ever.Add(o.ever) || saturated
}

// Freed returns the call paths that allocated since the boot and hold nothing now. Their
// Value is zero.
func (d *Dump) Freed() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		if d == nil {
			return
		}
		ids, values := d.more.whole()
		if len(ids) == 0 {
			return
		}
		live, _ := d.live.whole()
		for i, id := range ids {
			m := values[i]
			if _, found := slices.BinarySearch(live, id); found || m.ever.IsZero() && m.peak == 0 {
				continue
			}
			if !yield(m.allocation(Path{d.in, id}, Value{})) {
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
	_, values := d.more.whole()
	for _, m := range values {
		bytes, count = math.Hypot(bytes, m.bytesErr), math.Hypot(count, m.countErr)
	}
	return bytes, count
}
