package core

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
)

// Reach classifies how a block can be reached.
type Reach uint8

const (
	// Leaked means that nothing points to the block, or only leaked blocks do.
	Leaked Reach = iota
	// Uncertain means that only heap memory outside all blocks (free memory, or memory of
	// another allocator) points to the block, that a pointer holds the address one past
	// its end, or that memory which the image lacks may point to it.
	Uncertain
	// Reachable means that a register, a stack, data, bss or a reachable block points to
	// the block.
	Reachable
)

// Leaks holds the Reach of each block of a heap, and groups of the leaked blocks.
type Leaks struct {
	Reach []Reach // of each block of the heap
	// Groups holds the leaked blocks that no other leaked block points to, grouped by call
	// stack, the group with the most bytes first.
	Groups []LeakGroup
	// Roots is the number of bytes of registers, stacks and data that were searched.
	Roots uint64
	// Absent is writable memory of the program that the image lacks. If there is any, no block is Leaked: those to which
	// nothing points are Uncertain, and Groups has them. At least Least of them, with LeastBytes, are leaked: the absent
	// memory is too small to hold all.
	Absent     []Absent
	Least      int
	LeastBytes uint64
	notes      notes
}

// LeakGroup is a group of leaked blocks with the same call stack, or of cycles of
// blocks with the same call stacks.
type LeakGroup struct {
	// Stacks are indexes of blocks, one for each call stack of the group.
	Stacks []int
	// Direct lists the blocks that no other leaked block points to. If Cycle is true, they
	// point to each other in a cycle.
	Direct []int
	Cycle  bool
	// Indirect lists the leaked blocks that are reachable only from Direct.
	Indirect []int
	Bytes    uint64 // of Direct and Indirect
}

// Notes returns messages about the limits of the analysis.
func (l *Leaks) Notes() []string { return l.notes.list() }

// Count returns the number of blocks of h with Reach r, and the sum of their sizes in
// bytes.
func (l *Leaks) Count(h *Heap, r Reach) (blocks int, bytes uint64) {
	for i, x := range l.Reach {
		if x == r {
			blocks++
			bytes = addSize(bytes, h.Blocks[i].Size)
		}
	}
	return blocks, bytes
}

// span is a range of memory, [start, end).
type span struct{ start, end uint64 }

// words returns the span, with the rest of the words that it begins and ends in.
func (s span) words(m *Image) span {
	word := uint64(m.PointerSize())
	return span{s.start &^ (word - 1), (s.end + word - 1) &^ (word - 1)}
}

// Roots holds the ranges of a program's memory whose purpose is known.
type Roots struct {
	Data []Map // data and bss of its files
	// Allocator is the data of an allocator. Its lists of free memory are not roots.
	Allocator []Symbol
	// Sections are the writable sections of the program's files, to name memory that the image lacks.
	Sections []Absent
}

// AllocatorData lists the variables of glibc and newlib that lead to free memory.
var AllocatorData = []string{"main_arena", "__malloc_av_"}

// FindLeaks finds blocks that nothing points to. An aligned word counts as a pointer if
// it holds the address of any byte of a block.
func (m *Image) FindLeaks(h *Heap, from Roots) *Leaks {
	l := &Leaks{Reach: make([]Reach, len(h.Blocks))}
	g := newGraph(m, h)
	roots, heap := m.rootSpans(h, g.used, from)
	mark := func(r Reach) func(int) {
		return func(i int) {
			if l.Reach[i] < r {
				l.Reach[i] = r
				g.work = append(g.work, int32(i))
			}
		}
	}
	reach := mark(Reachable)
	for _, t := range m.Threads {
		for _, v := range t.Values {
			if i, ok := g.find(v); ok {
				reach(i)
			} else {
				g.ends(v, i)
			}
		}
		l.Roots += uint64(len(t.Values) * m.PointerSize())
	}
	for _, s := range roots {
		l.Roots += s.end - s.start
		g.pointers(s, reach)
	}
	for i := range h.Blocks { // a block of unknown size may have any content: its pointers count
		if h.Blocks[i].Blob == nil {
			reach(i)
		}
	}
	g.spread(reach)
	uncertain := mark(Uncertain)
	for i := range h.Blocks {
		if b := &h.Blocks[i]; h.Unknown(i) && b.Blob != nil {
			uncertain(i)
			g.pointers(span{b.Addr - uint64(b.header), b.Addr}.words(m), uncertain)
			g.pointers(span{b.Addr + b.Size - 1, b.Addr + b.Size}.words(m), uncertain)
		}
	}
	for _, s := range heap {
		g.pointers(s.words(m), uncertain)
	}
	g.spread(uncertain)
	for len(g.past) > 0 { // each pass may find more
		past := g.past
		g.past = nil
		for _, i := range past {
			uncertain(int(i))
		}
		g.spread(uncertain)
	}
	l.Absent = m.Absent(from)
	g.group(l)
	if len(m.Threads) == 0 {
		l.notes.add("no registers: all memory outside of the heap counts as stack")
	}
	return l
}

