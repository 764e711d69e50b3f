package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
)

// Reach says how a block can be reached.
type Reach uint8

const (
	// Leaked: nothing points to the block, or only leaked blocks do.
	Leaked Reach = iota
	// Uncertain: only heap memory that is in no block points to it, which was freed,
	// or belongs to another allocator; or something points one byte past its end.
	Uncertain
	// Reachable: a register, a stack, data or bss points to it, or a reachable block.
	Reachable
)

// Leaks holds how each block of a heap can be reached, and groups those that cannot.
type Leaks struct {
	Reach []Reach // of each block of the heap
	// Groups are the leaked blocks that no other leaked ones point to, by call
	// stack, the most bytes first.
	Groups []LeakGroup
	// Roots is how many bytes of registers, stacks and data were searched.
	Roots uint64
	notes notes
}

// LeakGroup is leaked blocks of the same call stack, or cycles of blocks of the
// same call stacks.
type LeakGroup struct {
	// Stacks are indexes of blocks with the call stacks of the group, one each.
	Stacks []int
	// Direct are the blocks; if Cycle, they point to each other in a circle.
	Direct []int
	Cycle  bool
	// Indirect are leaked blocks that only these lead to.
	Indirect []int
	Bytes    uint64 // of both
}

// Notes returns what the analysis left out.
func (l *Leaks) Notes() []string { return l.notes.list() }

// Count returns how many blocks of h can be reached as r says, and the sum of their
// sizes in bytes.
func (l *Leaks) Count(h *Heap, r Reach) (blocks int, bytes uint64) {
	for i, x := range l.Reach {
		if x == r {
			blocks++
			bytes = addSize(bytes, h.Blocks[i].Size)
		}
	}
	return blocks, bytes
}

// span is memory, [start, end).
type span struct{ start, end uint64 }

// Roots says where a program has memory of known purpose.
type Roots struct {
	Data []Map // data and bss of its files
	// Allocator is data of an allocator, whose lists of free memory are no roots.
	Allocator []Symbol
}

// AllocatorData are variables of C libraries that lead to free memory: those of
// glibc and of newlib.
var AllocatorData = []string{"main_arena", "__malloc_av_"}

// FindLeaks finds blocks that nothing points to. Aligned words count as pointers if
// they hold an address inside a block, its first byte or any other.
func (m *Image) FindLeaks(h *Heap, from Roots) *Leaks {
	l := &Leaks{Reach: make([]Reach, len(h.Blocks))}
	g := newGraph(m, h)
	roots, heap := m.rootSpans(g.used, from)
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
				g.ends(v)
			}
		}
		l.Roots += uint64(len(t.Values) * m.PointerSize())
	}
	for _, s := range roots {
		l.Roots += s.end - s.start
		g.pointers(s, reach)
	}
	for i := range h.Blocks { // what has no size may be anything: its pointers count
		if h.Blocks[i].Blob == nil {
			reach(i)
		}
	}
	g.spread(reach)
	uncertain := mark(Uncertain)
	for _, s := range heap {
		g.pointers(s, uncertain)
	}
	g.spread(uncertain)
	for len(g.past) > 0 { // each of which may lead to more
		past := g.past
		g.past = nil
		for _, i := range past {
			uncertain(int(i))
		}
		g.spread(uncertain)
	}
	g.group(l)
	if len(m.Threads) == 0 {
		l.notes.add("no registers: all memory outside of the heap counts as stack")
	}
	return l
}

// graph finds the blocks that memory points to.
type graph struct {
	m     *Image
	h     *Heap
	addr  []uint64 // of blocks, ascending
	end   []uint64
	index []int32 // of Heap.Blocks
	work  []int32
	used  []span           // blocks with their metadata
	stop  map[uint64]int32 // by the address past the end of a block, its index of Heap.Blocks
	past  []int32          // blocks past whose end something points, that have not been marked
}

// maxUnsized is how many bytes of a block whose size is unknown are searched.
const maxUnsized = 64 << 10

func newGraph(m *Image, h *Heap) *graph {
	g := &graph{m: m, h: h, index: h.sorted(), stop: make(map[uint64]int32, len(h.Blocks))}
	ptr := uint64(m.PointerSize())
	for i, at := range g.index {
		b := &h.Blocks[at]
		end := addSize(b.Addr, max(b.Size, 1))
		if b.Blob == nil {
			end = addSize(b.Addr, maxUnsized)
		}
		if i+1 < len(g.index) {
			next := &h.Blocks[g.index[i+1]]
			end = min(end, max(b.Addr+1, next.Addr-3*ptr-max(uint64(len(next.Blob)), 2)))
		}
		g.addr, g.end = append(g.addr, b.Addr), append(g.end, end)
		if b.Blob != nil && b.Size > 0 {
			g.stop[b.Addr+b.Size] = at
		}
		g.used = append(g.used, span{b.Addr - 3*ptr - max(uint64(len(b.Blob)), 2), end})
	}
	g.used = normal(g.used)
	return g
}

