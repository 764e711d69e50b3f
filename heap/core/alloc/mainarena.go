package alloc

import "github.com/lwsbt/lwsbt/heap/core"

// glibc's main arena is memory of sbrk. Its parts end with two end marks, sizes of 2 words without a block, except
// for the last, which ends with the top chunk:
//
//	part │ 2 words │ 2 words │ memory that the program took from sbrk itself │ part │ … │ top chunk
//
// If sbrk fails, the next parts are mappings, in no order.

const pageSize = 4096

// mainArena reads the main arena, up to the end of its top chunk.
func (g *glibc) mainArena(h *Heap, top, end, system uint64) {
	base := end - system
	for _, g.align = range []uint64{16, 8} { // i386 aligns to 16 since 2.26, 32-bit Arm to 8
		if g.ptr == 8 || base <= top && g.chain(h, g.first(base), top, 2|4).intact(g.first(base)) {
			break
		}
	}
	if _, known := g.m.Uint(base, 1); known && base <= top && system <= end {
		c := g.chain(h, g.first(base), top, 2|4)
		h.prove("the blocks end at the top chunk", top, c.parts(base, end, 4*g.ptr, g.endMarks))
		return
	}
	g.scattered(h, top, end, system)
}

// endMarks reports whether there are two end marks at an address.
func (g *glibc) endMarks(addr uint64) bool {
	first, _ := g.m.Pointer(addr + g.ptr)
	second, _ := g.m.Pointer(addr + 3*g.ptr)
	return first&^1 == 2*g.ptr && (second == 2*g.ptr|1 || second == 1)
}

// scattered reads the main arena if parts are mappings.
func (g *glibc) scattered(h *Heap, top, end, system uint64) {
	var first core.Map // the part of sbrk
	for _, g.align = range []uint64{16, 8} {
		mp := g.params(0)
		base, _ := g.m.Pointer(g.sbrkBase(mp))
		size := uint64(0)
		if mp > 0 {
			size = g.part(h, base, top, end, system)
		}
		if first = (core.Map{Start: base, End: base + size}); size > 0 || g.ptr == 8 {
			break
		}
	}
	sum := first.End - first.Start
	segs := g.m.Segments()
	for i := range segs {
		s := &segs[i]
		if !s.Write || s.ELF {
			continue
		}
		for at := up(s.Addr, pageSize); at >= s.Addr && at < s.End() && sum < system && g.budget > 0; at += pageSize {
			g.budget--
			if v, _ := g.m.Pointer(g.first(at) + g.ptr); v&7 != 1 || at >= first.Start && at < first.End {
				continue
			}
			if size := g.part(h, at, top, end, system); size > 0 {
				sum += size
				at += size - pageSize
			}
		}
	}
	h.prove("bytes of the arena", system, sum)
}

// part reads one part, of up to most bytes. It returns its size, 0 if there is none at the address.
func (g *glibc) part(h *Heap, start, top, end, most uint64) (size uint64) {
	limit := start + min(g.contiguous(start)-start, most)
	if top >= start && top < limit {
		limit = top
	}
	blocks, damage := len(h.Blocks), len(h.Damage)
	c := g.chain(h, g.first(start), limit, 2|4)
	c.last = g.endMarks
	at := c.start
	for range confirm { // it may have few chunks
		x, why := c.read(at)
		if at >= limit || why != "" || x.odd != "" {
			return 0
		}
		if at += x.size; at == limit || g.endMarks(at) {
			break
		}
	}
	switch reached := c.walk(); {
	case reached == top:
		size = end - start
	case g.endMarks(reached):
		size = up(reached+4*g.ptr, pageSize) - start
	default:
		h.Blocks, h.Damage = h.Blocks[:blocks], h.Damage[:damage]
		return 0
	}
	h.own(start, size)
	return size
}