// Unknown reports whether the content of a block, given by its index, may be anything, so that its pointers count: the size
// of the block is not known, or in a heap of an allocator, its header was overwritten or is in doubt.
func (h *Heap) Unknown(block int) bool {
	b := &h.Blocks[block]
	return b.Blob == nil || h.Foreign && (b.Damaged || b.doubtful)
}

// graph finds the blocks that memory points to.
type graph struct {
	m     *Image
	h     *Heap
	addr  []uint64 // of blocks, ascending
	end   []uint64
	index []int32 // of Heap.Blocks
	work  []int32
	used  []span   // blocks with their metadata
	past  []int32  // blocks with a pointer one past their end, or one that may be a link, that are not marked yet
	links []uint64 // bits of the blocks that were in past
}

// maxUnsized is the number of bytes of a block of unknown size that are searched.
const maxUnsized = 64 << 10

func newGraph(m *Image, h *Heap) *graph {
	g := &graph{m: m, h: h, index: h.sorted(), links: make([]uint64, len(h.Blocks)/64+1)}
	ptr := uint64(m.PointerSize())
	inside := normal(h.inside) // of an arena: few ranges for all its blocks
	g.addr, g.end = make([]uint64, 0, len(g.index)), make([]uint64, 0, len(g.index))
	for i, at := range g.index {
		b := &h.Blocks[at]
		end := addSize(b.Addr, max(b.Size, 1))
		if b.Blob == nil {
			end = addSize(b.Addr, maxUnsized)
		}
		if i+1 < len(g.index) {
			next := &h.Blocks[g.index[i+1]]
			end = min(end, max(b.Addr+1, next.Addr-h.headerSize(next, ptr)))
		}
		g.addr, g.end = append(g.addr, b.Addr), append(g.end, end)
		if k := sort.Search(len(inside), func(k int) bool { return inside[k].end >= end }); k == len(inside) || inside[k].start > b.Addr {
			g.used = append(g.used, span{b.Addr - min(b.Addr, h.headerSize(b, ptr)), end})
		}
	}
	g.used = normal(append(g.used, inside...))
	return g
}

// find returns the index of the block that holds an address, or, if ok is false, of that before it, -1 if there is none.
func (g *graph) find(v uint64) (block int, ok bool) {
	i, found := slices.BinarySearch(g.addr, v)
	if !found {
		i--
	}
	if i < 0 {
		return -1, false
	}
	return int(g.index[i]), v < g.end[i]
}

// ends records block if it ends at v, an address in no block.
func (g *graph) ends(v uint64, block int) {
	if block >= 0 {
		if b := &g.h.Blocks[block]; b.Blob != nil && b.Size > 0 && b.Addr+b.Size == v {
			g.maybe(block)
		}
	}
}

// isLink reports whether an address in a block is one that old links hold.
func (b *Block) isLink(v uint64) bool { return b.tail > 0 && v == b.Addr+b.Size-uint64(b.tail) }

// maybe records, once, a block with a pointer past its end, or one that may be an old link of the allocator.
func (g *graph) maybe(block int) {
	if bit := uint64(1) << (block % 64); g.links[block/64]&bit == 0 {
		g.links[block/64] |= bit
		g.past = append(g.past, int32(block))
	}
}

// pointers calls visit for each pointer to a block in a span.
func (g *graph) pointers(s span, visit func(int)) {
	g.pointersAt(s, func(_ uint64, block int) { visit(block) })
}

