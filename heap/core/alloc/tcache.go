package alloc

import (
	"fmt"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/heap/core"
)

// Chunks in the caches of glibc have headers of used chunks. Each thread has a block
// tcache_perthread_struct { counts[64], entries[64] }: lists of up to 7 chunks of one size each. Each arena has
// fast bins, lists before its top, until 2.42. Since 2.32, links are XORed with the address of the link >> 12.
//
// Since 2.42, it is { slots[76], entries[76] }: the free places of each list, and 12 lists more, of larger
// chunks.

const (
	cacheBins     = 64
	cacheBinsMore = 76
)

// caches marks the blocks of caches.
func (g *glibc) caches() {
	pointed, form := g.threadPointers(), g.form()
	g.plain = form < cacheMangled
	var found []threadCache
	for _, h := range g.heaps {
		for i := range h.Blocks {
			b := &h.Blocks[i]
			c, ok := g.cacheAt(b, form)
			if !ok || len(c.blocks) == 0 && i > 0 && !pointed[b.Addr] {
				continue // an empty cache looks like a block of zeros
			}
			b.State = Internal
			for _, x := range c.blocks {
				x.State = Cached
			}
			found = append(found, c)
		}
		if h.Name != mappedBlocks {
			g.fastBins(h, h.Addr+8, h.Addr+g.delta-2*g.ptr)
		}
	}
	for i := range found { // all blocks of intact lists are known
		for _, l := range found[i].cut {
			g.lost(&found[i], l)
		}
		g.blame(found[i].inside)
	}
	if slices.ContainsFunc(g.heaps, func(h *Heap) bool { return len(h.Damage) > 0 }) {
		g.likeFree()
	}
}

// likeFree makes used blocks doubtful, in a damaged heap, that begin as those in lists of free blocks: with the last link of a
// list, or with one to a block of their size.
func (g *glibc) likeFree() {
	for _, b := range g.all {
		if b.State != Used || b.Size >= 16*(cacheBins+2)*g.align {
			continue
		}
		v := g.link(b.Addr, !g.plain)
		to := g.block(v)
		if to == nil {
			to = g.block(v + 2*g.ptr)
		}
		if v == 0 || to != nil && (to.Size == b.Size || to.Trust != Intact) || to == nil && g.inside(v) {
			b.doubt()
		}
	}
}

// inside reports whether an address is in memory of the heaps, and may be that of a block or chunk.
func (g *glibc) inside(at uint64) bool {
	return at%g.align == 0 && slices.ContainsFunc(g.heaps, func(h *Heap) bool { return h.block(at) >= 0 })
}

// cutList is a list of a cache with a link that leads to no block.
type cutList struct {
	size uint64 // of its chunks, the smallest if it has several
	at   uint64 // of the link
	head bool   // the link is the first one
}

// threadCache is what was found in a cache.
type threadCache struct {
	blocks []*Block
	inside []uint64 // addresses in the lists that are in other blocks
	cut    []cutList
}

// lost finds the blocks behind a link that was overwritten. Blocks in caches have a key behind their link, since 2.29,
// until they are allocated again.
func (g *glibc) lost(c *threadCache, l cutList) {
	v := g.link(l.at, !g.plain)
	if l.head {
		v, _ = g.m.Pointer(l.at)
	}
	g.home(l.at, g.heaps[0]).freed(l.at, v, "the link of the thread's cache")
	for _, b := range g.all {
		if b.State == Used && b.Size+g.ptr == l.size && g.hasKey(b) {
			b.State = Cached
		}
	}
}

// hasKey reports whether a block has the key of blocks in caches.
func (g *glibc) hasKey(b *Block) bool {
	k, _ := g.m.Pointer(b.Addr + g.ptr)
	return g.keys[k] > 1
}

// home returns the heap with a block at an address, or another one if there is none.
func (g *glibc) home(at uint64, other *Heap) *Heap {
	for _, h := range g.heaps {
		if h.block(at) >= 0 {
			return h
		}
	}
	return other
}

