package alloc

// RT-Thread's small memory (mem.c) and memheap (memheap.c), 4.1 and 32 bits; symbols are not needed. Both are chains of headers, whose
// last one is an end mark in use:
//
//	small header:   address of the heap │ used, bit 0 │ next, offset from the first header │ previous │ [name of the thread] │ padding
//	small heap:     … │ first header │ bytes │ in use │ most in use │ first header │ end mark │ lowest free header │ bytes │ first header …
//	memheap header: 0x1ea01ea0 │ used, bit 0; heap │ next │ previous │ next free │ previous free │ [name of the thread] │ padding
//	memheap:        … │ start │ bytes │ free │ most in use │ start │ list of free headers, which is next: a header

const rtMagic = 0x1ea01ea0

// rtHeap is a heap of RT-Thread.
type rtHeap struct {
	linked
	pool uint64 // address that each header has
}

func (f *finder) rtThread() ([]*Heap, error) {
	if f.ptr != 4 {
		return nil, ErrNone
	}
	return f.search(f.memory(), func(addr, v uint64) *Heap {
		if v == 0 || v%4 != 0 {
			return nil
		}
		if again, _ := f.m.Uint(addr+16, 4); again != v {
			return nil
		}
		r := &rtHeap{linked: linked{finder: f, start: v, field: 4, align: 4}}
		if r.isSmall(addr) {
			return r.small(addr)
		}
		if r.isMemheap(addr) {
			return r.memheap(addr)
		}
		return nil
	})
}

// isSmall reports whether a small heap has its first header's address at an address.
func (r *rtHeap) isSmall(addr uint64) bool {
	total, _ := r.m.Uint(addr+4, 4)
	r.end, _ = r.m.Uint(addr+20, 4)
	again, _ := r.m.Uint(addr+28, 4)
	last, ok := r.m.Uint(r.end, 4)
	r.pool, r.header = last&^1, r.end-r.start-total // of the end mark
	return ok && total > 0 && total == again && r.start > addr && r.start-addr <= 64 && r.pool < addr && addr-r.pool <= 128 && last&1 != 0 &&
		r.header >= 12 && r.header <= 32
}

// small reads a small heap.
func (r *rtHeap) small(at uint64) *Heap {
	r.base, r.next, r.prev = r.start, 4, 8
	r.state = func(addr uint64) (used, ok bool) {
		mark, ok := r.m.Uint(addr, 4)
		return mark&1 != 0, ok && mark&^1 == r.pool
	}
	sum := r.read(at, "RT-Thread small memory")
	inUse, _ := r.m.Uint(at+8, 4)
	low, _ := r.m.Uint(at+24, 4)
	r.h.prove("bytes in use", inUse, sum.used)
	r.h.prove("the lowest free block", low, sum.lowest)
	return r.h
}

// isMemheap reports whether a memheap has its start at an address.
func (r *rtHeap) isMemheap(addr uint64) bool {
	size, _ := r.m.Uint(addr+4, 4)
	list, _ := r.m.Uint(addr+20, 4)
	magic, _ := r.m.Uint(addr+24, 4)
	r.pool, _ = r.m.Uint(addr+28, 4)
	if magic != rtMagic || list != addr+24 || r.pool >= addr || addr-r.pool > 128 {
		return false
	}
	for _, r.header = range []uint64{24, 28, 32} {
		r.end = r.start + size - r.header
		if used, ok := r.inMemheap(r.end); ok && used && r.link(r.end+8) == r.start {
			return true
		}
	}
	return false
}

// inMemheap reads the state of a header of a memheap.
func (r *rtHeap) inMemheap(addr uint64) (used, ok bool) {
	mark, _ := r.m.Uint(addr, 4)
	pool, ok := r.m.Uint(addr+4, 4)
	return mark&1 != 0, ok && mark&^1 == rtMagic && pool == r.pool
}

// memheap reads a memheap.
func (r *rtHeap) memheap(at uint64) *Heap {
	r.next, r.prev, r.state = 8, 12, r.inMemheap
	r.odd = func(addr uint64, used bool) string {
		if link, _ := r.m.Uint(addr+16, 4); used != (link == 0) {
			return "the header and the list of free blocks disagree"
		}
		return ""
	}
	sum := r.read(at, "RT-Thread memheap")
	free, _ := r.m.Uint(at+8, 4)
	r.h.prove("bytes free", free, sum.free)
	listed := uint64(0)
	r.ring(at+24, 16, 20, func(uint64) { listed++ })
	r.h.prove("blocks in the list of free blocks", listed-1, sum.holes) // the first is the list
	return r.h
}

// read reads the chunks of the heap whose variables begin at an address.
func (r *rtHeap) read(at uint64, name string) sums {
	r.h = &Heap{Kind: RTThread, Name: name, Addr: r.pool, slack: 7, least: 16}
	r.least, r.joins = r.header, true
	r.h.own(r.pool, at+32+r.header-r.pool)
	r.h.own(r.start, r.end+r.header-r.start)
	return r.linked.read("the blocks end at the end mark")
}