// pointersAt is like pointers; visit has the address of the pointer, too.
func (g *graph) pointersAt(s span, visit func(at uint64, block int)) {
	if len(g.addr) == 0 {
		return
	}
	size, order := g.m.PointerSize(), g.m.ByteOrder()
	low, high := g.addr[0], g.end[len(g.end)-1]
	segs := g.m.Segments()
	for i := sort.Search(len(segs), func(i int) bool { return segs[i].Addr+uint64(len(segs[i].Data))-1 >= s.start }); i < len(segs) && segs[i].Addr < s.end; i++ {
		seg := &segs[i]
		if seg.ELF {
			continue
		}
		from := max(s.start, seg.Addr) - seg.Addr
		to := min(s.end-seg.Addr, uint64(len(seg.Data)))
		part := Segment{Addr: seg.Addr + from, Data: seg.Data[from:to], src: seg.src, off: seg.off + int64(from)}
		for off, b := range part.extents() {
			at := int(-(part.Addr + uint64(off)) & uint64(size-1))
			for ; at+size <= len(b); at += size {
				v := uintOf(b[at:][:size], order)
				if v < low || v > high {
					continue
				}
				switch i, ok := g.find(v); {
				case !ok:
					g.ends(v, i)
				case g.h.Foreign && g.h.Blocks[i].isLink(v):
					g.maybe(i)
				case g.h.Foreign || !g.isFreeList(part.Addr+uint64(off+at), v, i):
					visit(part.Addr+uint64(off+at), i)
				}
			}
		}
	}
}

// isFreeList reports whether the word v at an address is a link in an allocator's list of free
// memory, although v is an address in a block. The links of glibc and newlib point to the
// headers of free chunks,
//
//	│ … block, its last word │ size of free chunk │ next │ previous │ … │ size again │
//	  ↑ the header begins here
//
// which overlap the last word of the preceding block. glibc also links small chunks of
// the same size by next ^ address>>12, which may equal any address.
func (g *graph) isFreeList(at, v uint64, block int) bool {
	ptr := uint64(g.m.PointerSize())
	if v&(2*ptr-1) == 0 && v != g.h.Blocks[block].Addr && g.content(block).end-v <= ptr {
		size, ok := g.chunk(v + 2*ptr)
		again, there := g.m.Pointer(v + size)
		return ok && there && again == size
	}
	if next := v ^ at>>12; at&(2*ptr-1) == 0 && next != v {
		size, ok := g.chunk(at)
		other, same := g.chunk(next)
		return ok && same && size == other
	}
	return false
}

// chunk returns the size in the allocator's header before the memory at addr. ok is false if
// addr is in a block or the header is not valid.
func (g *graph) chunk(addr uint64) (size uint64, ok bool) {
	ptr := uint64(g.m.PointerSize())
	if addr&(2*ptr-1) != 0 || g.inUse(addr) {
		return 0, false
	}
	size, ok = g.m.Pointer(addr - ptr)
	size &^= 7 // flags
	return size, ok && size >= 4*ptr && size&(2*ptr-1) == 0 && !g.inUse(addr+size-2*ptr-1)
}

// inUse reports whether an address is in a block or its metadata.
func (g *graph) inUse(addr uint64) bool {
	i := sort.Search(len(g.used), func(i int) bool { return g.used[i].end > addr })
	return i < len(g.used) && g.used[i].start <= addr
}

// content returns the memory of a block, given by its index in Heap.Blocks.
func (g *graph) content(block int) span {
	addr := g.h.Blocks[block].Addr
	i := sort.Search(len(g.addr), func(i int) bool { return g.addr[i] >= addr })
	return span{addr, g.end[i]}
}

// spread follows the pointers in marked blocks.
func (g *graph) spread(mark func(int)) {
	for len(g.work) > 0 {
		at := g.work[len(g.work)-1]
		g.work = g.work[:len(g.work)-1]
		g.pointers(g.content(int(at)), mark)
	}
}

// redZone returns the number of bytes below the stack pointer that a function may use.
func redZone(machine elf.Machine) uint64 {
	switch machine {
	case elf.EM_X86_64:
		return 128
	case elf.EM_PPC64:
		return 512
	}
	return 0
}

// threadBlock is the number of bytes on either side of a thread pointer that count as
// thread-local variables.
const threadBlock = 4096

