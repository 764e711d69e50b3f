package core

import "sort"

// Pointers finds the pointers to the blocks of a heap. An aligned word counts as a pointer if it
// holds the address of any byte of a block.
type Pointers struct {
	g           *graph
	roots, heap []span
}

// Pointers returns the pointers to the blocks of h. from is as for [Image.FindLeaks].
func (m *Image) Pointers(h *Heap, from Roots) *Pointers {
	p := &Pointers{g: newGraph(m, h)}
	p.g.slack = true
	p.roots, p.heap = m.rootSpans(h, p.g.used, from)
	return p
}

// Roots calls visit for each pointer outside of blocks: in data, stacks and other memory of the
// program. loose reports whether the pointer is in heap memory that is in no block.
func (p *Pointers) Roots(visit func(at uint64, block int, loose bool)) {
	for _, s := range p.roots {
		p.g.pointersAt(s, func(at uint64, block int) { visit(at, block, false) })
	}
	for _, s := range p.heap {
		p.g.pointersAt(s, func(at uint64, block int) { visit(at, block, true) })
	}
}

// In calls visit for each pointer in a block.
func (p *Pointers) In(block int, visit func(at uint64, to int)) {
	sure, _ := p.g.parts(block)
	p.g.pointersAt(sure, visit)
	p.g.inTail(block, visit)
}

// Block returns the block that holds an address.
func (p *Pointers) Block(addr uint64) (block int, ok bool) { return p.g.find(addr) }

// graph finds the blocks that memory points to.
type graph struct {
	*places
	m      *Image
	work   []int32
	used   []span   // blocks with their metadata
	past   []int32  // blocks with a pointer one past their end, or one that may be a link, that are not marked yet
	links  []uint64 // bits of the blocks that were in past
	begun  []uint64 // bits of positions, of blocks with a pointer to their start and another one close behind them
	unused []span   // parts of stacks that are not followed
	slack  bool     // words that the program may not have requested are followed, too
	old    bool     // the words that are searched are such
	fields map[field]bool
}

func newGraph(m *Image, h *Heap) *graph {
	g := &graph{places: h.index(m), m: m, links: make([]uint64, len(h.Blocks)/64+1), begun: make([]uint64, len(h.Blocks)/64+1)}
	inside := normal(h.inside) // of an arena: few ranges for all its blocks
	for i := range h.Blocks {
		b, end := g.block(i), g.end(i)
		if k := sort.Search(len(inside), func(k int) bool { return inside[k].end >= end }); k == len(inside) || inside[k].start > b.Addr {
			g.used = append(g.used, span{b.Addr - min(b.Addr, h.headerSize(b, g.ptr)), end})
		}
	}
	g.used = normal(append(g.used, inside...))
	return g
}

// firstElement is the number of bytes in front of a block that an address may be in, if it is that of an array whose indexes begin
// with 1.
const firstElement = 16

// target returns the block that holds v, the word at an address, 0 in a register. It records the blocks that v may also be a pointer
// to: the one that ends at v, if it is an address in no block, and the one behind v.
func (g *graph) target(at, v uint64) (block int, ok bool) {
	i := g.before(v)
	if i+1 < len(g.h.Blocks) && g.block(i+1).Addr-v <= firstElement && g.oneBased(at, v, i) {
		g.maybe(g.at(i + 1))
	}
	if i < 0 {
		return -1, false
	}
	b := g.block(i)
	if ok = v < g.end(i); !ok && b.Sized() && b.Size > 0 && b.Addr+b.Size == v {
		g.maybe(g.at(i))
	}
	return g.at(i), ok
}