// cacheForm is the form of the caches of a version of glibc.
type cacheForm uint8

const (
	cachePlain1  cacheForm = iota // since 2.26: counts of a byte, links are addresses
	cachePlain2                   // since 2.30: counts of two bytes
	cacheMangled                  // since 2.32: XORed links
	cacheSlots                    // since 2.42
	cacheForms
)

// countSize returns the bytes of a count.
func (f cacheForm) countSize() uint64 { return 1 + min(uint64(f), 1) }

// form returns the form with the most blocks in caches: a process has one. It also sets the keys of these blocks.
func (g *glibc) form() cacheForm {
	var votes [cacheForms]int
	var keys [cacheForms]map[uint64]int
	best := cacheMangled
	for _, b := range g.all {
		for f := range cacheForms {
			if c, ok := g.cacheAt(b, f); ok {
				votes[f] += len(c.blocks) - len(c.cut)
				if keys[f] == nil {
					keys[f] = map[uint64]int{}
				}
				for _, x := range c.blocks {
					if k, _ := g.m.Pointer(x.Addr + g.ptr); k != 0 {
						keys[f][k]++
					}
				}
			}
		}
	}
	for f, n := range votes {
		if n > votes[best] {
			best = cacheForm(f)
		}
	}
	g.keys = keys[best]
	return best
}

// cacheAt reads a cache of a form if a block can be one.
func (g *glibc) cacheAt(b *Block, form cacheForm) (c threadCache, ok bool) {
	bytes, spare := uint64(cacheBins*(form.countSize()+g.ptr)), uint64(0)
	if form == cacheSlots {
		bytes, spare = cacheBinsMore*(2+g.ptr), 2*g.ptr // a rest of less than 4 words is not split off
	}
	size := up(bytes+g.ptr, g.align) - g.ptr
	unsure := b.Trust != Intact // that of a block with an overwritten header is not sure
	if b.State != Used || !unsure && (b.Size < size || b.Size > size+spare) {
		return c, false
	}
	for _, addr := range []uint64{b.Addr, b.Addr + g.ptr} {
		if form == cacheSlots {
			c, ok = g.cacheOfSlots(addr)
		} else {
			c, ok = g.cache(addr, form.countSize(), form == cacheMangled)
		}
		if ok || !unsure {
			break
		}
	}
	return c, ok
}

// threadPointers returns the words of the thread-local variables: one of them is the cache's address.
func (g *glibc) threadPointers() map[uint64]bool {
	const near = 4096
	list := map[uint64]bool{}
	for _, t := range g.m.Threads {
		if t.TLS > near {
			g.words(t.TLS-near, t.TLS+near, func(_, v uint64) bool {
				list[v] = true
				return true
			})
		}
	}
	return list
}

// mostCut is the number of lists of a cache that may be cut.
const mostCut = 4

// cache reads a cache. ok is false if the block at addr cannot be one.
func (g *glibc) cache(addr, count uint64, mangled bool) (c threadCache, ok bool) {
	for i := range uint64(cacheBins) {
		n, _ := g.m.Uint(addr+i*count, int(count))
		head := addr + cacheBins*count + i*g.ptr
		at, there := g.m.Pointer(head)
		if !there || (n == 0) != (at == 0) {
			return c, false
		}
		size := 4*g.ptr + i*g.align
		_, cut := g.cached(&c, head, at, n, mangled, func(b *Block) bool { return b.Size+g.ptr == size })
		if cut != 0 {
			c.cut = append(c.cut, cutList{size, cut, cut == head})
		}
	}
	return c, len(c.cut) <= mostCut
}

