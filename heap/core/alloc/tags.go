package alloc

import "fmt"

// tags reads chunks with boundary tags, of Doug Lea's malloc and those derived from it (glibc,
// newlib). A chunk overlaps the first word of the next one:
//
//	│ size of previous chunk, if free │ size and flags │ block … ┊ its last word │ size and flags │
//	  ↑ chunk                                                      ↑ next chunk
//
// Flags: bit 0, the previous chunk is used; bit 1, mapped; in glibc bit 2, not of the main arena. So
// the state of a chunk is in the header of the next one.
type tags struct {
	*finder
	end      uint64 // of the chain: the header of the top chunk, whose bit 0 is set
	align    uint64
	flags    uint64                 // mask of flags
	unwanted uint64                 // flags that no chunk has
	marks    func(addr uint64) bool // reports whether end marks are at an address; nil if there are none
}

// size reads the size of a chunk.
func (t *tags) size(addr uint64) (size, flags uint64, why string) {
	v, ok := t.m.Pointer(addr + t.ptr)
	if !ok {
		return 0, 0, "no memory"
	}
	size, flags = v&^t.flags, v&t.flags
	switch {
	case size < 4*t.ptr || size%t.align != 0:
		return 0, 0, fmt.Sprintf("the size of the header is %#x, expected a multiple of %d from %d on", size, t.align, 4*t.ptr)
	case size > t.end-addr:
		return 0, 0, fmt.Sprintf("the size of the header is %#x, expected up to %#x", size, t.end-addr)
	case flags&t.unwanted != 0:
		return 0, 0, fmt.Sprintf("the flags of the header are %d", flags)
	}
	return size, flags, ""
}

func (t *tags) chunk(addr uint64) (c chunk, why string) {
	size, _, why := t.size(addr)
	if why != "" {
		return c, why
	}
	b := Block{Addr: addr + 2*t.ptr, Size: size - t.ptr, Header: uint16(t.ptr)}
	c = chunk{size: size, block: b}
	next := addr + size
	if next >= t.end {
		return c, ""
	}
	_, flags, damaged := t.size(next)
	if t.marks != nil && t.marks(next) {
		flags, _ = t.m.Pointer(next + t.ptr)
		damaged = ""
	}
	if damaged != "" {
		return c, ""
	}
	again, _ := t.m.Pointer(next)
	forth, back := t.linked(addr)
	free := flags&1 == 0
	switch listed := forth && back; {
	case free && again == size:
		c.block.State = Free
		switch {
		case !forth && !back:
			c.odd, c.oddAt, c.link = "the block is free, but in no list of free blocks", addr+2*t.ptr, true
		case !listed:
			c.odd, c.oddAt = t.halfLinked(addr, forth)
			c.link = true
		}
	case free && listed:
		c.block.State = Free
		c.odd, c.oddAt = fmt.Sprintf("the size of the free block is %#x, behind it %#x", size, again), next
	case free:
		if start := next - again; start > addr && start < next { // the header of a free block may be there
			if v, _, why := t.size(start); why == "" && v == again {
				return chunk{block: b}, fmt.Sprintf("the size of the header is %#x, behind the block it is %#x", size, again)
			}
		}
		c.odd, c.oddAt = "the header says that the block before it is free, which is in no list of free blocks", next+t.ptr
	case listed && again == size:
		c.block.State = Free
		c.odd, c.oddAt = "the header says that the block before it is used, which is in a list of free blocks", next+t.ptr
	}
	return c, ""
}

// linked reports whether the next chunk in the list of a free chunk points back to it, and whether the previous one
// does.
func (t *tags) linked(addr uint64) (forth, back bool) {
	next, _ := t.m.Pointer(addr + 2*t.ptr)
	prev, _ := t.m.Pointer(addr + 3*t.ptr)
	a, _ := t.m.Pointer(next + 3*t.ptr)
	b, _ := t.m.Pointer(prev + 2*t.ptr)
	return a == addr, b == addr
}

// halfLinked returns which link is wrong of a free chunk to which only one neighbour in its list points back: its own,
// unless the other neighbour is linked to others.
func (t *tags) halfLinked(addr uint64, forth bool) (what string, at uint64) {
	own := uint64(2) // word with the link that is not answered
	if forth {
		own = 3
	}
	v, _ := t.m.Pointer(addr + own*t.ptr)
	a, b := t.linked(v)
	if v%t.align == addr%t.align && v != addr && !a && !b { // a free block, of which both links were overwritten?
		size, _, why := t.size(v)
		again, _ := t.m.Pointer(v + size)
		if _, flags, _ := t.size(v + size); why == "" && again == size && flags&1 == 0 {
			return "the block is free, but in no list of free blocks", v + 2*t.ptr
		}
	}
	if v%t.ptr == 0 && (a || b) && v != addr {
		return fmt.Sprintf("a link of the list of free blocks does not lead back to %#x", addr), v + (5-own)*t.ptr
	}
	return fmt.Sprintf("a link of the list of free blocks is %#x", v), addr + own*t.ptr
}

// topChunk adds the last chunk of an arena, which is free.
func (f *finder) topChunk(h *Heap, top, size uint64) {
	_, ok := f.m.Uint(top+size-1, 1)
	_, begins := f.m.Uint(top, 1)
	if !ok || !begins || size < 2*f.ptr || top+size < top {
		h.prove(fmt.Sprintf("the top chunk at %#x is in the image", top), 1, 0)
		return
	}
	if size > 2*f.ptr {
		h.Blocks = append(h.Blocks, Block{Addr: top + 2*f.ptr, Size: size - 2*f.ptr, Header: uint16(f.ptr), State: Free})
	}
}
