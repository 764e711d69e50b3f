package alloc

import "fmt"

// linked reads a chain of headers that lead to the next one, by its address or its distance from the first header, up to
// an end mark:
//
//	│ next │ [previous] │ state │ … block …
type linked struct {
	*finder
	h          *Heap
	start, end uint64 // first header and end mark
	header     uint64 // bytes of a header
	least      uint64 // bytes of a chunk
	field      uint64 // bytes of a link
	next, prev uint64 // offsets of the links in a header
	base       uint64 // added to links
	align      uint64 // of headers
	oneWay     bool   // there is no link to the previous header
	// state reads whether a chunk is used. ok is false if it is no header of this heap.
	state func(addr uint64) (used, ok bool)
	joins bool // the allocator joins free chunks
	// odd returns what else contradicts a header, "" if nothing.
	odd func(addr uint64, used bool) string
}

// link reads a link.
func (s *linked) link(addr uint64) uint64 {
	v, _ := s.m.Uint(addr, int(s.field))
	return s.base + v
}

// chunk reads a chunk.
func (s *linked) chunk(addr uint64) (c chunk, why string) {
	used, ok := s.state(addr)
	next := s.link(addr + s.next)
	switch {
	case !ok:
		return c, "the header does not lead to its heap, or has another state than used or free"
	case next < addr+s.least || next > s.end || next%s.align != 0:
		return c, fmt.Sprintf("the next header is at %#x, expected %#x to %#x", next, addr+s.least, s.end)
	}
	c = chunk{size: next - addr, block: Block{Addr: addr + s.header, Size: next - addr - s.header, Header: uint16(s.header), State: Free}}
	if used {
		c.block.State = Used
	}
	if prev := s.link(addr + s.prev); !s.oneWay && prev >= addr && (addr != s.start || prev != addr && prev != s.end) {
		return c, fmt.Sprintf("the previous header is at %#x, expected less than %#x", prev, addr)
	}
	behind, intact := s.state(next)
	back := s.link(next + s.prev)
	switch {
	case next == s.end:
	case !intact:
		c.alone = s.oneWay || back != addr
	case !s.oneWay && back != addr:
		return c, fmt.Sprintf("the next header leads back to %#x, not to %#x", back, addr)
	case s.joins && !used && !behind:
		c.odd, c.oddAt = "two free blocks follow each other, which the allocator joins", next
	}
	if s.odd != nil && c.odd == "" {
		c.odd, c.oddAt = s.odd(addr, used), addr
	}
	return c, ""
}

// sums are those of the chunks of a heap.
type sums struct {
	used   uint64 // bytes with headers
	free   uint64 // bytes
	holes  uint64 // free blocks
	lowest uint64 // header of the lowest free one, or the end mark
}

// read adds the blocks of the chain, proves that it ends at its end mark, and returns their sums.
func (s *linked) read(check string) (x sums) {
	c := chain{f: s.finder, h: s.h, start: s.start, end: s.end, align: s.align, least: s.least, confirm: confirm, read: s.chunk}
	s.h.prove(check, s.end, c.walk())
	x.lowest = s.end
	for i := range s.h.Blocks {
		switch b := &s.h.Blocks[i]; b.State {
		case Used:
			x.used += b.Size + s.header
		default:
			x.free, x.holes, x.lowest = x.free+b.Size, x.holes+1, min(x.lowest, b.start())
		}
	}
	return x
}
