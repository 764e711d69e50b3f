package alloc

import (
	"fmt"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/heap/core"
)

// glibc, malloc/malloc.c and arena.c. Symbols are not needed: main_arena is found by its bins, of
// which most are empty, and then hold their own address:
//
//	… │ fast bins │ top │ last remainder │ bins, 127 pairs │ binmap, 16 bytes │ next │ next free │
//	                                       ↑ bins                               threads │ bytes │ most bytes
//
// Arenas are in a ring by "next". Arenas other than main_arena are in heaps of 64 MB (1 MB with
// 32-bit words), which begin with heap_info { arena, previous heap, size, … }. Chunks of their own
// mappings are found at the beginning of pages. Numbers and sizes of these are in mp_.

const binPairs = 127

// Names of heaps.
const (
	mainArena    = "glibc main arena"
	mappedBlocks = "glibc, mapped blocks"
)

// glibc is the search for the arenas of one process.
type glibc struct {
	*finder
	align uint64
	delta uint64 // from the start of an arena to its bins
	plain bool   // links of caches are addresses, as before 2.32
	heaps []*Heap
	all   []*Block // of all arenas, by address of the header
}

func (f *finder) glibc() ([]*Heap, error) {
	g := &glibc{finder: f}
	bins := g.findBins()
	for _, b := range bins {
		if arenas := g.ring(b); arenas != nil {
			for i, a := range arenas {
				g.arena(a, i)
			}
			break
		}
	}
	if len(g.heaps) == 0 {
		return nil, ErrNone
	}
	g.mapped()
	g.index()
	g.caches()
	return g.heaps, nil
}

// findBins returns the addresses of what looks like the bins of an arena.
func (g *glibc) findBins() (list []uint64) {
	pair := 2 * g.ptr
	search := func(start, end uint64) {
		last, n := uint64(0), 0 // of a run of empty bins
		flush := func() {
			if n >= binPairs/4 {
				list = append(list, last-(binPairs-1)*pair)
			}
		}
		before := uint64(0)
		g.words(start, end, func(addr, v uint64) bool {
			if v == addr-3*g.ptr && before == v { // the second word of an empty bin
				bin := addr - g.ptr
				if n > 0 && bin-last > 32*pair {
					flush()
					n = 0
				}
				last = bin
				n++
			}
			before = v
			return true
		})
		flush()
	}
	for _, r := range g.data() {
		search(r.Start, r.End)
	}
	if len(list) == 0 { // no file is known
		segs := g.m.Segments()
		for i := range segs {
			if segs[i].Write && !segs[i].ELF {
				search(segs[i].Addr, segs[i].Addr+uint64(len(segs[i].Data)))
			}
		}
	}
	return list
}

func (g *glibc) nextField(bins uint64) uint64 { return bins + 2*binPairs*g.ptr + 16 }

// size returns the size of an arena from its start.
func (g *glibc) size() uint64 { return g.nextField(g.delta) + 5*g.ptr }

// ring returns the arenas of a ring, main_arena first, or nil if there is none. The distance from the start of
// an arena to its bins depends on the version: each is tried.
func (g *glibc) ring(bins uint64) []uint64 {
	for g.delta = 8 + 2*g.ptr; g.delta <= 32*g.ptr; g.delta += 4 { // no fast bins since 2.43
		first := bins - g.delta
		list := []uint64{first}
		for {
			next, ok := g.m.Pointer(g.nextField(list[len(list)-1] + g.delta))
			if ok && next == first {
				return list
			}
			last := next + g.delta + (binPairs-1)*2*g.ptr
			self, there := g.m.Pointer(last)
			if !ok || !there || self != last-2*g.ptr || len(list) > maxArenas || slices.Contains(list, next) {
				break
			}
			list = append(list, next)
		}
	}
	return nil
}

// maxArenas limits the number of arenas; glibc has up to 8 for each processor.
const maxArenas = 1 << 12