// cached reads up to n blocks of a list into c. at is the first one, to which the word at head leads. passed is the number
// of those read, with those inside other blocks. cut is the address of a link that was overwritten, 0 if there is none.
func (g *glibc) cached(c *threadCache, head, at, n uint64, mangled bool, fits func(*Block) bool) (passed, cut uint64) {
	link := head
	seen := map[uint64]bool{}
	for ; passed < n; passed++ {
		b := g.block(at)
		if seen[at] || b == nil && g.covering(at) == nil || b != nil && (b.State != Used || !fits(b) && b.Trust == Intact && !g.hasKey(b)) {
			return passed, link
		}
		if seen[at] = true; b != nil && (fits(b) || b.Trust != Intact) {
			c.blocks = append(c.blocks, b)
		} else {
			c.inside = append(c.inside, at)
		}
		link, at = at, g.link(at, mangled)
	}
	if at != 0 {
		return passed, link
	}
	return passed, 0
}

// covering returns the used block that an address is in, without being its start: its header must be wrong if a block
// begins there. It returns nil if there is none.
func (g *glibc) covering(at uint64) *Block {
	if at%(2*g.ptr) != 0 {
		return nil
	}
	i := sort.Search(len(g.all), func(i int) bool { return g.all[i].Addr > at }) - 1
	if i < 0 || g.all[i].State != Used || at > g.all[i].end() {
		return nil
	}
	return g.all[i]
}

// blame adds damage of the blocks that an address is in where lists of free blocks lead to.
func (g *glibc) blame(addrs []uint64) {
	for _, at := range addrs {
		b := g.covering(at)
		if b == nil || b.Trust != Intact {
			continue
		}
		h := g.home(b.Addr, g.heaps[0])
		i := h.block(b.Addr)
		what := fmt.Sprintf("the block holds %#x, where a list of free blocks leads to", at)
		if at == b.Addr {
			what = fmt.Sprintf("the block has %d bytes, but a list of free blocks of another size leads to it", b.Size)
		}
		h.doubt(Damage{Addr: b.Addr - g.ptr, Part: core.DamagedNode, What: what, Before: i - 1, Block: i}, i)
		for k := i + 1; k <= i+doubtful && k < len(h.Blocks); k++ { // its size may lead to bytes of another block
			h.Blocks[k].doubt()
		}
	}
}

// cacheOfSlots reads a cache of 2.42 or later. ok is false if the block at addr cannot be one: in a cache, all
// lists have the same number of places.
func (g *glibc) cacheOfSlots(addr uint64) (c threadCache, ok bool) {
	free, passed, cut := [cacheBinsMore]uint64{}, [cacheBinsMore]uint64{}, [cacheBinsMore]uint64{}
	votes, places := map[uint64]int{}, uint64(0)
	for i := range uint64(cacheBinsMore) {
		free[i], _ = g.m.Uint(addr+2*i, 2)
		head := addr + 2*cacheBinsMore + i*g.ptr
		first, _ := g.m.Pointer(head)
		size := 4*g.ptr + min(i, cacheBins)*g.align
		if first != 0 {
			passed[i], cut[i] = g.cached(&c, head, first, 1<<16-1, true, func(b *Block) bool { return b.Size+g.ptr == size || i >= cacheBins && b.Size+g.ptr > size })
		}
		if passed[i] > 0 && cut[i] != head && g.link(cut[i], true) == 0 {
			cut[i] = 0 // the end
		}
		n := free[i] + passed[i]
		if votes[n]++; votes[n] > votes[places] {
			places = n
		}
	}
	if places == 0 || votes[places] < cacheBinsMore-mostCut {
		return c, false
	}
	for i, at := range cut {
		if n := free[i] + passed[i]; n != places || at != 0 {
			if at == 0 {
				at = addr + 2*uint64(i) // the number
			}
			c.cut = append(c.cut, cutList{4*g.ptr + uint64(min(i, cacheBins))*g.align, at, at < addr+(2+g.ptr)*cacheBinsMore})
		}
	}
	return c, true
}

// link returns what the link at an address leads to.
func (g *glibc) link(at uint64, mangled bool) uint64 {
	next, _ := g.m.Pointer(at)
	if mangled {
		next ^= at >> 12
	}
	return next
}

// maxFast is the size of the largest chunks in fast bins, in words.
const maxFast = 24

