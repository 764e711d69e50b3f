package alloc

import "fmt"

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
	*finder
	h          *Heap
	memheap    bool
	pool       uint64 // address that each header has
	start, end uint64 // first header and end mark
	header     uint64
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
		r := &rtHeap{finder: f, start: v}
		switch {
		case r.isSmall(addr):
			return r.read(addr, "RT-Thread small memory")
		case r.isMemheap(addr):
			return r.read(addr, "RT-Thread memheap")
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

// isMemheap reports whether a memheap has its start at an address.
func (r *rtHeap) isMemheap(addr uint64) bool {
	size, _ := r.m.Uint(addr+4, 4)
	list, _ := r.m.Uint(addr+20, 4)
	magic, _ := r.m.Uint(addr+24, 4)
	r.pool, _ = r.m.Uint(addr+28, 4)
	if r.memheap = true; magic != rtMagic || list != addr+24 || r.pool >= addr || addr-r.pool > 128 {
		return false
	}
	for _, r.header = range []uint64{24, 28, 32} {
		r.end = r.start + size - r.header
		if used, next, _, ok := r.item(r.end); ok && used && next == r.start {
			return true
		}
	}
	return false
}

// item reads a header.
func (r *rtHeap) item(addr uint64) (used bool, next, prev uint64, ok bool) {
	mark, _ := r.m.Uint(addr, 4)
	if !r.memheap {
		next, _ = r.m.Uint(addr+4, 4)
		prev, ok = r.m.Uint(addr+8, 4)
		return mark&1 != 0, r.start + next, r.start + prev, ok && mark&^1 == r.pool
	}
	pool, _ := r.m.Uint(addr+4, 4)
	next, _ = r.m.Uint(addr+8, 4)
	prev, ok = r.m.Uint(addr+12, 4)
	return mark&1 != 0, next, prev, ok && mark&^1 == rtMagic && pool == r.pool
}

// read reads the chunks of the heap whose variables begin at an address.
func (r *rtHeap) read(at uint64, name string) *Heap {
	r.h = &Heap{Kind: RTThread, Name: name, Addr: r.pool, slack: 7, least: 16}
	c := chain{f: r.finder, h: r.h, start: r.start, end: r.end, align: 4, least: r.header, confirm: confirm, read: r.next}
	r.h.prove("the blocks end at the end mark", r.end, c.walk())
	used, free, lowest, n := uint64(0), uint64(0), r.end, uint64(0)
	for i := range r.h.Blocks {
		switch b := &r.h.Blocks[i]; b.State {
		case Used:
			used += b.Size + r.header
		default:
			free, n, lowest = free+b.Size, n+1, min(lowest, b.start())
		}
	}
	v, _ := r.m.Uint(at+8, 4)
	if r.memheap {
		r.h.prove("bytes free", v, free)
		r.h.prove("blocks in the list of free blocks", r.listed(at+24), n)
	} else {
		low, _ := r.m.Uint(at+24, 4)
		r.h.prove("bytes in use", v, used)
		r.h.prove("the lowest free block", low, lowest)
	}
	r.h.own(r.pool, at+32+r.header-r.pool)
	r.h.own(r.start, r.end+r.header-r.start)
	return r.h
}

// next reads a chunk.
func (r *rtHeap) next(addr uint64) (c chunk, why string) {
	used, next, prev, ok := r.item(addr)
	switch {
	case !ok:
		return c, "the header does not lead to its heap"
	case next < addr+r.header || next > r.end:
		return c, fmt.Sprintf("the next header is at %#x, expected %#x to %#x", next, addr+r.header, r.end)
	case addr != r.start && prev >= addr:
		return c, fmt.Sprintf("the previous header is at %#x, expected less than %#x", prev, addr)
	}
	c = chunk{size: next - addr, block: Block{Addr: addr + r.header, Size: next - addr - r.header, Header: uint16(r.header), State: Free}}
	if used {
		c.block.State = Used
	}
	behind, _, back, intact := r.item(next)
	switch {
	case next == r.end:
	case !intact:
		c.alone = true
	case back != addr:
		return c, fmt.Sprintf("the next header leads back to %#x, not to %#x", back, addr)
	case !used && !behind:
		c.odd, c.oddAt = "two free blocks follow each other, which the allocator joins", next
	}
	if link, _ := r.m.Uint(addr+16, 4); r.memheap && used != (link == 0) {
		c.odd, c.oddAt = "the header and the list of free blocks disagree", addr
	}
	return c, ""
}

// listed returns the number of headers in the list of a memheap.
func (r *rtHeap) listed(list uint64) (n uint64) {
	for at := list; r.budget > 0; n++ {
		r.budget--
		next, ok := r.m.Uint(at+16, 4)
		if back, _ := r.m.Uint(next+20, 4); !ok || back != at || next == list {
			break
		}
		at = next
	}
	return n
}