// find returns the block that holds an address.
func (g *graph) find(v uint64) (int, bool) {
	if len(g.addr) == 0 || v < g.addr[0] || v >= g.end[len(g.end)-1] {
		return 0, false
	}
	i := sort.Search(len(g.addr), func(i int) bool { return g.addr[i] > v }) - 1
	if v < g.end[i] {
		return int(g.index[i]), true
	}
	return 0, false
}

// ends remembers the block that ends at v, an address in no block.
func (g *graph) ends(v uint64) {
	if i, ok := g.stop[v]; ok {
		g.past = append(g.past, i)
		delete(g.stop, v) // once is enough
	}
}

// pointers calls visit for each block that an aligned word of a span points to.
func (g *graph) pointers(s span, visit func(int)) {
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
				if i, ok := g.find(v); !ok {
					g.ends(v)
				} else if !g.isFreeList(part.Addr+uint64(off+at), v, i) {
					visit(i)
				}
			}
		}
	}
}

// isFreeList reports whether the word v at an address is a link of an allocator's
// list of free memory, though it hits a block. glibc and newlib link the headers of
// free chunks,
//
//	│ … block, its last word │ size of free chunk │ next │ previous │ … │ size again │
//	  ↑ the header begins here
//
// which overlap the last word of the block before; glibc also links small chunks of
// the same size by next ^ address>>12, which may hit anything.
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

// chunk returns the size that an allocator's header gives to the memory at an
// address, which must be in no block.
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

// content returns the memory of a block, by its index in Heap.Blocks.
func (g *graph) content(block int) span {
	addr := g.h.Blocks[block].Addr
	i := sort.Search(len(g.addr), func(i int) bool { return g.addr[i] >= addr })
	return span{addr, g.end[i]}
}

// spread follows the pointers of blocks that were marked.
func (g *graph) spread(mark func(int)) {
	for len(g.work) > 0 {
		at := g.work[len(g.work)-1]
		g.work = g.work[:len(g.work)-1]
		g.pointers(g.content(int(at)), mark)
	}
}

// redZone is how many bytes below its stack pointer a function may use.
func redZone(machine elf.Machine) uint64 {
	switch machine {
	case elf.EM_X86_64:
		return 128
	case elf.EM_PPC64:
		return 512
	}
	return 0
}

// threadBlock is how many bytes on either side of a thread pointer are the
// thread's own variables.
const threadBlock = 4096

// rootSpans divides the memory that the program could write: what counts as
// stacks, data and bss, and heap memory that is in no block. What is below a
// stack pointer is neither.
func (m *Image) rootSpans(used []span, from Roots) (roots, heap []span) {
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
				arena = a // a map of its own, all of it the allocator's
			}
			arenas = append(arenas, arena)
		}
		if i, _ := slices.BinarySearch(stacks, a.start); i < len(stacks) && stacks[i] < a.end {
			low := stacks[i] - min(stacks[i], redZone(m.Machine))
			// Below the stack, down to where something else is.
			from := a.start
			for _, s := range append(overlap([]span{a}, known), blocks...) {
				if s.end <= low {
					from = max(from, s.end)
				}
			}
			dead = append(dead, span{from, max(from, low)})
		}
	}
	// Data of a file is a root even where blocks stand in it, and its map is one.
	inData := overlap(arenas, known)
	arenas = subtract(normal(arenas), normal(inData))
	for _, s := range inData { // but between two blocks is heap
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

// areas returns the memory that the program could write, by map where there are
// maps. The very last byte of the address space is left out.
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

// normal sorts spans and joins those that touch.
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

// subtract returns what of a is not in b; both are normal.
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

// overlap returns what of a is in b, by the spans of both; b is normal.
func overlap(a, b []span) (out []span) {
	for _, s := range a {
		for i := sort.Search(len(b), func(i int) bool { return b[i].end > s.start }); i < len(b) && b[i].start < s.end; i++ {
			out = append(out, span{max(s.start, b[i].start), min(s.end, b[i].end)})
		}
	}
	return out
}
