package callpath

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Inferred code ranges begin and end at page boundaries. Two addresses more than inferGap
// bytes apart are in different ranges.
const (
	inferPage = 4 << 10
	inferGap  = 1 << 20
)

// InferRanges returns code ranges that contain all addresses, for a log without code ranges,
// and the shift: the largest up to 2 that fits all addresses. If all addresses are odd, as in
// Thumb code, bit 0 is ignored, and shift is 1.
func InferRanges(addresses []uint64) (ranges []codec.Range, shift int) {
	if len(addresses) == 0 {
		return nil, 0
	}
	all := slices.Sorted(slices.Values(addresses))
	set, odd := uint64(1<<2), uint64(1)
	for _, a := range all {
		set |= a
		odd &= a
	}
	shift = bits.TrailingZeros64(set)
	if odd == 1 {
		shift = 1
	}
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j]-all[j-1] <= inferGap {
			j++
		}
		start := all[i] &^ (inferPage - 1)
		length := all[j-1]&^(inferPage-1) - start + inferPage
		if start+(length-1) >= start && length > 0 {
			ranges = append(ranges, codec.Range{Start: start, Length: length})
		}
		i = j
	}
	return ranges, shift
}

// Compare compares paths by base, name and frames, and returns -1, 0 or 1. Sorting by Compare
// puts paths with the same outer frames next to each other; a [Writer] then writes the fewest
// characters.
func Compare(a, b *Path) int {
	return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.Outer, b.Outer), slices.CompareFunc(a.Frames, b.Frames, func(a, b Frame) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), compareBool(a.Escaped, b.Escaped))
	}))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
