package alloc

import (
	"cmp"
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
// 32-bit words, 4 pages if pages are huge), which begin with heap_info { arena, previous heap, size, … }. Chunks of their own
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
	delta uint64         // from the start of an arena to its bins
	keys  map[uint64]int // of blocks in caches: numbers of blocks by key
	plain bool           // links of caches are addresses, as before 2.32
	heaps []*Heap
	all   []*Block // of all arenas, by address of the header
}

func (f *finder) glibc() ([]*Heap, error) {
	g := &glibc{finder: f, align: 2 * f.ptr}
	bins := g.findBins()
	for _, b := range bins {
		if arenas := g.arenas(b); arenas != nil {
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
	g.shifted()
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
		for _, r := range g.memory() {
			search(r.Start, r.End)
		}
	}
	return list
}

func (g *glibc) nextField(bins uint64) uint64 { return bins + 2*binPairs*g.ptr + 16 }

// size returns the size of an arena from its start.
func (g *glibc) size() uint64 { return g.nextField(g.delta) + 5*g.ptr }

// arenas returns the arenas of a ring, main_arena first, or nil if there is none. The distance from the start of
// an arena to its bins depends on the version: each is tried.
func (g *glibc) arenas(bins uint64) []uint64 {
	for g.delta = 8 + 2*g.ptr; g.delta <= 20*g.ptr; g.delta += 4 { // no fast bins since 2.43
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
	h := &Heap{Kind: Glibc, Name: mainArena, Addr: addr, overlap: g.ptr}
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
	h.slack, h.least = uint8(g.align-1), 3*g.ptr
	h.sort()
	g.heaps = append(g.heaps, h)
}

// first returns the first chunk at or after an address, which is aligned so that its block is.
func (g *glibc) first(addr uint64) uint64 { return up(addr+2*g.ptr, g.align) - 2*g.ptr }

func (g *glibc) chain(h *Heap, start, end uint64, unwanted uint64) *chain {
	t := &tags{finder: g.finder, end: end, align: g.align, flags: 7, unwanted: unwanted, marks: g.endMarks}
	return &chain{f: g.finder, h: h, start: start, end: end, align: g.align, least: 4 * g.ptr, confirm: confirm, field: g.ptr, overlap: g.ptr, read: t.chunk, strict: t.chunk}
}

// maxHeap returns the alignment of the heaps of an arena: HEAP_MAX_SIZE, or 4 huge pages if they are used.
func (g *glibc) maxHeap(arena, top uint64) uint64 {
	usual := uint64(1 << 20)
	if g.ptr == 8 {
		usual = 64 << 20
	}
	for _, most := range []uint64{min(usual, 8<<20), max(usual, 8<<20), 128 << 20, 4 << 30} {
		at, n, fits := top&^(most-1), 0, true
		for ; fits && at != 0 && n < maxArenas; n++ { // a larger alignment may lead to an earlier heap of the arena
			v, _ := g.m.Pointer(at)
			size, ok := g.m.Pointer(at + 2*g.ptr)
			fits = ok && v == arena && size <= most && at%most == 0
			at, _ = g.m.Pointer(at + g.ptr)
		}
		if fits && n > 0 {
			return most
		}
	}
	return usual
}

// otherArena reads the heaps of an arena, from that with the top chunk back to the first.
func (g *glibc) otherArena(h *Heap, top, system uint64) {
	most := g.maxHeap(h.Addr, top)
	info := h.Addr & (most - 1) // size of heap_info: the arena is behind it
	sum, n := uint64(0), 0
	for at := top &^ (most - 1); ; n++ {
		arena, ok := g.m.Pointer(at)
		prev, _ := g.m.Pointer(at + g.ptr)
		size, _ := g.m.Pointer(at + 2*g.ptr)
		if !ok || arena != h.Addr || size > most || info > 16*g.ptr || n > maxArenas {
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
	mp := uint64(0)
	for _, h := range g.heaps {
		if h.Name == mainArena {
			for i := 1; i < len(h.Ranges) && mp == 0; i++ {
				mp = g.params(h.Ranges[i].Start)
			}
			h.prove("mp_ has the start of the arena", 1, min(mp, 1))
		}
	}
	if mp == 0 {
		return
	}
	h := &Heap{Kind: Glibc, Name: mappedBlocks, Addr: mp, slack: uint8(g.align - 1)}
	count, _ := g.m.Uint(mp, 4)
	bytes, _ := g.m.Pointer(g.sbrkBase(mp) - 2*g.ptr)
	found := uint64(0)
	for _, all := range []bool{false, true} {
		h.Blocks, h.Ranges = nil, nil
		h.own(mp, 24+4*g.ptr)
		if count > 0 {
			found = g.findMapped(h, all)
		}
		if count == uint64(len(h.Blocks)) && bytes == found {
			break
		}
	}
	h.sort()
	h.prove("mapped blocks", count, uint64(len(h.Blocks)))
	h.prove("bytes of mapped blocks", bytes, found)
	g.heaps = append(g.heaps, h)
}

// findMapped adds the blocks with a mapping of their own, and returns their bytes. all is as in mappedAt.
func (g *glibc) findMapped(h *Heap, all bool) (bytes uint64) {
	var arenas []core.Map
	for _, x := range g.heaps {
		arenas = append(arenas, x.Ranges...)
	}
	slices.SortFunc(arenas, func(a, b core.Map) int { return cmp.Compare(a.End, b.End) })
	segs := g.m.Segments()
	for i := range segs {
		s := &segs[i]
		if !s.Write || s.ELF {
			continue
		}
		for at := up(s.Addr, pageSize); at >= s.Addr && at < s.End() && at-s.Addr+pageSize <= uint64(len(s.Data)); at += pageSize {
			g.m.Passed(pageSize)
			chunk, total := g.mappedAt(at, s.Data[at-s.Addr:], all)
			if total == 0 || g.blocks == 0 || within(arenas, at) {
				continue
			}
			if end, ok := g.m.Uint(at+total-1, 1); !ok && end == 0 {
				continue
			}
			g.blocks--
			addr := chunk + 2*g.ptr
			h.Blocks = append(h.Blocks, Block{Addr: addr, Size: at + total - addr, Header: uint16(2 * g.ptr)})
			h.own(at, total)
			bytes += total
			at += total - pageSize
		}
	}
	return bytes
}

// mappedAt returns the chunk of a mapping that begins at a page, and the size of the mapping, 0 if there is
// none. A block with an alignment has its header further behind; the first one is still there. If the block was
// moved, it is not aligned any more, but has its place in a page: all selects a search of all pages for it.
func (g *glibc) mappedAt(at uint64, page []byte, all bool) (chunk, total uint64) {
	read := g.m.Words()
	shift := uint64(0)
	if g.align > 2*g.ptr {
		shift = g.align - 2*g.ptr
	}
	prev, size := read.Word(page[shift:]), read.Word(page[shift+g.ptr:])
	total = size&^7 + prev
	if size&7 != 2 || prev != shift || total%pageSize != 0 || total < pageSize {
		return 0, 0
	}
	first := at + shift
	again := func(chunk uint64) (total uint64) {
		g.budget--
		prev, _ := g.m.Pointer(chunk)
		size, ok := g.m.Pointer(chunk + g.ptr)
		if total = size&^7 + prev; !ok || prev != chunk-at || size&7 != 2 || total%pageSize != 0 || total <= prev {
			return 0
		}
		return total
	}
	for align := 2 * g.align; align < total && align != 0; align *= 2 {
		chunk := up(first+2*g.ptr, align) - 2*g.ptr
		if chunk-first < 4*g.ptr {
			chunk += align
		}
		if n := again(chunk); n > 0 {
			return chunk, n
		}
	}
	for chunk := at + pageSize - 2*g.ptr; all && chunk < at+total && g.budget > 0; chunk += pageSize {
		if n := again(chunk); n > 0 {
			return chunk, n
		}
	}
	return first, total
}

// within reports whether an address is in one of the ranges, which are sorted by their ends.
func within(ranges []core.Map, addr uint64) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > addr })
	return i < len(ranges) && addr >= ranges[i].Start
}

// params returns the address of n_mmaps in mp_: numbers { n_mmaps, n_mmaps_max, max_n_mmaps,
// no_dyn_threshold } of 4 bytes, mmapped_mem, max_mmapped_mem, sbrk_base. The last is the start of
// main_arena's memory. If base is 0, any memory with chunks is.
func (g *glibc) params(base uint64) (found uint64) {
	likely := false // the limit is not small; mallopt may set it
	begins := func(v uint64) bool {
		if base != 0 || v == 0 || v%g.ptr != 0 {
			return v == base && base != 0
		}
		s := g.m.Find(v)
		return s != nil && g.chain(&Heap{}, g.first(v), s.End(), 2|4).intact(g.first(v))
	}
	g.holds(0, 0, begins, func(addr, _ uint64) {
		mem, _ := g.m.Pointer(addr - 2*g.ptr)
		peak, _ := g.m.Pointer(addr - g.ptr)
		for _, at := range []uint64{addr - 2*g.ptr - 16, addr - 2*g.ptr - 20} {
			if addr-at > 2*g.ptr+16 && g.ptr == 4 { // 20 since 2.35, with 64-bit words
				continue
			}
			n, _ := g.m.Uint(at, 4)
			limit, _ := g.m.Uint(at+4, 4)
			most, ok := g.m.Uint(at+8, 4)
			chosen, _ := g.m.Uint(at+12, 4)
			large := limit >= 1<<10 && base != 0 || limit == 1<<16
			if ok && chosen <= 1 && n <= most && mem <= peak && mem%pageSize == 0 && limit < 1<<31 && (large || chosen == 1 && !likely && base != 0) {
				found, likely = at, large
			}
		}
	})
	return found
}

// sbrkBase returns the address of sbrk_base in mp_.
func (g *glibc) sbrkBase(mp uint64) uint64 { return up(mp+16, g.ptr) + 2*g.ptr }

// index collects the blocks of all heaps.
func (g *glibc) index() {
	n := 0
	for _, h := range g.heaps {
		n += len(h.Blocks)
	}
	g.all = make([]*Block, 0, n)
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
