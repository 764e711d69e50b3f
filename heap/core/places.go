package core

import (
	"cmp"
	"slices"
	"sort"
)

// places finds the blocks of a heap by address.
type places struct {
	h     *Heap
	ptr   uint64
	order []int32 // indexes of Heap.Blocks by address; nil if they are in this order
	list  []place
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

// BlockAt returns the block that holds an address.
func (m *Image) BlockAt(h *Heap, addr uint64) (block int, ok bool) { return h.index(m).find(addr) }

// index returns the places of a heap, which are computed once.
func (h *Heap) index(m *Image) *places {
	if h.places != nil && len(h.Blocks) == h.indexed {
		return h.places
	}
	p := &places{h: h, ptr: uint64(m.PointerSize())}
	if !slices.IsSortedFunc(h.Blocks, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) }) {
		p.order = h.sorted()
	}
	for i := range h.Blocks {
		b := p.block(i)
		if i == 0 || b.Addr-p.block(i-1).Addr > placeGap {
			p.list = append(p.list, place{start: b.Addr})
		}
		x := &p.list[len(p.list)-1]
		for page := (b.Addr - x.start) >> pageBits; uint64(len(x.first)) <= page; {
			x.first = append(x.first, int32(i))
		}
	}
	for i := range p.list {
		next := len(h.Blocks)
		if i+1 < len(p.list) {
			next = int(p.list[i+1].first[0])
		}
		p.list[i].first = append(p.list[i].first, int32(next))
	}
	h.places, h.indexed = p, len(h.Blocks)
	return p
}

// at returns the index of a block by its position in the order of addresses.
func (p *places) at(i int) int {
	if p.order != nil {
		return int(p.order[i])
	}
	return i
}

// block returns the block at a position in the order of addresses.
func (p *places) block(i int) *Block { return &p.h.Blocks[p.at(i)] }

// end returns the address behind the block at a position: its end, or the metadata of the next one.
func (p *places) end(i int) uint64 {
	b := p.block(i)
	end := addSize(b.Addr, max(b.Size, 1))
	if !b.Sized() {
		end = addSize(b.Addr, maxUnsized)
	}
	if i+1 < len(p.h.Blocks) {
		next := p.block(i + 1)
		end = min(end, max(b.Addr+1, next.Addr-p.h.headerSize(next, p.ptr)))
	}
	return end
}

// limits returns the address of the first block, and the end of the last one. ok is false if there are no blocks.
func (p *places) limits() (low, high uint64, ok bool) {
	if len(p.list) == 0 {
		return 0, 0, false
	}
	return p.list[0].start, p.end(len(p.h.Blocks) - 1), true
}

// before returns the position of the last block that begins at an address or before, -1 if there is none.
func (p *places) before(v uint64) int {
	k := sort.Search(len(p.list), func(k int) bool { return p.list[k].start > v }) - 1
	if k < 0 {
		return -1
	}
	x := &p.list[k]
	page := min((v-x.start)>>pageBits, uint64(len(x.first)-2))
	low, high := int(x.first[page]), int(x.first[page+1])
	for low < high { // the first block behind v is between
		if mid := (low + high) / 2; p.block(mid).Addr > v {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low - 1
}

// find returns the index of the block that holds an address, or, if ok is false, of that before it, -1 if there is none.
func (p *places) find(v uint64) (block int, ok bool) {
	i := p.before(v)
	if i < 0 {
		return -1, false
	}
	return p.at(i), v < p.end(i)
}

// parts returns the memory of a block, given by its index: the words that the program requested, and the last ones, which
// it may not have requested: in the smallest blocks, this may be all.
func (p *places) parts(block int) (sure, tail span) {
	s := p.content(block)
	b := &p.h.Blocks[block]
	if b.flags&smallest != 0 {
		return span{}, s
	}
	from := max(s.start, (s.end-min(s.end, uint64(b.slack)))&^(p.ptr-1))
	return span{s.start, from}, span{from, s.end}
}

// content returns the memory of a block, given by its index in Heap.Blocks.
func (p *places) content(block int) span {
	i := block
	if p.order != nil {
		i = p.before(p.h.Blocks[block].Addr)
	}
	return span{p.h.Blocks[block].Addr, p.end(i)}
}