// arena reads an arena; number 0 is main_arena.
func (g *glibc) arena(addr uint64, number int) {
	bins := addr + g.delta
	top, _ := g.m.Pointer(bins - 2*g.ptr)
	system, _ := g.m.Pointer(g.nextField(bins) + 3*g.ptr)
	if top == bins-2*g.ptr { // not used yet
		return
	}
	h := &Heap{Kind: Glibc, Name: mainArena, Addr: addr}
	size, _ := g.m.Pointer(top + g.ptr)
	size &^= 7
	h.own(addr, g.size())
	if number == 0 {
		g.mainArena(h, top, top+size, system)
	} else {
		h.Name = fmt.Sprintf("glibc arena %d", number+1)
		g.otherArena(h, top, system)
	}
	g.topChunk(h, top, size)
	slices.SortFunc(h.Blocks, byAddr)
	g.heaps = append(g.heaps, h)
}

// first returns the first chunk at or after an address, which is aligned so that its block is.
func (g *glibc) first(addr uint64) uint64 { return up(addr+2*g.ptr, g.align) - 2*g.ptr }

func (g *glibc) chain(h *Heap, start, end uint64, unwanted uint64) *chain {
	t := &tags{finder: g.finder, end: end, align: g.align, flags: 7, unwanted: unwanted}
	return &chain{f: g.finder, h: h, start: start, end: end, align: g.align, least: 4 * g.ptr, confirm: confirm, read: t.chunk}
}

func (g *glibc) mainArena(h *Heap, top, end, system uint64) {
	base := end - system
	if base > top || system > end {
		h.prove("bytes of the arena", system, end)
		return
	}
	for _, g.align = range []uint64{16, 8} { // i386 aligns to 16 since 2.26, 32-bit Arm to 8
		c := g.chain(h, g.first(base), top, 2|4)
		if c.intact(c.start) || g.ptr == 8 {
			break
		}
	}
	c := g.chain(h, g.first(base), top, 2|4)
	h.prove("the blocks end at the top chunk", top, c.walk())
	h.own(base, system)
}

// maxHeap returns the alignment of heaps: HEAP_MAX_SIZE.
func (g *glibc) maxHeap() uint64 {
	if g.ptr == 8 {
		return 64 << 20
	}
	return 1 << 20
}

// otherArena reads the heaps of an arena, from that with the top chunk back to the first.
func (g *glibc) otherArena(h *Heap, top, system uint64) {
	if g.align == 0 {
		g.align = 2 * g.ptr
	}
	info := h.Addr & (g.maxHeap() - 1) // size of heap_info: the arena is behind it
	sum, n := uint64(0), 0
	for at := top &^ (g.maxHeap() - 1); ; n++ {
		arena, ok := g.m.Pointer(at)
		prev, _ := g.m.Pointer(at + g.ptr)
		size, _ := g.m.Pointer(at + 2*g.ptr)
		if !ok || arena != h.Addr || size > g.maxHeap() || info > 16*g.ptr || n > maxArenas {
			h.prove(fmt.Sprintf("a heap of the arena at %#x", at), h.Addr, arena)
			return
		}
		sum += size
		start, end := at+info, at+size
		if prev == 0 {
			start = g.first(h.Addr + g.size())
		}
		if top > at && top < end {
			end = top
		}
		c := g.chain(h, start, end, 2)
		if end != top {
			c.last = g.fence
		}
		reached := c.walk()
		if end != top && end-min(end, reached) <= 4*g.ptr+g.align { // the end marks
			reached = end
		}
		h.prove(fmt.Sprintf("the blocks from %#x on end at the end of the heap", start), end, reached)
		h.own(at, size)
		if prev == 0 {
			break
		}
		at = prev
	}
	h.prove("bytes of the arena", system, sum)
}

// fence reports whether an address is that of an end mark: one of two words, and an empty one.
func (g *glibc) fence(addr uint64) bool {
	v, _ := g.m.Pointer(addr + g.ptr)
	return v&^7 == 2*g.ptr || v&^7 == 0
}

