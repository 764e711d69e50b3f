package heapmap

import (
	"cmp"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// freeBlocks returns the free blocks that a log lists in the order of addresses, nil if one overlaps with a
// block: the list is of another moment.
func freeBlocks(holes []codec.Range, blocks []replay.Block) []codec.Range {
	holes = slices.Clone(holes)
	slices.SortFunc(holes, func(a, b codec.Range) int { return cmp.Compare(a.Start, b.Start) })
	for i, h := range holes {
		n, _ := slices.BinarySearchFunc(blocks, limit(h), func(b replay.Block, end uint64) int { return cmp.Compare(b.Addr, end) })
		if n > 0 && endOf(blocks[n-1]) > h.Start || i > 0 && limit(holes[i-1]) > h.Start {
			return nil
		}
	}
	return holes
}

// maxGap is the greatest distance, in bytes, between adjacent blocks of one heap, if the log
// has no heap=.
const maxGap = 1 << 20

// maxListedGap is maxGap if the log lists the free blocks, too.
const maxListedGap = 1 << 10

// smallestGap returns the smallest distance in bytes between two blocks, at most least.
func smallestGap(least uint64, sorted []replay.Block) uint64 {
	for i := 1; i < len(sorted); i++ {
		if before := endOf(sorted[i-1]); sorted[i].Addr >= before {
			least = min(least, sorted[i].Addr-before)
		}
	}
	return least
}

// leastHole returns the size of the smallest hole.
func leastHole(gap uint64) uint64 {
	if gap > maxOverhead {
		gap = 0
	}
	return gap + slack
}

// regions is a sorted list of address ranges that do not overlap.
type regions []codec.Range

// declared returns the regions that a log declares.
func declared(ranges []codec.Range) regions {
	return regions(slices.Clone(ranges)).merge(0)
}

// grow adds blocks, and merges regions that are at most gap bytes apart.
func (r regions) grow(blocks []replay.Block, gap uint64) regions {
	for _, b := range blocks {
		if b.Bytes > 0 {
			r = append(r, codec.Range{Start: b.Addr, Length: endOf(b) - b.Addr})
		}
	}
	return r.merge(gap)
}

// merge sorts the regions, and merges regions that are at most gap bytes apart.
func (r regions) merge(gap uint64) regions {
	slices.SortFunc(r, func(a, b codec.Range) int { return cmp.Compare(a.Start, b.Start) })
	var list regions
	for _, x := range r {
		if n := len(list); n > 0 {
			last := &list[n-1]
			if end := limit(*last); x.Start <= addSaturated(end, gap) {
				last.Length = max(end, limit(x)) - last.Start
				continue
			}
		}
		list = append(list, x)
	}
	return list
}
