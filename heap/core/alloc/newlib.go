package alloc

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// newlib finds the heap of newlib's mallocr.c. The chain of chunks goes from __malloc_sbrk_base to
// the top chunk, the first bin of __malloc_av_.
func (f *finder) newlib() ([]*Heap, error) {
	av, ok := f.variable("__malloc_av_")
	if !ok {
		return nil, ErrNone
	}
	h := &Heap{Kind: Newlib, Name: "newlib", overlap: f.ptr, slack: uint8(2*f.ptr - 1), least: 3 * f.ptr}
	base, ok := f.pointer(h, "__malloc_sbrk_base")
	top, there := f.m.Pointer(av.Addr + 2*f.ptr)
	if !ok || !there || base == ^uint64(0)>>(64-8*f.ptr) || base == 0 { // not used yet
		return nil, ErrNone
	}
	h.own(av.Addr, max(av.Size, 4*f.ptr))
	marks := func(addr uint64) bool { // behind a part, if the program itself used sbrk: two sizes of a word
		first, _ := f.m.Pointer(addr + f.ptr)
		second, _ := f.m.Pointer(addr + 2*f.ptr)
		return first&^1 == f.ptr && second == f.ptr|1
	}
	t := &tags{finder: f, end: top, align: 2 * f.ptr, flags: 3, unwanted: 2, marks: marks}
	start := up(base, t.align)
	size, ok := f.m.Pointer(top + f.ptr)
	if size &^= 3; !ok || top < start {
		return nil, &MissingError{h.Name, start, top + 2*f.ptr}
	}
	h.Addr = start
	c := chain{f: f, h: h, start: start, end: top, align: t.align, least: 4 * f.ptr, confirm: confirm, field: f.ptr, overlap: f.ptr, read: t.chunk}
	h.prove("the blocks end at the top chunk", top, c.parts(base, top+size, 3*f.ptr, marks))
	if info, ok := f.variable("__malloc_current_mallinfo"); ok { // its first number is that of all bytes
		if all, ok := f.m.Uint(info.Addr, int(f.ptr)); ok {
			h.prove("bytes from the system", all, top+size-base)
		}
	}
	f.topChunk(h, top, size)
	return []*Heap{h}, nil
}

// nanoHeap reads the chunks of newlib-nano and of picolibc, which have only a size:
//
//	│ size │ padding up to the alignment of blocks │ block …
type nanoHeap struct {
	*finder
	h    *Heap
	pad  uint64 // alignment of blocks behind the size, in bytes; 0 if blocks are directly behind
	unit uint64 // of sizes
	free map[uint64]bool
}

func (n *nanoHeap) chunk(addr uint64) (c chunk, why string) {
	size, ok := n.m.Pointer(addr)
	switch {
	case !ok:
		return c, "no memory"
	case size < 2*n.ptr || size%n.unit != 0 || size >= 1<<(8*n.ptr-1):
		return c, fmt.Sprintf("the size of the header is %#x, expected a multiple of %d from %d on", size, n.unit, 2*n.ptr)
	}
	b := Block{Addr: addr + n.ptr}
	if n.pad > 0 {
		b.Addr = up(b.Addr, n.pad)
	}
	b.Header = uint16(b.Addr - addr)
	if size < b.header() {
		return c, fmt.Sprintf("the size of the header is %#x, expected %d or more", size, b.Header)
	}
	if pad := b.header() - n.ptr; pad > 0 && !n.free[addr] { // malloc stores the negative distance
		if v, _ := n.m.Uint(addr+pad, 4); v != uint64(-uint32(pad)) {
			return c, fmt.Sprintf("the distance to the header is %d, expected -%d", int32(v), pad)
		}
	}
	b.Size = size - b.header()
	return chunk{size: size, block: b}, ""
}

// mark sets the state of the blocks by the list of free chunks. It reports whether each element of
// the list is a chunk.
func (n *nanoHeap) mark() bool {
	found := 0
	for i := range n.h.Blocks {
		b := &n.h.Blocks[i]
		if b.State = Used; n.free[b.start()] {
			b.State = Free
			found++
		}
	}
	return found == len(n.free)
}

// orphans makes used blocks doubtful that may be free: if a link of the list became 0, the list seems to end there, and the
// free chunks behind still lead to each other. ahead is as for list.
func (n *nanoHeap) orphans(ahead uint64) {
	last := uint64(0) // of the listed chunks
	for at := range n.free {
		last = max(last, at)
	}
	broken := false
	for i := range n.h.Blocks {
		b := &n.h.Blocks[i]
		link, _ := n.m.Pointer(b.start() + n.ptr)
		to := n.h.block(link - ahead)
		if b.State == Used && b.Addr > last && to > i && n.h.Blocks[to].start() == link-ahead {
			b.doubt()
			n.h.Blocks[to].doubt()
			broken = ahead == 0 && last != 0 // no pointer of the program leads to a header
		}
	}
	if broken {
		n.h.freed(last+n.ptr, 0, "the link of the list of free blocks, behind which are others,")
	}
}

// list reads the list of free chunks. ahead is the distance from the header to what the links point
// to, link that from the header to the link.
func (n *nanoHeap) list(first, ahead, link uint64) {
	for at := first; at != 0; {
		addr := at - ahead
		next, ok := n.m.Pointer(addr + link)
		if !ok {
			n.h.prove(fmt.Sprintf("the free block at %#x is in the image", addr), 1, 0)
			return
		}
		if addr%n.ptr != 0 || n.free[addr] || len(n.free) >= core.MaxBlocks {
			n.h.prove("the list of free blocks ends", 0, at)
			return
		}
		n.free[addr] = true
		at = next
	}
}

