package core

import (
	"cmp"
	"slices"
	"sort"
)

// Pointers finds the pointers to the blocks of a heap. An aligned word counts as a pointer if it
// holds the address of any byte of a block.
type Pointers struct {
	g           *graph
	roots, heap []span
}

// Pointers returns the pointers to the blocks of h. from is as for [Image.FindLeaks].
func (m *Image) Pointers(h *Heap, from Roots) *Pointers {
	p := &Pointers{g: newGraph(m, h)}
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
	p.g.pointersAt(p.g.content(block), visit)
}

// Block returns the block that holds an address.
func (p *Pointers) Block(addr uint64) (block int, ok bool) { return p.g.find(addr) }

// graph finds the blocks that memory points to.
type graph struct {
	m      *Image
	h      *Heap
	order  []int32 // indexes of Heap.Blocks by address; nil if they are in this order
	places []place // memory with blocks
	work   []int32
	used   []span   // blocks with their metadata
	past   []int32  // blocks with a pointer one past their end, or one that may be a link, that are not marked yet
	links  []uint64 // bits of the blocks that were in past
}

// place is memory in which blocks begin, without large gaps. For each of its pages, first has the position of the first block
// that begins there or later; the last one is that of the next place.
type place struct {
	start uint64
	first []int32
}

// In a place, at most placeGap bytes are from the start of a block to that of the next one. Its pages have 1<<pageBits bytes.
const (
	placeGap = 1 << 16
	pageBits = 10
)

// maxUnsized is the number of bytes of a block of unknown size that are searched.
const maxUnsized = 64 << 10

func newGraph(m *Image, h *Heap) *graph {
	g := &graph{m: m, h: h, links: make([]uint64, len(h.Blocks)/64+1)}
	if !slices.IsSortedFunc(h.Blocks, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) }) {
		g.order = h.sorted()
	}
	ptr := uint64(m.PointerSize())
	inside := normal(h.inside) // of an arena: few ranges for all its blocks
	for i := range h.Blocks {
		b, end := g.block(i), g.end(i)
		if k := sort.Search(len(inside), func(k int) bool { return inside[k].end >= end }); k == len(inside) || inside[k].start > b.Addr {
			g.used = append(g.used, span{b.Addr - min(b.Addr, h.headerSize(b, ptr)), end})
		}
		if i == 0 || b.Addr-g.block(i-1).Addr > placeGap {
			g.places = append(g.places, place{start: b.Addr})
		}
		p := &g.places[len(g.places)-1]
		for page := (b.Addr - p.start) >> pageBits; uint64(len(p.first)) <= page; {
			p.first = append(p.first, int32(i))
		}
	}
	for i := range g.places {
		next := len(h.Blocks)
		if i+1 < len(g.places) {
			next = int(g.places[i+1].first[0])
		}
		g.places[i].first = append(g.places[i].first, int32(next))
	}
	g.used = normal(append(g.used, inside...))
	return g
}

// index returns the index of a block by its position in the order of addresses.
func (g *graph) index(i int) int {
	if g.order != nil {
		return int(g.order[i])
	}
	return i
}

// block returns the block at a position in the order of addresses.
func (g *graph) block(i int) *Block { return &g.h.Blocks[g.index(i)] }

// end returns the address behind the block at a position: its end, or the metadata of the next one.
func (g *graph) end(i int) uint64 {
	b := g.block(i)
	end := addSize(b.Addr, max(b.Size, 1))
	if !b.Sized() {
		end = addSize(b.Addr, maxUnsized)
	}
	if i+1 < len(g.h.Blocks) {
		next := g.block(i + 1)
		end = min(end, max(b.Addr+1, next.Addr-g.h.headerSize(next, uint64(g.m.PointerSize()))))
	}
	return end
}

// before returns the position of the last block that begins at an address or before, -1 if there is none.
func (g *graph) before(v uint64) int {
	k := sort.Search(len(g.places), func(k int) bool { return g.places[k].start > v }) - 1
	if k < 0 {
		return -1
	}
	p := &g.places[k]
	page := min((v-p.start)>>pageBits, uint64(len(p.first)-2))
	low, high := int(p.first[page]), int(p.first[page+1])
	for low < high { // the first block behind v is between
		if mid := (low + high) / 2; g.block(mid).Addr > v {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low - 1
}

// find returns the index of the block that holds an address, or, if ok is false, of that before it, -1 if there is none.
func (g *graph) find(v uint64) (block int, ok bool) {
	i := g.before(v)
	if i < 0 {
		return -1, false
	}
	return g.index(i), v < g.end(i)
}

// ends records block if it ends at v, an address in no block.
func (g *graph) ends(v uint64, block int) {
	if block >= 0 {
		if b := &g.h.Blocks[block]; b.Sized() && b.Size > 0 && b.Addr+b.Size == v {
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
	if len(g.places) == 0 {
		return
	}
	size, order := g.m.PointerSize(), g.m.ByteOrder()
	low, high := g.places[0].start, g.end(len(g.h.Blocks)-1)
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
	i := block
	if g.order != nil {
		i = g.before(g.h.Blocks[block].Addr)
	}
	return span{g.h.Blocks[block].Addr, g.end(i)}
}

// spread follows the pointers in marked blocks.
func (g *graph) spread(mark func(int)) {
	for len(g.work) > 0 {
		at := g.work[len(g.work)-1]
		g.work = g.work[:len(g.work)-1]
		g.pointers(g.content(int(at)), mark)
	}
}
