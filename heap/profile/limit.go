package profile

import (
	"cmp"
	"slices"
)

// Limits of [Dump.Heaviest]. A few bytes of a log may add a call path of 1,024 frames that shares all
// but one with others.
const (
	freeFrames = 1 << 23 // are always written
	// repetitions is how often a frame is repeated on average at most; ordinary profiles have 10.
	repetitions = 32
)

// Heaviest returns a dump for a file that repeats the frames of each call path: d, or the heaviest call
// paths of it, of 2^23 frames together or, if that is more, 32 times the frames of d. The others are
// added up as the path for which [Path.Other] is true, and left is their number.
func (d *Dump) Heaviest() (most *Dump, left int) {
	if d == nil || d.in == nil {
		return d, 0
	}
	ids, values := d.live.whole()
	list := heaviestPaths(&d.in.stackTree, len(ids), func(i int) (uint32, Value) { return ids[i], values[i] })
	if list == nil {
		return d, 0
	}
	b := NewBuilder(0)
	for a := range d.all() {
		if i, held := slices.BinarySearch(ids, a.id); !held || !list[i] {
			if a.Path = b.other(); held {
				left++
			}
		}
		b.AddAllocation(a)
	}
	most = b.End(d.DumpInfo)
	most.Records, most.Ended, most.Loss = d.Records, d.Ended, d.Loss
	return most, left
}

// heaviestPaths returns which of n stacks of a tree are within the limits. It returns nil for all.
func heaviestPaths(tree *stackTree, n int, stack func(i int) (id uint32, v Value)) (kept []bool) {
	depth := make([]uint32, tree.nodes.n) // by node; parents have lower numbers
	for i := 1; i < len(depth); i++ {
		depth[i] = depth[tree.nodes.at(i).parent] + 1
	}
	frames := func(i int) int {
		id, _ := stack(i)
		node, tail := tree.stack(id)
		return int(depth[node]) + len(tail)
	}
	all, own := 0, len(depth)
	for i := range n {
		id, _ := stack(i)
		_, tail := tree.stack(id)
		all += frames(i)
		own += len(tail)
	}
	left := max(freeFrames, repetitions*own)
	if all <= left {
		return nil
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		_, x := stack(int(a))
		_, y := stack(int(b))
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Count, x.Count), cmp.Compare(a, b))
	})
	kept = make([]bool, n)
	for _, i := range order {
		if left -= frames(int(i)); left < 0 {
			break
		}
		kept[i] = true
	}
	return kept
}