// fastBins marks the chunks in the lists before the address of an arena's top. A list leads back to no chunk twice.
func (g *glibc) fastBins(h *Heap, start, top uint64) {
	for at := top - g.ptr; at >= start; at -= g.ptr {
		link, size, n := at, uint64(0), 0
		next, _ := g.m.Pointer(at)
		for ; next != 0; n++ {
			b := g.block(next + 2*g.ptr)
			if in := g.covering(next + 2*g.ptr); b == nil && in != nil && (n > 0 || in.Trust != Intact) && link != next+2*g.ptr && n < core.MaxBlocks {
				link = next + 2*g.ptr
				g.blame([]uint64{link})
				next = g.link(link, !g.plain)
				continue
			}
			if b == nil || b.State != Used || b.Trust == Intact && (b.Size > maxFast*g.ptr || size != 0 && b.Size+g.ptr != size) {
				if n > 0 { // else these words are no heads of lists
					g.home(link, h).freed(link, next, "the link of the list of free blocks")
				}
				break
			}
			if b.State = Cached; size == 0 && b.Trust == Intact {
				size = b.Size + g.ptr
			}
			link, next = b.Addr, g.link(b.Addr, !g.plain)
		}
		if size != 0 {
			g.orphans(size)
		}
	}
}

// orphans makes used blocks of a size doubtful that look like those in a fast bin: the first word is a link to another one. If a
// link was overwritten by a valid one, the list passes over them.
func (g *glibc) orphans(size uint64) {
	for _, b := range g.all {
		if b.State != Used || b.Size+g.ptr != size {
			continue
		}
		if to := g.block(g.link(b.Addr, !g.plain) + 2*g.ptr); to != nil && to.Size == b.Size {
			b.doubt()
			if to.State == Used {
				to.doubt()
			}
		}
	}
}

// shifted finds blocks that a size leads past: one alignment too far, where an old header is. Then what looks like a header is
// directly before the one that was found, and pointers lead to its block, but none to the block that was found.
func (g *glibc) shifted() {
	type place struct {
		h     *Heap
		block int
	}
	at := map[uint64]place{} // by the address of the block that was found
	for _, h := range g.heaps {
		for i := 1; i < len(h.Blocks); i++ {
			b, before := &h.Blocks[i], &h.Blocks[i-1]
			g.m.Passed(min(b.Size, pageSize))
			v, _ := g.m.Pointer(b.Addr - g.align - g.ptr)
			if size := v &^ 7; b.State == Used && before.State == Used && before.end() == b.start() && b.Addr-g.align-g.ptr > before.Addr && v&3 == 1 && size >= 4*g.ptr && size%g.align == 0 && size <= b.Size+g.ptr+g.align {
				at[b.Addr] = place{h, i}
			}
		}
	}
	if len(at) == 0 {
		return
	}
	found, other := map[uint64]bool{}, map[uint64]bool{}
	segs := g.m.Segments()
	for i := range segs {
		if !segs[i].Write {
			continue
		}
		g.words(segs[i].Addr, segs[i].End(), func(addr, v uint64) bool {
			if _, ok := at[v]; ok && g.counts(addr) {
				found[v] = true
			}
			if _, ok := at[v+g.align]; ok && g.counts(addr) {
				other[v+g.align] = true
			}
			return true
		})
	}
	for addr, x := range at {
		if other[addr] && !found[addr] {
			what := fmt.Sprintf("the size leads to %#x, but pointers lead to a block before it, at %#x", addr-2*g.ptr, addr-g.align)
			x.h.doubt(Damage{Addr: x.h.Blocks[x.block-1].start(), Part: core.DamagedNode, What: what, Before: x.block - 2, Block: x.block - 1}, x.block-1, x.block)
		}
	}
}

// counts reports whether a word may be a pointer of the program: it is not in free memory.
func (g *glibc) counts(addr uint64) bool {
	i := sort.Search(len(g.all), func(i int) bool { return g.all[i].Addr > addr }) - 1
	return i < 0 || addr >= g.all[i].end() || g.all[i].State == Used
}
