package alloc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// FreeRTOS, portable/MemMang: heap_4 and heap_5 have a chain of chunks that ends at pxEnd, and
// free chunks in a list by address; heap_2 has a list by size. The header is BlockLink_t, up to
// the alignment of the port:
//
//	│ pxNextFreeBlock │ xBlockSize, bit 31 or 63: used │ padding │ block …
//
// heap_5 has several such regions. An end marker of size 0 links each to the next. With
// configENABLE_HEAP_PROTECTOR, links are XORed with xHeapCanary.

// freeRTOS is the search for one heap.
type freeRTOS struct {
	*finder
	h      *Heap
	canary uint64
	header uint64          // size of the header with its padding
	align  uint64          // of chunks
	free   map[uint64]bool // chunks in the list of free chunks
	ends   []uint64        // of the regions
}

// freeRTOS tries the alignments of ports, until the heap is proven and without damage. Otherwise, the
// first with the fewest failed checks and damaged headers counts.
func (f *finder) freeRTOS() (best []*Heap, err error) {
	bad := func(h *Heap) int {
		n := len(h.Damage)
		for _, p := range h.Proof {
			if p.Want != p.Got {
				n++
			}
		}
		return n
	}
	for _, align := range []uint64{8, 16, 32, 4} {
		list, e := f.freeRTOSAligned(align)
		var missing *MissingError
		switch {
		case errors.As(e, &missing):
			return nil, e
		case e != nil:
		case best == nil || bad(list[0]) < bad(best[0]):
			best = list
		default:
			f.blocks += len(list[0].Blocks)
		}
		if best != nil && bad(best[0]) == 0 {
			break
		}
	}
	if best == nil {
		return nil, ErrNone
	}
	return best, nil
}

// freeRTOSAligned finds the heap of a port with an alignment.
func (f *finder) freeRTOSAligned(align uint64) ([]*Heap, error) {
	r := &freeRTOS{finder: f, h: &Heap{Kind: FreeRTOS}, header: up(2*f.ptr, align), align: align, free: map[uint64]bool{}}
	start, ok := f.variable("xStart")
	if !ok {
		return nil, ErrNone
	}
	first, ok := f.m.Pointer(start.Addr)
	if !ok || first == 0 {
		return nil, ErrNone // not initialized
	}
	r.h.own(start.Addr, 2*f.ptr)
	r.h.Addr = start.Addr
	r.canary, _ = f.pointer(r.h, "xHeapCanary")
	array, static := f.variable("ucHeap")
	end, isList := f.pointer(r.h, "pxEnd")
	switch {
	case isList && static && array.Size > 0:
		return r.heap4(first^r.canary, end, array)
	case isList:
		return r.heap5(first^r.canary, end)
	case static && array.Size > 0:
		return r.heap2(first, array)
	}
	return nil, ErrNone
}

// list walks the list of free chunks to an end marker.
func (r *freeRTOS) list(first, end uint64) (bytes uint64, err error) {
	for at := first; at != end; {
		size, ok := r.m.Pointer(at + r.ptr)
		if !ok || at%r.ptr != 0 || r.free[at] || len(r.free) >= core.MaxBlocks {
			r.h.prove("the list of free blocks ends", end, at)
			return bytes, nil
		}
		if r.free[at] = true; size == 0 {
			r.ends = append(r.ends, at)
		}
		bytes += size
		next, _ := r.m.Pointer(at)
		at = next ^ r.canary
	}
	r.ends = append(r.ends, end)
	return bytes, nil
}

func (r *freeRTOS) heap4(first, end uint64, array core.Symbol) ([]*Heap, error) {
	r.h.Name = "FreeRTOS heap_4"
	if _, ok := r.m.Bytes(array.Addr, array.Size); !ok || end < array.Addr || end >= array.Addr+array.Size {
		return nil, r.missing(array.Addr, array.Size)
	}
	if end != (array.Addr+array.Size-r.header)&^(r.align-1) { // pxEnd shows the alignment of the port
		if r.align != 8 {
			return nil, ErrNone
		}
		r.h.prove("pxEnd is the end of ucHeap", (array.Addr+array.Size-r.header)&^(r.align-1), end)
	}
	free, _ := r.list(first, end)
	r.region(up(array.Addr, r.align), end)
	r.own(array.Addr, array.Size)
	r.proveFree(free, 0)
	return []*Heap{r.h}, nil
}

func (r *freeRTOS) own(start, size uint64) { r.h.own(start, size) }

func (r *freeRTOS) missing(start, size uint64) error {
	return &MissingError{r.h.Name, start, start + size}
}

// region walks the chunks of a region.
func (r *freeRTOS) region(start, end uint64) {
	c := chain{f: r.finder, h: r.h, start: start, end: end, align: r.align, least: r.header + r.align, confirm: confirm, read: r.chunk}
	r.h.prove(fmt.Sprintf("the blocks from %#x on end at the end mark", start), end, c.walk())
}

// used is the bit of a size that marks a used block.
func (r *freeRTOS) used() uint64 { return 1 << (8*r.ptr - 1) }

