package alloc

import "fmt"

// lwIP, src/core/mem.c: a chain in the array ram_heap, from ram to ram_end. Next and previous are offsets from ram, of 16 or 32
// bits; those of the last chunk, which has no block, lead to itself:
//
//	│ next │ previous │ used, 8 bits │ padding │ block …
//
// There is no list of free chunks: lfree is the lowest one.

// lwipHeap is the heap of lwIP.
type lwipHeap struct {
	*finder
	ram, end      uint64
	field, header uint64 // bytes of an offset, and of the header
}

func (f *finder) lwip() ([]*Heap, error) {
	h := &Heap{Kind: LwIP, Name: "lwIP heap"}
	array, ok := f.variable("ram_heap")
	ram, has := f.pointer(h, "ram")
	end, last := f.pointer(h, "ram_end")
	low, lowest := f.pointer(h, "lfree")
	if !ok || !has || !last || !lowest || ram < array.Addr || end <= ram || end >= array.Addr+array.Size {
		return nil, ErrNone
	}
	s := &lwipHeap{finder: f, ram: ram, end: end}
	if !s.fields(array.Size - (end - ram)) {
		return nil, ErrNone
	}
	h.Addr, h.slack, h.least = ram, 7, 12
	c := chain{f: f, h: h, start: ram, end: end, align: 1, least: s.header, confirm: confirm, read: s.next}
	h.prove("the blocks end at ram_end", end, c.walk())
	first := end // the lowest free chunk
	checked, used := true, uint64(0)
	for i := range h.Blocks {
		b := &h.Blocks[i]
		if b.State == Free {
			first = min(first, b.start())
			continue
		}
		used += b.Size + b.header()
		if v, _ := f.m.Uint(b.Addr, 4); v != 0xcdcdcdcd {
			checked = false
		}
	}
	if v, ok := s.counted(); ok {
		h.prove("bytes in use by lwip_stats", v, used)
	}
	h.prove("the lowest free block is that of lfree", low, first)
	if checked && len(h.Blocks) > 1 {
		h.prove("blocks without the regions of MEM_OVERFLOW_CHECK", 1, 0)
	}
	h.own(array.Addr, array.Size)
	return []*Heap{h}, nil
}

// counted returns the number of bytes in use of lwip_stats.mem: number of bytes │ in use │ most in use.
func (s *lwipHeap) counted() (used uint64, ok bool) {
	stats, ok := s.variable("lwip_stats")
	if !ok {
		return 0, false
	}
	for at := stats.Addr; at < stats.Addr+stats.Size; at += s.field {
		all, _ := s.m.Uint(at, int(s.field))
		used, _ = s.m.Uint(at+s.field, int(s.field))
		if most, ok := s.m.Uint(at+2*s.field, int(s.field)); ok && all == s.end-s.ram && most <= all && most > 0 {
			return used, true
		}
	}
	return 0, false
}

// fields finds the sizes of an offset and of the header: the array has two headers, and the alignment less one, more than the heap.
func (s *lwipHeap) fields(more uint64) bool {
	for _, s.field = range []uint64{2, 4} {
		next, _ := s.m.Uint(s.end, int(s.field))
		if prev, _ := s.m.Uint(s.end+s.field, int(s.field)); next != s.end-s.ram || prev != next {
			continue
		}
		for _, align := range []uint64{1, 2, 4, 8} {
			s.header = up(up(2*s.field+1, s.field), align)
			if more == 2*s.header+align-1 {
				return true
			}
		}
	}
	return false
}

// next reads a chunk.
func (s *lwipHeap) next(addr uint64) (c chunk, why string) {
	next, _ := s.m.Uint(addr, int(s.field))
	prev, _ := s.m.Uint(addr+s.field, int(s.field))
	used, ok := s.m.Uint(addr+2*s.field, 1)
	behind := s.ram + next
	switch {
	case !ok:
		return c, "no memory"
	case behind < addr+s.header || behind > s.end:
		return c, fmt.Sprintf("the next offset of the header is %#x, expected %#x to %#x", next, addr+s.header-s.ram, s.end-s.ram)
	case prev > addr-s.ram || prev == addr-s.ram && addr != s.ram:
		return c, fmt.Sprintf("the previous offset of the header is %#x, expected less than %#x", prev, addr-s.ram)
	case used > 1:
		return c, fmt.Sprintf("the header has %d for used, expected 0 or 1", used)
	}
	c = chunk{size: behind - addr, block: Block{Addr: addr + s.header, Size: behind - addr - s.header, Header: uint16(s.header), State: Free}}
	if used == 1 {
		c.block.State = Used
	}
	if back, _ := s.m.Uint(behind+s.field, int(s.field)); behind != s.end && s.ram+back != addr {
		return c, fmt.Sprintf("the next header leads back to %#x, not to %#x", s.ram+back, addr)
	}
	if after, _ := s.m.Uint(behind+2*s.field, 1); used == 0 && after == 0 && behind != s.end {
		c.odd, c.oddAt = "two free blocks follow each other, which the allocator joins", behind+2*s.field
	}
	return c, ""
}
