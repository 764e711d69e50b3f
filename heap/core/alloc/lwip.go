package alloc

// lwIP, src/core/mem.c: a chain in the array ram_heap, from ram to ram_end. Next and previous are offsets from ram, of 16 or 32
// bits; those of the last chunk, which has no block, lead to itself:
//
//	│ next │ previous │ used, 8 bits │ padding │ block …
//
// There is no list of free chunks: lfree is the lowest one.

func (f *finder) lwip() ([]*Heap, error) {
	h := &Heap{Kind: LwIP, Name: "lwIP heap", slack: 7, least: 12}
	array, ok := f.variable("ram_heap")
	ram, has := f.pointer(h, "ram")
	end, last := f.pointer(h, "ram_end")
	low, lowest := f.pointer(h, "lfree")
	if !ok || !has || !last || !lowest || ram < array.Addr || end <= ram || end >= array.Addr+array.Size {
		return nil, ErrNone
	}
	s := &lwipHeap{finder: f, h: h, start: ram, end: end, base: ram, align: 1, joins: true}
	if !s.fields(array.Size - (end - ram)) {
		return nil, ErrNone
	}
	s.state = func(addr uint64) (used, ok bool) {
		v, ok := f.m.Uint(addr+2*s.field, 1)
		return v == 1, ok && v <= 1
	}
	h.Addr = ram
	sum := (*linked)(s).read("the blocks end at ram_end")
	if v, ok := s.counted(); ok {
		h.prove("bytes in use by lwip_stats", v, sum.used)
	}
	h.prove("the lowest free block is that of lfree", low, sum.lowest)
	checked := len(h.Blocks) > 1
	for i := range h.Blocks {
		v, _ := f.m.Uint(h.Blocks[i].Addr, 4)
		checked = checked && (h.Blocks[i].State == Free || v == 0xcdcdcdcd)
	}
	if checked {
		h.prove("blocks without the regions of MEM_OVERFLOW_CHECK", 1, 0)
	}
	h.own(array.Addr, array.Size)
	return []*Heap{h}, nil
}

// lwipHeap is the heap of lwIP.
type lwipHeap linked

// counted returns the number of bytes in use of lwip_stats.mem: number of bytes │ in use │ most in use.
func (s *lwipHeap) counted() (used uint64, ok bool) {
	stats, ok := s.variable("lwip_stats")
	if !ok {
		return 0, false
	}
	for at := stats.Addr; at < stats.Addr+stats.Size; at += s.field {
		all, _ := s.m.Uint(at, int(s.field))
		used, _ = s.m.Uint(at+s.field, int(s.field))
		if most, ok := s.m.Uint(at+2*s.field, int(s.field)); ok && all == s.end-s.start && most <= all && most > 0 {
			return used, true
		}
	}
	return 0, false
}

// fields finds the sizes of an offset and of the header: the array has two headers, and the alignment less one, more than the heap.
func (s *lwipHeap) fields(more uint64) bool {
	for _, s.field = range []uint64{2, 4} {
		next, _ := s.m.Uint(s.end, int(s.field))
		if prev, _ := s.m.Uint(s.end+s.field, int(s.field)); next != s.end-s.start || prev != next {
			continue
		}
		for _, align := range []uint64{1, 2, 4, 8} {
			s.header = up(up(2*s.field+1, s.field), align)
			if s.prev, s.least = s.field, s.header; more == 2*s.header+align-1 {
				return true
			}
		}
	}
	return false
}
