// Package heapmap finds out where in the heap blocks and holes lie, and which call paths keep holes
// apart. A group of adjacent blocks keeps two holes apart if it lies between them, and neither hole
// is smaller than the group. If the group were freed, the two holes would be one.
//
//	var m heapmap.Mapper
//	for d, err := range r.DumpBlocks() { // of a heaplog.Reader
//		if x := m.Map(d.Dump, d.Blocks, d.Space, d.Holes); err == nil && x != nil {
//			fmt.Println(d.Name, x.Free, x.Largest)
//		}
//	}
package heapmap

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// Source is the source of the regions of a Map.
type Source string

const (
	Given  Source = "flag"   // Mapper.Regions
	Log    Source = "log"    // heap= of the ~h#boot line
	Blocks Source = "blocks" // inferred: blocks that are at most 1 MiB apart, or 1 KiB if the log lists the free blocks
)

// Mapper maps the heap at one moment after the other. The zero Mapper is ready for use.
type Mapper struct {
	Regions []codec.Range // the address ranges of the heap; if nil, those of the log or of the blocks
	Size    uint64        // of a heap that begins with the lowest block; 0 if not known

	last     *profile.Dump
	before   []replay.Block // of the dump before, by address
	inferred regions        // of the blocks of the boot so far
	gap      uint64         // smallest gap between two blocks in this boot
}

// Map returns the map of the blocks of a dump. space is the address ranges that the log has, nil if
// it has none. holes is all free blocks, nil if the log does not list them. The result is nil if there is
// no block, or if the dump is a difference.
func (m *Mapper) Map(d *profile.Dump, blocks iter.Seq[replay.Block], space, holes []codec.Range) *Map {
	if m.last == nil || m.last.Boot != d.Boot || m.last.File != d.File {
		m.inferred, m.gap, m.before = nil, math.MaxUint64, nil
	}
	m.last = d
	list := slices.Collect(blocks)
	if len(list) == 0 || d.Diff {
		return nil
	}
	slices.SortFunc(list, byAddress)
	if holes = freeBlocks(holes, list); holes != nil {
		list = slices.Clip(list) // regions take both
	}
	lost := 0
	if missing, known := d.Missing(); holes == nil && known && missing > 0 {
		list, lost = m.addLost(list, d.Announced.Records-uint64(d.Records))
	}
	m.before = list
	r, source := m.regions(list, space, holes)
	m.gap = smallestGap(m.gap, list)
	out := &Map{Regions: r, blocks: list, LeastHole: leastHole(m.gap), Lost: lost, Listed: holes != nil, Source: source}
	if out.Listed {
		out.LeastHole = 1
	}
	out.find(holes)
	return out
}

// regions returns the address ranges of the heap, and their source.
func (m *Mapper) regions(list []replay.Block, space, holes []codec.Range) (r regions, source Source) {
	switch {
	case m.Regions != nil:
		return declared(m.Regions), Given
	case space != nil:
		return declared(space), Log
	case holes != nil: // no gap is free memory
		for _, h := range holes {
			list = append(list, replay.Block{Addr: h.Start, Bytes: h.Length})
		}
		return regions{}.grow(list, maxListedGap), Blocks
	}
	m.inferred = m.inferred.grow(list, maxGap)
	r = slices.Clone(m.inferred)
	if len(r) == 1 && m.Size > r[0].Length && r[0].Start+m.Size > r[0].Start {
		r[0].Length, source = m.Size, Given
		return r, source
	}
	return r, Blocks
}

// addLost adds to a dump that lacks records the blocks of the dump before where it has nothing, if they are
// not more than it lacks: they were not freed.
func (m *Mapper) addLost(list []replay.Block, missing uint64) (all []replay.Block, lost int) {
	var absent []replay.Block
	for _, b := range m.before {
		n, _ := slices.BinarySearchFunc(list, endOf(b), func(o replay.Block, end uint64) int { return cmp.Compare(o.Addr, end) })
		if n == 0 || endOf(list[n-1]) <= b.Addr {
			absent = append(absent, b)
		}
	}
	if uint64(len(absent)) > missing {
		return list, 0
	}
	list = append(list, absent...)
	slices.SortFunc(list, byAddress)
	return list, len(absent)
}

// endOf returns the address after the block, at most 2^64-1.
func endOf(b replay.Block) uint64 { return addSaturated(b.Addr, b.Bytes) }

func addSaturated(a, b uint64) uint64 {
	if s, carry := bits.Add64(a, b, 0); carry == 0 {
		return s
	}
	return 1<<64 - 1
}

// limit returns the address after a region, at most 2^64-1.
func limit(r codec.Range) uint64 { return addSaturated(r.Start, r.Length) }

// Small gaps between blocks are headers and padding of the allocator. A hole has at least
// slack bytes plus the smallest gap. A smallest gap over maxOverhead bytes counts as 0.
const (
	slack       = 32
	maxOverhead = 128
)

// group is adjacent blocks that keep two holes apart. kept is the size of the smaller hole: the
// bytes that freeing the group would join to the larger hole, besides the group's own.
type group struct {
	blocks []replay.Block
	kept   uint64
}