// mapped finds the chunks with a mapping of their own.
func (g *glibc) mapped() {
	const page = 4096
	mp := g.params()
	for _, h := range g.heaps {
		if h.Name == mainArena {
			h.prove("mp_ has the start of the arena", 1, min(mp, 1))
		}
	}
	if mp == 0 {
		return
	}
	h := &Heap{Kind: Glibc, Name: mappedBlocks, Addr: mp}
	count, _ := g.m.Uint(mp, 4)
	bytes, _ := g.m.Pointer(up(mp+16, g.ptr))
	h.own(mp, 24+4*g.ptr)
	found := uint64(0)
	shift := uint64(0) // of chunks in their pages
	if g.align > 2*g.ptr {
		shift = g.align - 2*g.ptr
	}
	segs := g.m.Segments()
	for i := range segs {
		s := &segs[i]
		if !s.Write || s.ELF || count == 0 {
			continue
		}
		for at := up(s.Addr, page); at >= s.Addr && at < s.End() && at-s.Addr+page <= uint64(len(s.Data)); at += page {
			b := s.Data[at-s.Addr+shift:]
			prev, size := word(b, g.ptr, g.m.ByteOrder()), word(b[g.ptr:], g.ptr, g.m.ByteOrder())
			total := size&^7 + prev
			if size&7 != 2 || prev != shift || total%page != 0 || total < page || g.blocks == 0 || g.within(at) {
				continue
			}
			if end, ok := g.m.Uint(at+total-1, 1); !ok && end == 0 {
				continue
			}
			g.blocks--
			usable := total - shift - 2*g.ptr
			h.Blocks = append(h.Blocks, Block{Addr: at + shift + 2*g.ptr, Size: usable, Header: 2 * g.ptr, Max: usable, Min: usable - min(usable, page+g.ptr)})
			h.own(at, total)
			found += total
			at += total - page
		}
	}
	slices.SortFunc(h.Blocks, byAddr)
	h.prove("mapped blocks", count, uint64(len(h.Blocks)))
	h.prove("bytes of mapped blocks", bytes, found)
	g.heaps = append(g.heaps, h)
}

// within reports whether an address is in an arena.
func (g *glibc) within(addr uint64) bool {
	return slices.ContainsFunc(g.heaps, func(h *Heap) bool {
		return slices.ContainsFunc(h.Ranges, func(r core.Map) bool { return addr >= r.Start && addr < r.End })
	})
}

// params returns the address of n_mmaps in mp_: numbers { n_mmaps, n_mmaps_max, max_n_mmaps,
// no_dyn_threshold } of 4 bytes, mmapped_mem, max_mmapped_mem, sbrk_base. The last is the start of
// main_arena's memory.
func (g *glibc) params() (found uint64) {
	for _, h := range g.heaps {
		if h.Name != mainArena || len(h.Ranges) < 2 {
			continue
		}
		base := h.Ranges[1].Start
		g.holds(0, 0, func(v uint64) bool { return v == base }, func(addr, _ uint64) {
			mem, _ := g.m.Pointer(addr - 2*g.ptr)
			peak, _ := g.m.Pointer(addr - g.ptr)
			for _, at := range []uint64{addr - 2*g.ptr - 16, addr - 2*g.ptr - 20} { // 20 since 2.35, with 64-bit words
				n, _ := g.m.Uint(at, 4)
				limit, _ := g.m.Uint(at+4, 4)
				most, ok := g.m.Uint(at+8, 4)
				if ok && n <= most && most <= limit && mem <= peak && mem%4096 == 0 && limit >= 1<<10 && limit < 1<<31 {
					found = at
				}
			}
		})
	}
	return found
}

// index collects the blocks of all heaps.
func (g *glibc) index() {
	for _, h := range g.heaps {
		for i := range h.Blocks {
			g.all = append(g.all, &h.Blocks[i])
		}
	}
	slices.SortFunc(g.all, func(a, b *Block) int { return byAddr(*a, *b) })
}

// block returns the block at an address, nil if there is none.
func (g *glibc) block(addr uint64) *Block {
	i := sort.Search(len(g.all), func(i int) bool { return g.all[i].Addr >= addr })
	if i < len(g.all) && g.all[i].Addr == addr {
		return g.all[i]
	}
	return nil
}
