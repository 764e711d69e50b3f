package core

import (
	"bytes"
	"cmp"
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
	// its end or of up to 16 bytes in front of it, that a word which is not aligned or has a tag in its top 16 of 64 bits
	// leads to it, or that memory which the image lacks may point to it.
	Uncertain
	// OnStack means that only the unused part of a task's stack leads to the block, or memory of unknown purpose, in an image
	// without registers. It may be old stack: the block may be leaked.
	OnStack
	// OnSlack means that only words at the end of blocks, which the program may not have requested ([Arena.Slack]), lead to
	// the block: it may be leaked.
	OnSlack
	// Reachable means that a register, a stack, data, bss or a reachable block points to
	// the block.
	Reachable
)

// Doubtful reports whether a block is reachable only by words that may be old.
func (r Reach) Doubtful() bool { return r == OnStack || r == OnSlack }

// Leaks holds the Reach of each block of a heap, and groups of the leaked blocks.
type Leaks struct {
	Reach []Reach // of each block of the heap
	// Groups holds the leaked blocks that no other leaked block points to, grouped by call
	// stack, the group with the most bytes first.
	Groups []LeakGroup
	// Roots is the number of bytes of registers, stacks and data that were searched.
	Roots uint64
	// Absent is writable memory of the program that the image lacks. If there is any, no block is Leaked: those to which
	// nothing points are Uncertain, and Groups has them.
	Absent []Absent
	notes  notes
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

// Count returns the number of blocks of h whose Reach is one of kinds, and the sum of their sizes in
// bytes.
func (l *Leaks) Count(h *Heap, kinds ...Reach) (blocks int, bytes uint64) {
	for i, x := range l.Reach {
		if slices.Contains(kinds, x) {
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
	// Unused are the parts of stacks below the stack pointers of tasks. What is there is old.
	Unused []Map
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
	g.findFields()
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
	for _, r := range from.Unused {
		g.unused = append(g.unused, span{r.Start, r.End})
	}
	g.unused = normal(g.unused)
	stacks := g.unused
	if len(m.Threads) == 0 && len(from.Data) > 0 { // without registers, the rest counts as stack
		known := m.known(from)
		stacks = append(subtract(roots, known), stacks...)
		roots = overlap(roots, known)
	}
	for _, t := range m.Threads {
		for _, v := range t.Values {
			if i, ok := g.target(0, v); ok {
				reach(i)
			}
		}
		l.Roots += uint64(len(t.Values) * m.PointerSize())
	}
	for _, s := range roots {
		l.Roots += s.end - s.start
		g.pointers(s, reach)
	}
	for i := range h.Blocks { // a block of unknown size may have any content: its pointers count
		if !h.Blocks[i].Sized() {
			reach(i)
		}
	}
	g.spread(reach)
	g.slack = true
	onSlack, onStack := mark(OnSlack), mark(OnStack)
	for i := range h.Blocks {
		if l.Reach[i] == Reachable {
			g.inTail(i, func(_ uint64, to int) { onSlack(to) })
		}
	}
	g.spread(onSlack)
	g.unused = nil
	for _, s := range normal(stacks) {
		l.Roots += s.end - s.start
		g.pointers(s, onStack)
	}
	g.spread(onStack)
	uncertain := mark(Uncertain)
	for i := range h.Blocks {
		if b := &h.Blocks[i]; h.Unknown(i) && b.Sized() {
			uncertain(i)
			g.pointers(span{b.Addr - uint64(b.meta), b.Addr}.words(m), uncertain)
			g.pointers(span{b.Addr + b.Size - 1, b.Addr + b.Size}.words(m), uncertain)
		}
	}
	for _, s := range heap {
		g.pointers(s.words(m), uncertain)
	}
	g.spread(uncertain)
	g.spreadPast(uncertain)
	if slices.Contains(l.Reach, Leaked) {
		g.findHidden(l, slices.Concat(roots, stacks, heap), uncertain)
	}
	l.Absent = m.Absent(from)
	g.group(l)
	if len(m.Threads) == 0 {
		l.notes.add("no registers: all memory outside of the heap counts as stack")
	}
	return l
}

// findHidden marks the blocks that hidden words in spans and in blocks that are not leaked lead to.
func (g *graph) findHidden(l *Leaks, spans []span, mark func(int)) {
	const none = -1
	type edge struct{ from, to int }
	var edges []edge
	for _, s := range spans {
		g.hidden(s, func(_ uint64, to int) { edges = append(edges, edge{none, to}) })
	}
	for _, s := range g.used {
		g.hidden(s, func(at uint64, to int) {
			if from, ok := g.find(at); ok && l.Reach[to] == Leaked {
				edges = append(edges, edge{from, to})
			}
		})
	}
	for again := true; again; {
		again = false
		for _, x := range edges {
			if l.Reach[x.to] == Leaked && (x.from == none || l.Reach[x.from] != Leaked) {
				again = true
				mark(x.to)
			}
		}
		g.spread(mark)
		g.spreadPast(mark)
	}
}

// Unknown reports whether the content of a block, given by its index, may be anything, so that its pointers count: the size
// of the block is not known, or in a heap of an allocator, its header was overwritten or is in doubt.
func (h *Heap) Unknown(block int) bool {
	b := &h.Blocks[block]
	return !b.Sized() || h.Foreign && (b.Damaged || b.flags&doubtful != 0)
}

// threadBlock is the number of bytes on either side of a thread pointer that count as
// thread-local variables.
const threadBlock = 4096

// known returns the data and bss of the program's files, and its thread-local variables.
func (m *Image) known(from Roots) (known []span) {
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
	return normal(known)
}

// rootSpans divides the writable memory of the program into roots (stacks, data and bss) and
// heap memory outside all blocks. Memory below a stack pointer belongs to neither.
func (m *Image) rootSpans(h *Heap, used []span, from Roots) (roots, heap []span) {
	known, areas := m.known(from), m.areas(used)
	var stacks []uint64
	for _, t := range m.Threads {
		stacks = append(stacks, t.SP)
	}
	slices.Sort(stacks)
	var arenas, dead []span
	var in []stack
	for _, a := range areas {
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
			in = append(in, stack{area: a, sp: stacks[i]})
		}
	}
	slices.SortFunc(in, func(a, b stack) int { return cmp.Compare(a.sp, b.sp) })
	if len(in) > 0 {
		m.describe(in, known)
	}
	for _, s := range in {
		area := []span{s.area}
		dead = append(dead, m.unused(s, append(overlap(area, known), overlap(area, used)...)))
	}
	if h.Foreign { // all memory of the allocator is known
		return subtract(subtract(normal(areas), used), normal(dead)), normal(h.doubtful)
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
	all := subtract(normal(areas), normal(used))
	heap = subtract(overlap(all, arenas), normal(dead))
	roots = subtract(subtract(all, arenas), normal(dead))
	return roots, heap
}

// areas returns the memory of the program that it can have written, by map if there are maps: it may have made a map read-only
// since, as the loader does with tables of libc. It omits the last byte of the address space and, of memory that a
// microcontroller has at two addresses, the one without blocks in use.
func (m *Image) areas(used []span) (list []span) {
	for _, r := range m.Maps {
		if r.Write || !r.Exec && !r.absent {
			list = append(list, span{r.Start, r.End})
		}
	}
	for _, s := range m.Segments() {
		if s.Write && !s.ELF && m.MapAt(s.Addr) == nil {
			list = append(list, span{s.Addr, max(s.End(), s.End()-1)})
		}
	}
	if len(m.Maps) > 0 && !m.Guest {
		return list
	}
	inUse := func(a span) bool { return len(overlap([]span{a}, used)) > 0 }
	held := slices.DeleteFunc(slices.Clone(list), func(a span) bool { return !inUse(a) })
	return slices.DeleteFunc(list, func(a span) bool {
		return !inUse(a) && slices.ContainsFunc(held, func(o span) bool { return m.equal(a, o) })
	})
}

// equal reports whether two ranges have the same bytes.
func (m *Image) equal(a, b span) bool {
	if a.end-a.start != b.end-b.start {
		return false
	}
	x, ok := m.Bytes(a.start, a.end-a.start)
	y, also := m.Bytes(b.start, b.end-b.start)
	return ok && also && bytes.Equal(x, y)
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