// Map holds the blocks and holes of a heap.
type Map struct {
	Space
	// Regions are the address ranges of the heap, in order. Source says where they are from.
	Regions []codec.Range
	Source  Source
	// LeastHole is the size of the smallest hole in bytes. Smaller gaps between blocks are
	// headers and padding.
	LeastHole uint64
	Listed    bool // the holes are the free blocks that the log lists, and no other gap is one
	Lost      int  // blocks of the dump before that this one lacks, and that no gap shows to be freed

	holes  []uint64 // their sizes; a hole is a gap between blocks, or between a block and the end of the heap
	groups []group
	blocks []replay.Block
}

// byAddress orders blocks by address.
func byAddress(a, b replay.Block) int {
	return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Bytes, b.Bytes))
}

// find finds the holes between the blocks: those that the log lists, or if it lists none, each gap of at
// least LeastHole bytes.
func (m *Map) find(listed []codec.Range) {
	rest := m.blocks
	for _, region := range m.Regions {
		m.Size += region.Length
		for len(rest) > 0 && rest[0].Addr < region.Start {
			m.Outside++
			rest = rest[1:]
		}
		n := 0
		for n < len(rest) && rest[n].Addr-region.Start < region.Length {
			n++
		}
		m.region(region, rest[:n], listed)
		rest = rest[n:]
	}
	m.Outside += len(rest)
	m.Holes, m.Fragmentation = len(m.holes), Fragmentation(m.Free, m.Largest)
}

// region finds the holes of one region; the blocks begin in it.
func (m *Map) region(r codec.Range, blocks []replay.Block, listed []codec.Range) {
	at, end, from := r.Start, limit(r), 0
	before := uint64(0) // size of the hole before the group that begins with blocks[from]
	hole := func(i int, size uint64) {
		m.holes = append(m.holes, size)
		m.Free += size
		m.Largest = max(m.Largest, size)
		if kept := min(before, size); kept > 0 && i > from && at-blocks[from].Addr <= kept {
			m.groups = append(m.groups, group{blocks[from:i], kept})
		}
		before, from = size, i
	}
	gap := func(i int, next uint64) {
		switch {
		case next < at:
		case m.Listed:
			n, _ := slices.BinarySearchFunc(listed, at, func(h codec.Range, at uint64) int { return cmp.Compare(h.Start, at) })
			for ; n < len(listed) && listed[n].Start < next; n++ {
				hole(i, listed[n].Length)
			}
		case next-at >= m.LeastHole:
			hole(i, next-at)
		}
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

// Pins returns the call paths that have blocks in a group that keeps holes apart, in descending
// order of Kept. They have no Stack yet.
func (m *Map) Pins() []Pin {
	index := map[profile.Path]int{}
	var list []Pin
	var most, groups []uint64 // by index in list: the largest kept, and the number of groups when it was last added
	for i, g := range m.groups {
		for _, b := range g.blocks {
			k, ok := index[b.Path]
			if !ok {
				k = len(list)
				index[b.Path] = k
				list, most, groups = append(list, Pin{Path: b.Path}), append(most, 0), append(groups, 0)
			}
			p := &list[k]
			p.Count++
			p.Bytes += b.Bytes
			if g.kept > most[k] {
				most[k], p.Address = g.kept, b.Addr
			}
			if groups[k] != uint64(i+1) {
				groups[k] = uint64(i + 1)
				p.Kept += g.kept
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Pin) int { return cmp.Compare(b.Kept, a.Kept) })
	return list
}

// Name returns the first n pins whose call paths p shows, with their stacks, and the number of
// further ones; n = 0 means all. p must be a profile of the dumps from which the pins were computed.
func Name(pins []Pin, p *profile.Profile, n int) (list []Pin, left int) {
	list = []Pin{}
	for _, x := range pins {
		var shown bool
		switch x.Stack, shown = p.Stack(x.Path); {
		case !shown:
		case n > 0 && len(list) == n:
			left++
		default:
			list = append(list, x)
		}
	}
	return list, left
}

// Sizes counts the holes and blocks by size: those of 2^i to 2^(i+1)-1 bytes are one class.
func (m *Map) Sizes() []SizeClass {
	var classes [64]SizeClass
	for _, size := range m.holes {
		x := &classes[bits.Len64(size)-1]
		x.Holes++
		x.HoleBytes += size
	}
	for _, b := range m.blocks {
		if b.Bytes > 0 {
			x := &classes[bits.Len64(b.Bytes)-1]
			x.Blocks++
			x.BlockBytes += b.Bytes
		}
	}
	list := []SizeClass{}
	for i, x := range classes {
		if x.Holes+x.Blocks > 0 {
			x.Min = 1 << i
			x.Max = x.Min + (x.Min - 1)
			list = append(list, x)
		}
	}
	return list
}

// Layout returns the first n regions, each in a number of cells of equal size, and the sizes of
// holes and blocks. It has no Pins.
func (m *Map) Layout(n, cells int) Layout {
	l := Layout{Ranges: []Range{}, LeastHole: m.LeastHole, Listed: m.Listed, Lost: m.Lost, Sizes: m.Sizes()}
	for _, r := range m.Regions[:min(n, len(m.Regions))] {
		out := Range{Start: r.Start, Length: r.Length}
		for _, part := range m.Cells(r, cells) {
			percent := int(100*part + 0.5)
			if part > 0 {
				percent = max(1, percent)
			}
			out.Cells = append(out.Cells, percent)
		}
		l.Ranges = append(l.Ranges, out)
	}
	return l
}

// Cells returns the used fraction, 0 to 1, of each of n equal parts of a region.
func (m *Map) Cells(r codec.Range, n int) []float64 {
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
