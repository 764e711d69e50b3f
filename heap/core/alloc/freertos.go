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
	cut    bool            // a link of the list was overwritten
	target uint64          // where that link leads
	ends   []uint64        // of the regions that are in the list
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
		var mismatch *MismatchError
		switch {
		case errors.As(e, &missing), errors.As(e, &mismatch):
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
	r := &freeRTOS{finder: f, h: &Heap{Kind: FreeRTOS, slack: uint8(align - 1)}, header: up(2*f.ptr, align), align: align, free: map[uint64]bool{}}
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

// list walks the list of free chunks from a variable to an end marker. The chunks are in the order of their addresses, in heap_2 of
// their sizes.
func (r *freeRTOS) list(variable, first, end uint64, bySize bool) (bytes uint64) {
	link, last := variable, uint64(0)
	for at := first; at != end; {
		size, ok := r.m.Pointer(at + r.ptr)
		next, _ := r.m.Pointer(at)
		next ^= r.canary
		order := at
		if bySize {
			order = size
		}
		if !ok || at%r.ptr != 0 || r.free[at] || order < last || size&r.used() != 0 && next == 0 || len(r.free) >= core.MaxBlocks {
			r.cut, r.target = true, at
			r.h.freed(link, at, "the link of the list of free blocks")
			return bytes
		}
		last = order
		if r.free[at] = true; size == 0 {
			r.ends = append(r.ends, at)
		}
		bytes += size &^ r.used()
		link, at = at, next
	}
	return bytes
}

func (r *freeRTOS) heap4(first, end uint64, array core.Symbol) ([]*Heap, error) {
	r.h.Name = "FreeRTOS heap_4"
	if _, ok := r.m.Bytes(array.Addr, array.Size); !ok {
		return nil, &MissingError{r.h.Name, array.Addr, array.Addr + array.Size}
	}
	if end < array.Addr || end >= array.Addr+array.Size {
		return nil, &MismatchError{fmt.Sprintf("pxEnd is %#x, but ucHeap is at %#x to %#x", end, array.Addr, array.Addr+array.Size)}
	}
	if end != (array.Addr+array.Size-r.header)&^(r.align-1) { // pxEnd shows the alignment of the port
		if r.align != 8 {
			return nil, ErrNone
		}
		r.h.prove("pxEnd is the end of ucHeap", (array.Addr+array.Size-r.header)&^(r.align-1), end)
	}
	free := r.list(r.h.Addr, first, end, false)
	r.region(up(array.Addr, r.align), end)
	r.h.own(array.Addr, array.Size)
	r.proveFree(free)
	return []*Heap{r.h}, nil
}

// region walks the chunks of a region.
func (r *freeRTOS) region(start, end uint64) {
	c := chain{f: r.finder, h: r.h, start: start, end: end, align: r.align, least: r.header + r.align, confirm: confirm, field: r.ptr, read: r.chunk}
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
	if size < r.header || size%r.align != 0 {
		return c, fmt.Sprintf("the size of the header is %#x, expected a multiple of %d", size, r.align)
	}
	c = chunk{size: size, block: Block{Addr: addr + r.header, Size: size - r.header, Header: uint16(r.header), State: Free}}
	used := v&r.used() != 0
	switch {
	case used && r.free[addr]:
		c.odd, c.oddAt = "the header is that of a used block, which is in the list of free blocks", addr+r.ptr
	case used && next^r.canary != 0:
		c.odd, c.oddAt = "the header has a link, expected none in a used block", addr
	}
	if used && !r.free[addr] {
		c.block.State = Used
	}
	return c, ""
}

// proveFree compares the sum of the free chunks with xFreeBytesRemaining. Free chunks that are not in the list are free
// if the sum needs them: a link passes over them. Otherwise their headers are wrong.
func (r *freeRTOS) proveFree(listed uint64) {
	var unlisted []int
	free, hidden := uint64(0), uint64(0)
	link := r.h.Addr // of the last listed chunk before
	at := map[int]uint64{}
	for i := range r.h.Blocks {
		b := &r.h.Blocks[i]
		switch size := b.Size + b.header(); {
		case b.State != Free:
		case r.free[b.start()]:
			free += size
			link = b.start()
		default:
			hidden += size
			unlisted = append(unlisted, i)
			at[i] = link
		}
	}
	want, ok := r.pointer(r.h, "xFreeBytesRemaining")
	passed := uint64(0) // link that passes over chunks
	wide := false       // the link leads to memory in use: headers may be wrong
	for i := range r.h.Blocks {
		if b := &r.h.Blocks[i]; r.cut && b.State == Used && r.target >= b.start() && r.target < b.end() {
			b.doubt()
			wide = true
		}
	}
	for _, i := range unlisted {
		b := &r.h.Blocks[i]
		if !r.cut || wide || want != free+hidden {
			b.doubt()
		}
		switch {
		case r.cut:
		case want == free+hidden && at[i] != passed:
			passed = at[i]
			v, _ := r.m.Pointer(passed)
			r.h.freed(passed, v^r.canary, fmt.Sprintf("the block at %#x is free, but the link of the list of free blocks", b.Addr))
		case want != free+hidden:
			b.State = Used
			r.h.doubt(Damage{Addr: b.start() + r.ptr, Part: core.DamagedNode, What: "the header is that of a free block, which is not in the list of free blocks", Before: i - 1, Block: i}, i)
			hidden -= b.Size + b.header()
		}
	}
	if !r.cut && passed == 0 {
		r.h.prove("bytes in the list of free blocks", listed, free)
	}
	if ok || r.cut {
		r.h.prove("free bytes", want, free+hidden)
	}
}

// heap5 reads the regions of heap_5. Their ends are in the list; their starts are only in the table
// that the program gave to vPortDefineHeapRegions, which is searched for.
func (r *freeRTOS) heap5(first, end uint64) ([]*Heap, error) {
	r.h.Name = "FreeRTOS heap_5"
	if _, ok := r.m.Pointer(end + r.ptr); !ok {
		return nil, &MissingError{r.h.Name, end, end + 2*r.ptr}
	}
	free := r.list(r.h.Addr, first, end, false)
	regions := r.regions(end)
	for _, x := range regions {
		r.region(x.Start, x.End)
		r.h.own(x.Start, x.End+r.header-x.Start)
	}
	for _, e := range append(r.ends, end) {
		if !slices.ContainsFunc(regions, func(x core.Map) bool { return x.End == e }) {
			r.h.prove(fmt.Sprintf("the table with the region that ends at %#x", e), 1, 0)
		}
	}
	r.proveFree(free)
	r.h.sort()
	return []*Heap{r.h}, nil
}

// regions searches the image for the table { start, size } … { 0, 0 } of regions by address, of which the last ends at
// an end mark. The end marks of the others need not be in the list: a free block before one takes its place. Start is
// that of the first chunk, End that of the end mark.
func (r *freeRTOS) regions(end uint64) (list []core.Map) {
	segs, read := r.m.Segments(), r.m.Words()
	entry := func(at uint64) (x core.Map, ok bool) {
		start, _ := r.m.Pointer(at)
		size, ok := r.m.Pointer(at + r.ptr)
		if !ok || start == 0 || size < 2*r.header || start+size < start || start+size > end+2*r.header {
			return x, false
		}
		return core.Map{Start: up(start, r.align), End: (start + size - r.header) &^ (r.align - 1)}, true
	}
	for i := range segs {
		first, last := segs[i].Addr, segs[i].Addr+uint64(len(segs[i].Data))
		for at := up(first, r.ptr); at+2*r.ptr <= last && r.budget > 0; at += r.ptr {
			r.budget--
			if v := read.Word(segs[i].Data[at-first:]); v == 0 || v > end {
				continue
			}
			x, ok := entry(at)
			if !ok || x.End != end || !r.reaches(x.Start, x.End) {
				continue
			}
			table := []core.Map{x}
			for before := at - 2*r.ptr; ; before -= 2 * r.ptr {
				x, ok := entry(before)
				if !ok || x.End > table[0].Start || !r.reaches(x.Start, x.End) {
					break
				}
				table = slices.Insert(table, 0, x)
			}
			if len(table) > len(list) {
				list = table
			}
		}
	}
	return list
}

// reaches reports whether chunks lead from the start of a region to its end. A few may be damaged.
func (r *freeRTOS) reaches(start, end uint64) bool {
	f := *r.finder
	c := chain{f: &f, h: &Heap{}, start: start, end: end, align: r.align, least: r.header + r.align, confirm: confirm, field: r.ptr, read: r.chunk}
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
	r.h.own(xEnd.Addr, 2*r.ptr)
	if _, ok := r.m.Bytes(array.Addr, array.Size); !ok {
		return nil, &MissingError{r.h.Name, array.Addr, array.Addr + array.Size}
	}
	free := r.list(r.h.Addr, first, xEnd.Addr, true)
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
				return chunk{size: v, block: Block{Addr: addr + r.header, Size: v - r.header, Header: uint16(r.header)}}, ""
			}
		}
		c, why := r.chunk(addr)
		marks = marks || why == "" && c.block.State == Used
		return c, why
	}
	c := chain{f: r.finder, h: r.h, start: start, end: start + total, align: r.align, least: r.header + r.align, confirm: confirm, field: r.ptr, read: read}
	r.h.prove("the blocks end at the end of the heap", start+total, c.walk())
	r.h.own(array.Addr, array.Size)
	r.proveFree(free)
	return []*Heap{r.h}, nil
}