// rootSpans divides the writable memory of the program into roots (stacks, data and bss) and
// heap memory outside all blocks. Memory below a stack pointer belongs to neither.
func (m *Image) rootSpans(h *Heap, used []span, from Roots) (roots, heap []span) {
	var known []span // data and bss of files
	for _, r := range append(slices.Clone(from.Data), m.Maps...) {
		if r.File != "" && r.Write {
			known = append(known, span{r.Start, r.End})
		}
	}
	for _, t := range m.Threads {
		if t.TLS > threadBlock && t.TLS+threadBlock > t.TLS {
			known = append(known, span{t.TLS - threadBlock, t.TLS + threadBlock})
		}
	}
	known = normal(known)
	var stacks []uint64
	for _, t := range m.Threads {
		stacks = append(stacks, t.SP)
	}
	slices.Sort(stacks)
	var arenas, dead []span
	for _, a := range m.areas() {
		blocks := overlap([]span{a}, used)
		var arena span
		if len(blocks) > 0 {
			arena = span{blocks[0].start, blocks[len(blocks)-1].end}
			if len(m.Maps) > 0 && !m.Guest {
				arena = a // the whole map belongs to the allocator
			}
			arenas = append(arenas, arena)
		}
		if i, _ := slices.BinarySearch(stacks, a.start); i < len(stacks) && stacks[i] < a.end {
			dead = append(dead, unused(a, stacks[i]-min(stacks[i], redZone(m.Machine)), append(overlap([]span{a}, known), blocks...)))
		}
	}
	if h.Foreign { // all memory of the allocator is known
		return subtract(subtract(normal(m.areas()), used), normal(dead)), normal(h.doubtful)
	}
	// The data of a file is a root even if blocks are in it.
	inData := overlap(arenas, known)
	arenas = subtract(normal(arenas), normal(inData))
	for _, s := range inData { // but memory between two blocks is heap
		if b := overlap([]span{s}, used); len(b) > 0 {
			arenas = append(arenas, span{b[0].start, b[len(b)-1].end})
		}
	}
	arenas = normal(arenas)
	for _, a := range from.Allocator {
		used = append(slices.Clip(used), span{a.Addr, addSize(a.Addr, a.Size)})
	}
	all := subtract(normal(m.areas()), normal(used))
	heap = subtract(overlap(all, arenas), normal(dead))
	roots = subtract(subtract(all, arenas), normal(dead))
	return roots, heap
}

// unused returns the unused part of the stack below an address: it extends down to the next other
// memory.
func unused(area span, low uint64, others []span) span {
	from := area.start
	for _, s := range others {
		if s.start < low { // a stack in data or in a block: other variables are below it
			from = max(from, min(s.end, low))
		}
	}
	return span{from, max(from, low)}
}

// areas returns the writable memory of the program, by map if there are maps. It omits
// the last byte of the address space.
func (m *Image) areas() (list []span) {
	for _, r := range m.Maps {
		if r.Write {
			list = append(list, span{r.Start, r.End})
		}
	}
	for _, s := range m.Segments() {
		if s.Write && !s.ELF && m.MapAt(s.Addr) == nil {
			list = append(list, span{s.Addr, max(s.End(), s.End()-1)})
		}
	}
	return list
}

// normal returns the spans sorted, with adjacent ones joined.
func normal(list []span) []span {
	list = slices.DeleteFunc(slices.Clone(list), func(s span) bool { return s.start >= s.end })
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// subtract returns a without b; both are normal.
func subtract(a, b []span) (out []span) {
	i := 0
	for _, s := range a {
		for i > 0 && b[i-1].end > s.start {
			i--
		}
		for ; i < len(b) && b[i].end <= s.start; i++ {
		}
		for j := i; j < len(b) && b[j].start < s.end; j++ {
			if b[j].start > s.start {
				out = append(out, span{s.start, b[j].start})
			}
			s.start = max(s.start, b[j].end)
		}
		if s.start < s.end {
			out = append(out, s)
		}
	}
	return out
}

// overlap returns the intersection of a and b, split at the spans of both; b is normal.
func overlap(a, b []span) (out []span) {
	for _, s := range a {
		for i := sort.Search(len(b), func(i int) bool { return b[i].end > s.start }); i < len(b) && b[i].start < s.end; i++ {
			out = append(out, span{max(s.start, b[i].start), min(s.end, b[i].end)})
		}
	}
	return out
}