// oneBased reports whether v, an address at or behind the block at position i, may be that of an array in the next block, whose
// indexes begin with 1: an element fits, and two if the word at an address may be an old one. It may not be the address of lws's node,
// which lists and old words of their code have; nor the first pointer to the start of the block at i; nor one into that block in
// the first two words of another block, which may be a link of a list of free blocks.
func (g *graph) oneBased(at, v uint64, i int) bool {
	b := g.block(i + 1)
	element := b.Addr - v
	if !b.Sized() {
		return true
	}
	if !g.h.Foreign && element == 3*g.ptr {
		return false // the node of the list
	}
	if i >= 0 && v < g.end(i) && element > firstElement/2 {
		if w, ok := g.find(at); ok && at-g.h.Blocks[w].Addr < 2*g.ptr {
			return false
		}
	}
	old := g.old
	if i >= 0 && v == g.block(i).Addr {
		bit := uint64(1) << (i % 64)
		if g.begun[i/64]&bit == 0 {
			g.begun[i/64] |= bit
			return false
		}
		old = true
	}
	if old {
		element *= 2
	}
	return element <= b.Size
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

// searchCost is the number of bytes that Passed counts for a search, besides those of the span: it reads from another page, or the
// same.
const searchCost = 256

// pointersAt is like pointers; visit has the address of the pointer, too.
func (g *graph) pointersAt(s span, visit func(at uint64, block int)) {
	if len(g.unused) > 0 {
		for _, s := range subtract([]span{s}, g.unused) {
			g.pointersIn(s, visit)
		}
		return
	}
	g.pointersIn(s, visit)
}

func (g *graph) pointersIn(s span, visit func(at uint64, block int)) {
	low, high, ok := g.limits()
	if !ok {
		return
	}
	low -= min(low, firstElement)
	size, read := g.m.PointerSize(), g.m.Words()
	g.m.each(s, func(addr uint64, b []byte) {
		for at := int(-addr & uint64(size-1)); at+size <= len(b); at += size {
			v := read.Word(b[at:])
			if v < low || v > high {
				continue
			}
			switch i, ok := g.target(addr+uint64(at), v); {
			case !ok:
			case g.h.Foreign && g.h.Blocks[i].isLink(v):
				g.maybe(i)
			case g.h.Foreign || !g.isFreeList(addr+uint64(at), v, i):
				visit(addr+uint64(at), i)
			}
		}
	})
}

// each calls visit for the known bytes in a span, without those of ELF files, with their address.
func (m *Image) each(s span, visit func(addr uint64, b []byte)) {
	segs := m.SegmentsIn(s.start, s.end)
	for i := range segs {
		if segs[i].ELF {
			continue
		}
		part := segs[i].in(s)
		m.Passed(uint64(len(part.Data)) + searchCost)
		for off, b := range part.extents() {
			visit(part.Addr+uint64(off), b)
		}
	}
}

// hidden calls visit for each word in a span that leads to the start of a block and is no aligned address: one of a packed struct,
// or in 64 bits one with a tag in its top 16 bits, as in NaN-boxed values and lock-free lists.
func (g *graph) hidden(s span, visit func(at uint64, block int)) {
	low, high, ok := g.limits()
	if !ok {
		return
	}
	size, read := g.m.PointerSize(), g.m.Words()
	const page, step = 4096, 64
	g.m.each(s, func(addr uint64, b []byte) {
		aligned := int(-addr & uint64(size-1))
		for from := 0; from < len(b); from += step {
			if from%page == 0 { // what each passes is much
				g.m.Passed(page)
			}
			if allZero(b[from:min(from+step+size, len(b))]) { // much memory is
				continue
			}
			for at := from; at < min(from+step, len(b)-size+1); at++ {
				v := read.Word(b[at:])
				if at&(size-1) == aligned {
					v = untag(v)
				}
				if v < low || v > high {
					continue
				}
				if i, ok := g.find(v); ok && g.h.Blocks[i].Addr == v {
					visit(addr+uint64(at), i)
				}
			}
		}
	})
}

// untag returns an aligned word without its tag in the top 16 of 64 bits, 0 if it has none.
func untag(v uint64) uint64 {
	if v>>48 == 0 {
		return 0
	}
	return v & (1<<48 - 1)
}

// inTail calls visit for each pointer in the last words of a block, which the program may not have requested. An address
// there that is not aligned may be a number with a rest of an old pointer: it makes a block uncertain, unless the block begins there.
// Others that the program may not have requested are old, or those of a field: this is sure of a word of which a part was requested, if a block begins at its address, and of
// one that is a field in blocks of this size. Without g.slack, only these count.
func (g *graph) inTail(block int, visit func(at uint64, to int)) {
	b := &g.h.Blocks[block]
	_, tail := g.parts(block)
	g.old = true
	defer func() { g.old = false }()
	g.pointersAt(tail, func(at uint64, to int) {
		v, _ := g.m.Pointer(at)
		begins := v == g.h.Blocks[to].Addr
		switch {
		case v%g.ptr != 0 && !begins:
			g.maybe(to)
		case g.slack, at+g.ptr+uint64(b.slack) <= b.Addr+b.Size, begins && (at+uint64(b.slack) < b.Addr+b.Size || g.fields[field{b.Size, b.Addr + b.Size - at}]):
			visit(at, to)
		}
	})
}

// field is a word of blocks of a size, by its distance from their end.
type field struct{ size, fromEnd uint64 }

// fewFields is the number of blocks of a size from which on a word is known to be a field: in half of them, it holds the
// address at which a block begins.
const fewFields = 8

// findFields finds the fields in the last words of blocks.
func (g *graph) findFields() {
	counts := map[field]*[2]int{} // of blocks, and of those with a pointer
	for i := range g.h.Blocks {
		b := &g.h.Blocks[i]
		for left := g.ptr; left <= uint64(b.slack) && left <= b.Size; left += g.ptr {
			k := field{b.Size, left}
			if counts[k] == nil {
				counts[k] = new([2]int)
			}
			counts[k][0]++
			v, _ := g.m.Pointer(b.Addr + b.Size - left)
			if to, ok := g.find(v); ok && g.h.Blocks[to].Addr == v {
				counts[k][1]++
			}
		}
	}
	g.fields = map[field]bool{}
	for k, n := range counts {
		g.fields[k] = n[0] >= fewFields && 2*n[1] >= n[0]
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

// spread follows the pointers in marked blocks.
func (g *graph) spread(mark func(int)) {
	for len(g.work) > 0 {
		at := g.work[len(g.work)-1]
		g.work = g.work[:len(g.work)-1]
		sure, _ := g.parts(int(at))
		g.pointers(sure, mark)
		g.inTail(int(at), func(_ uint64, to int) { mark(to) })
	}
}

// spreadPast marks the blocks that words past their end or in front of them may mean. Each pass may find more.
func (g *graph) spreadPast(mark func(int)) {
	for len(g.past) > 0 {
		past := g.past
		g.past = nil
		for _, i := range past {
			mark(int(i))
		}
		g.spread(mark)
	}
}