// proveFree compares the number of chunks in the list of free chunks with those found.
func (n *nanoHeap) proveFree() {
	found, _ := n.h.Count(Free)
	n.h.prove("free blocks", uint64(len(n.free)), uint64(found))
}

// nano finds the heap of newlib's nano-mallocr.c. It does not store the end of the heap; a variable
// of the program's _sbrk does.
func (f *finder) nano() ([]*Heap, error) {
	if _, ok := f.variable("__malloc_sbrk_top"); ok {
		return nil, ErrNone // picolibc
	}
	h := &Heap{Kind: NewlibNano, Name: "newlib-nano", slack: uint8(f.ptr - 1)}
	base, ok := f.pointer(h, "__malloc_sbrk_start")
	first, listed := f.pointer(h, "__malloc_free_list")
	if !ok || !listed || base == 0 {
		return nil, ErrNone
	}
	start := up(base, f.ptr)
	limit := f.contiguous(start)
	if limit == start {
		return nil, &MissingError{h.Name, start, start + f.ptr}
	}
	h.Addr = start
	n := &nanoHeap{finder: f, h: h, pad: 8, unit: f.ptr, free: map[uint64]bool{}}
	n.list(first, 0, f.ptr)
	end, found := n.breakAt(start, limit)
	c := chain{f: f, h: h, start: start, end: limit, align: f.ptr, least: 2 * f.ptr, confirm: confirmSize, read: n.chunk}
	if found > 0 {
		c.end = end
		h.own(found, f.ptr)
		h.prove(fmt.Sprintf("the blocks end at the end of the heap, which the variable at %#x has", found), end, c.walk())
	} else {
		c.last = func(uint64) bool { return true }
		end = c.walk()
		size, _ := f.m.Pointer(end)
		h.prove("a variable of _sbrk with the end of the heap", end, 0)
		h.prove("the blocks end where the memory was never used", 0, size)
	}
	h.own(start, end-start)
	n.mark()
	n.orphans(0)
	n.proveFree()
	return []*Heap{h}, nil
}

// breakAt finds the end of the heap: the last end of a chunk that is in a variable outside of the
// heap. It returns 0 as the variable if there is none.
func (n *nanoHeap) breakAt(start, limit uint64) (end, variable uint64) {
	variables := map[uint64]uint64{} // by value
	n.holds(start, limit, func(v uint64) bool { return v > start && v <= limit }, func(addr, v uint64) {
		if _, known := variables[v]; !known && !slices.ContainsFunc(n.h.Ranges, func(r core.Map) bool { return addr >= r.Start && addr < r.End }) {
			variables[v] = addr
		}
	})
	at := start
	for at < limit {
		c, why := n.chunk(at)
		if why != "" || c.size > limit-at {
			break
		}
		if at += c.size; variables[at] != 0 {
			end = at
		}
	}
	for _, v := range slices.Backward(slices.Sorted(maps.Keys(variables))) {
		if v > at && n.resumes(at, v) {
			end = v
			break
		}
	}
	return end, variables[end]
}

// resumes reports whether chunks behind a damaged one end at an address.
func (n *nanoHeap) resumes(damaged, end uint64) bool {
	for p := damaged + n.ptr; p < end && n.budget > 0; p += n.ptr {
		at, count := p, 0
		for at < end {
			n.budget--
			c, why := n.chunk(at)
			if why != "" || c.size > end-at {
				break
			}
			at += c.size
			count++
		}
		if at == end && count >= confirm {
			return true
		}
	}
	return false
}

// picolibc finds the heap of picolibc, whose malloc stores the end of its heap. Chunks are aligned
// so that the blocks directly behind the size are.
func (f *finder) picolibc() ([]*Heap, error) {
	h := &Heap{Kind: Picolibc, Name: "picolibc", slack: 7}
	base, ok := f.pointer(h, "__malloc_sbrk_start")
	end, has := f.pointer(h, "__malloc_sbrk_top")
	first, listed := f.pointer(h, "__malloc_free_list")
	if !ok || !has || !listed || base == 0 {
		return nil, ErrNone
	}
	if _, ok := f.m.Bytes(base, end-base); !ok || end < base {
		return nil, &MissingError{h.Name, base, end}
	}
	h.Addr = base
	n := &nanoHeap{finder: f, h: h, unit: 8, free: map[uint64]bool{}}
	c := chain{f: f, h: h, start: base, end: end, align: 8, least: 2 * f.ptr, confirm: confirmSize, read: n.chunk}
	h.prove("the blocks end at __malloc_sbrk_top", end, c.walk())
	checks := len(h.Proof)
	ahead := uint64(0)
	for _, ahead = range []uint64{0, f.ptr} { // links point to the header in 1.8, to the block in later versions
		clear(n.free)
		h.Proof = h.Proof[:checks]
		if n.list(first, ahead, f.ptr); n.mark() && len(h.Proof) == checks {
			break
		}
	}
	n.orphans(ahead)
	h.own(base, end-base)
	if s, ok := f.variable("brk"); ok { // of its sbrk: the end, too
		if v, _ := f.m.Pointer(s.Addr); v == end {
			h.own(s.Addr, f.ptr)
		}
	}
	n.proveFree()
	return []*Heap{h}, nil
}
