package main

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
)

// end returns the address after the block, at most 2^64-1.
func endOf(b profile.Block) uint64 { return addSaturated(b.Addr, b.Bytes) }

func addSaturated(a, b uint64) uint64 {
	if s, carry := bits.Add64(a, b, 0); carry == 0 {
		return s
	}
	return 1<<64 - 1
}

// limit returns the address after a region, at most 2^64-1.
func limit(r codec.Range) uint64 { return addSaturated(r.Start, r.Length) }

// maxGap is the greatest distance, in bytes, between adjacent blocks of one heap, if the log
// has no heap=.
const maxGap = 1 << 20

// Small gaps between blocks are headers and padding of the allocator. A hole has at least
// slack bytes plus the smallest gap. A smallest gap over maxOverhead bytes counts as 0.
const (
	slack       = 32
	maxOverhead = 128
)

// smallestGap returns the smallest distance in bytes between two blocks, at most least.
func smallestGap(least uint64, sorted []profile.Block) uint64 {
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
	var r regions
	for _, x := range ranges {
		r = append(r, x)
	}
	return r.merge(0)
}

// grow adds blocks, and merges regions that are at most maxGap bytes apart.
func (r regions) grow(blocks []profile.Block) regions {
	for _, b := range blocks {
		if b.Bytes > 0 {
			r = append(r, codec.Range{Start: b.Addr, Length: endOf(b) - b.Addr})
		}
	}
	return r.merge(maxGap)
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

// hole is a gap between blocks, or between a block and the end of the heap.
type hole struct{ addr, size uint64 }

// group is adjacent blocks between two holes.
type group struct {
	blocks      []profile.Block
	bytes       uint64 // from the end of the left hole to the start of the right hole
	left, right uint64 // sizes of the holes
}

// kept returns the bytes that freeing the group would join to the larger hole, besides the
// group's own.
func (r *group) kept() uint64 { return min(r.left, r.right) }

// mapped holds the blocks and holes of a heap.
type mapped struct {
	report.Space
	regions regions
	least   uint64 // size of the smallest hole
	holes   []hole
	groups  []group // between two holes
	blocks  []profile.Block
}

// sortBlocks orders blocks by address.
func sortBlocks(list []profile.Block) {
	slices.SortFunc(list, func(a, b profile.Block) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Bytes, b.Bytes))
	})
}

// mapBlocks finds the holes of at least a number of bytes between blocks in regions. The blocks
// are in the order of sortBlocks.
func mapBlocks(r regions, blocks []profile.Block, least uint64) *mapped {
	m := &mapped{regions: r, blocks: blocks, least: least}
	rest := m.blocks
	for _, region := range r {
		m.Size += region.Length
		for len(rest) > 0 && rest[0].Addr < region.Start {
			m.Outside++
			rest = rest[1:]
		}
		n := 0
		for n < len(rest) && rest[n].Addr-region.Start < region.Length {
			n++
		}
		m.region(region, rest[:n])
		rest = rest[n:]
	}
	m.Outside += len(rest)
	m.Holes, m.Fragmentation = len(m.holes), report.Fragmentation(m.Free, m.Largest)
	return m
}

// region finds the holes of one region; the blocks begin in it.
func (m *mapped) region(r codec.Range, blocks []profile.Block) {
	at, end, from := r.Start, limit(r), 0
	before, has := uint64(0), false // the hole before the group that begins with blocks[from]
	gap := func(i int, next uint64) {
		if next < at || next-at < m.least {
			return
		}
		h := hole{at, next - at}
		m.holes = append(m.holes, h)
		m.Free += h.size
		m.Largest = max(m.Largest, h.size)
		if has && i > from {
			m.groups = append(m.groups, group{blocks[from:i], at - blocks[from].Addr, before, h.size})
		}
		before, has, from = h.size, true, i
	}
	for i, b := range blocks {
		switch {
		case b.Addr < at:
			m.Overlap++
		default:
			gap(i, b.Addr)
		}
		m.Count++
		if e := min(endOf(b), end); e > at {
			m.Used += e - max(at, b.Addr)
			at = e
		}
	}
	gap(len(blocks), end)
}