func (r *freeRTOS) chunk(addr uint64) (c chunk, why string) {
	next, _ := r.m.Pointer(addr)
	v, ok := r.m.Pointer(addr + r.ptr)
	if !ok {
		return c, "no memory"
	}
	size := v &^ r.used()
	switch {
	case size < r.header || size%r.align != 0:
		return c, fmt.Sprintf("the size of the header is %#x, expected a multiple of %d", size, r.align)
	case v&r.used() != 0 && next^r.canary != 0:
		return c, "the header has a link, expected none in a used block"
	case v&r.used() == 0 && !r.free[addr]:
		return c, "the header is that of a free block, which is not in the list of free blocks"
	}
	c = chunk{size: size, block: Block{Addr: addr + r.header, Size: size - r.header, Header: r.header, State: Free}}
	if v&r.used() != 0 {
		c.block.State = Used
		c.block.Max = c.block.Size
		c.block.Min = c.block.Size - min(c.block.Size, 2*r.header+r.align-1)
	}
	return c, ""
}

// proveFree compares the sum of the free chunks with xFreeBytesRemaining, and that of the list with
// the chunks.
func (r *freeRTOS) proveFree(listed, hidden uint64) {
	n, bytes := r.h.Count(Free)
	bytes += uint64(n) * r.header
	r.h.prove("bytes in the list of free blocks", listed, bytes)
	if want, ok := r.pointer(r.h, "xFreeBytesRemaining"); ok {
		r.h.prove("free bytes", want, bytes+hidden)
	}
}

// heap5 reads the regions of heap_5. Their ends are in the list; their starts are only in the table
// that the program gave to vPortDefineHeapRegions, which is searched for.
func (r *freeRTOS) heap5(first, end uint64) ([]*Heap, error) {
	r.h.Name = "FreeRTOS heap_5"
	if _, ok := r.m.Pointer(end + r.ptr); !ok {
		return nil, r.missing(end, 2*r.ptr)
	}
	free, _ := r.list(first, end)
	starts := r.regions()
	for i, e := range r.ends {
		if starts[i] == 0 {
			r.h.prove(fmt.Sprintf("the table with the region that ends at %#x", e), 1, 0)
			continue
		}
		r.region(starts[i], e)
		r.own(starts[i], e+r.header-starts[i])
	}
	r.proveFree(free, 0)
	r.h.sort()
	return []*Heap{r.h}, nil
}

// regions searches the image for entries { start, size } of regions with the known ends. It returns
// the aligned start of each.
func (r *freeRTOS) regions() []uint64 {
	starts := make([]uint64, len(r.ends))
	segs := r.m.Segments()
	order := r.m.ByteOrder()
	for i := range segs {
		data := segs[i].Data
		for off := -segs[i].Addr & (r.ptr - 1); off+2*r.ptr <= uint64(len(data)) && r.budget > 0; off += r.ptr {
			r.budget--
			start, size := word(data[off:], r.ptr, order), word(data[off+r.ptr:], r.ptr, order)
			if start == 0 || size < 2*r.header || start+size < start {
				continue
			}
			n := slices.Index(r.ends, (start+size-r.header)&^(r.align-1))
			if n >= 0 && starts[n] == 0 && r.reaches(up(start, r.align), r.ends[n]) {
				starts[n] = up(start, r.align)
			}
		}
	}
	return starts
}

// reaches reports whether chunks lead from the start of a region to its end. A few may be damaged.
func (r *freeRTOS) reaches(start, end uint64) bool {
	f := *r.finder
	c := chain{f: &f, h: &Heap{}, start: start, end: end, align: r.align, least: r.header + r.align, confirm: confirm, read: r.chunk}
	ok := c.walk() == end && len(c.h.Blocks) > 4*len(c.h.Damage)
	r.budget = f.budget
	return ok
}

// heap2 reads heap_2, whose chunks are never joined. Its list ends at the variable xEnd.
func (r *freeRTOS) heap2(first uint64, array core.Symbol) ([]*Heap, error) {
	r.h.Name = "FreeRTOS heap_2"
	xEnd, ok := r.variable("xEnd")
	if !ok {
		return nil, ErrNone
	}
	r.own(xEnd.Addr, 2*r.ptr)
	if _, ok := r.m.Bytes(array.Addr, array.Size); !ok {
		return nil, r.missing(array.Addr, array.Size)
	}
	free, _ := r.list(first, xEnd.Addr)
	// The heap begins at the last aligned address of the first bytes, and is an alignment shorter
	// than the array; xEnd holds its size.
	total, _ := r.m.Pointer(xEnd.Addr + r.ptr)
	if align := array.Size - total; total < array.Size && align&(align-1) == 0 && align >= 4 && align <= 32 {
		r.align, r.header = align, up(2*r.ptr, align)
	}
	start := (array.Addr + r.align - 1) &^ (r.align - 1)
	if total > array.Size {
		total = array.Size - r.align
	}
	// Old versions do not mark used blocks.
	marks := false
	read := func(addr uint64) (chunk, string) {
		v, ok := r.m.Pointer(addr + r.ptr)
		if ok && v&r.used() == 0 && !r.free[addr] && v != 0 && v%r.align == 0 && v >= r.header && !marks {
			if next, _ := r.m.Pointer(addr); next == 0 {
				b := Block{Addr: addr + r.header, Size: v - r.header, Header: r.header, Max: v - r.header}
				b.Min = b.Size - min(b.Size, 2*r.header+r.align-1)
				return chunk{size: v, block: b}, ""
			}
		}
		c, why := r.chunk(addr)
		marks = marks || why == "" && c.block.State == Used
		return c, why
	}
	c := chain{f: r.finder, h: r.h, start: start, end: start + total, align: r.align, least: r.header + r.align, confirm: confirm, read: read}
	r.h.prove("the blocks end at the end of the heap", start+total, c.walk())
	r.own(array.Addr, array.Size)
	r.proveFree(free, 0)
	return []*Heap{r.h}, nil
}
