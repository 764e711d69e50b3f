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
	b := Block{Addr: addr + 2*t.ptr, Size: size - t.ptr, Header: t.ptr}
	b.Max = b.Size
	b.Min = b.Size - min(b.Size, t.align-1+4*t.ptr) // a rest of 4 words or less is not split off
	if next := addr + size; next < t.end {
		_, flags, damaged := t.size(next)
		if t.marks != nil && t.marks(next) {
			flags, _ = t.m.Pointer(next + t.ptr)
			damaged = ""
		}
		if damaged == "" && flags&1 == 0 {
			again, _ := t.m.Pointer(next)
			b.State = Free
			if again != size {
				if start := next - again; start > addr && start < next { // the header of a free block may be there
					if v, _, why := t.size(start); why == "" && v == again {
						size = 0
					}
				}
				return chunk{size: size, block: b}, fmt.Sprintf("the size of the header is %#x, behind the block it is %#x", b.Size+t.ptr, again)
			}
		}
	}
	return chunk{size: size, block: b}, ""
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
		h.Blocks = append(h.Blocks, Block{Addr: top + 2*f.ptr, Size: size - 2*f.ptr, Header: f.ptr, State: Free})
	}
}