// pin is a call path whose blocks keep holes apart.
type pin struct {
	path   profile.Path
	blocks int
	bytes  uint64 // of the blocks
	kept   uint64 // of the holes that would join larger ones
	at     uint64 // address of the block between the largest holes
	most   uint64
}

// pins returns the call paths whose blocks are in groups that are not larger than either of
// their holes, in descending order of kept.
func (m *mapped) pins() []pin {
	index := map[profile.Path]int{}
	var list []pin
	for i := range m.groups {
		r := &m.groups[i]
		if r.bytes > r.kept() {
			continue
		}
		seen := map[profile.Path]bool{}
		for _, b := range r.blocks {
			k, ok := index[b.Path]
			if !ok {
				k = len(list)
				index[b.Path] = k
				list = append(list, pin{path: b.Path})
			}
			p := &list[k]
			p.blocks++
			p.bytes += b.Bytes
			if r.kept() > p.most {
				p.most, p.at = r.kept(), b.Addr
			}
			if !seen[b.Path] {
				seen[b.Path] = true
				p.kept += r.kept()
			}
		}
	}
	slices.SortStableFunc(list, func(a, b pin) int { return cmp.Compare(b.kept, a.kept) })
	return list
}

// sizes counts the holes and blocks by size: those of 2^i to 2^(i+1)-1 bytes are one class.
func (m *mapped) sizes() []report.SizeClass {
	var classes [64]report.SizeClass
	for _, h := range m.holes {
		x := &classes[bits.Len64(h.size)-1]
		x.Holes++
		x.HoleBytes += h.size
	}
	for _, b := range m.blocks {
		if b.Bytes > 0 {
			x := &classes[bits.Len64(b.Bytes)-1]
			x.Blocks++
			x.BlockBytes += b.Bytes
		}
	}
	list := []report.SizeClass{}
	for i, x := range classes {
		if x.Holes+x.Blocks > 0 {
			x.Min = 1 << i
			x.Max = x.Min + (x.Min - 1)
			list = append(list, x)
		}
	}
	return list
}

// ranges returns the first n regions, each in cells of equal size.
func (m *mapped) ranges(n, cells int) []report.Range {
	list := []report.Range{}
	for _, r := range m.regions[:min(n, len(m.regions))] {
		out := report.Range{Start: r.Start, Length: r.Length}
		for _, part := range m.cells(r, cells) {
			percent := uint8(100*part + 0.5)
			if part > 0 {
				percent = max(1, percent)
			}
			out.Cells = append(out.Cells, percent)
		}
		list = append(list, out)
	}
	return list
}

// cells returns the used fraction, 0 to 1, of each of n equal parts of a region.
func (m *mapped) cells(r codec.Range, n int) []float64 {
	used, per := make([]float64, n), float64(r.Length)/float64(n)
	for _, b := range m.blocks {
		if b.Addr < r.Start || b.Addr-r.Start >= r.Length {
			continue
		}
		from := float64(b.Addr - r.Start)
		to := min(from+float64(b.Bytes), float64(r.Length))
		for i := int(from / per); i < n && float64(i)*per < to; i++ {
			used[i] += min(to, float64(i+1)*per) - max(from, float64(i)*per)
		}
	}
	for i := range used {
		used[i] = min(1, used[i]/per)
	}
	return used
}

// picture draws a region as n cells of equal size, which show the used fraction.
func (m *mapped) picture(r codec.Range, n int) string {
	cells := m.cells(r, n)
	shades := []rune("·░▒▓█")
	out := make([]rune, n)
	for i, part := range cells {
		level := 0
		if part > 0 {
			level = min(len(shades)-1, 1+int(part*float64(len(shades)-1)-1e-9))
		}
		out[i] = shades[level]
	}
	return string(out)
}
