package dwarf

import (
	"cmp"
	"slices"
	"sort"
)

// ownedRange is a range of addresses that a unit or a scope claims. owner is an index in a
// list of units or scopes.
type ownedRange struct {
	addrRange
	owner int32
}

// span is the owner of the addresses from start up to the next span.
type span struct {
	start uint64
	owner int32 // -1: none
}

// spans is a list of spans by start.
type spans []span

// find returns the owner of an address, -1 if there is none.
func (s spans) find(pc uint64) int32 {
	i := sort.Search(len(s), func(i int) bool { return s[i].start > pc })
	if i == 0 {
		return -1
	}
	return s[i-1].owner
}

// owned returns the address ranges that have an owner.
func (s spans) owned() (list []addrRange) {
	for i, p := range s {
		if p.owner >= 0 && i+1 < len(s) {
			list = append(list, addrRange{p.start, s[i+1].start})
		}
	}
	return list
}

// begin begins a span.
func (s *spans) begin(at uint64, owner int32) {
	n := len(*s)
	switch {
	case n > 0 && (*s)[n-1].start == at:
		(*s)[n-1].owner = owner
	case n > 0 && (*s)[n-1].owner == owner:
	default:
		*s = append(*s, span{at, owner})
	}
}

// layOut converts ranges to spans. If several ranges hold an address, the address belongs to
// the one that begins last; of those that begin together, to the shortest; of equal ones, to
// the last owner. For nested ranges, this is the innermost one.
func layOut(ranges []ownedRange) spans {
	slices.SortFunc(ranges, func(a, b ownedRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.high, a.high), cmp.Compare(a.owner, b.owner))
	})
	out := make(spans, 0, len(ranges)+len(ranges)/4)
	var open []ownedRange
	closeUntil := func(at uint64) {
		for len(open) > 0 && open[len(open)-1].high <= at {
			end, outer := open[len(open)-1].high, int32(-1)
			for len(open) > 0 && open[len(open)-1].high <= end {
				open = open[:len(open)-1]
			}
			if len(open) > 0 {
				outer = open[len(open)-1].owner
			}
			out.begin(end, outer)
		}
	}
	for _, r := range ranges {
		if r.low < r.high {
			closeUntil(r.low)
			out.begin(r.low, r.owner)
			open = append(open, r)
		}
	}
	closeUntil(^uint64(0))
	return out
}
