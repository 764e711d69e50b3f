package alloc

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
	pointed := g.threadPointers()
	for _, h := range g.heaps {
		for i := range h.Blocks {
			b := &h.Blocks[i]
			lists, ok := g.cacheAt(b)
			if !ok || len(lists) == 0 && i > 0 && !pointed[b.Addr] {
				continue // an empty cache looks like a block of zeros
			}
			b.State = Internal
			for _, x := range lists {
				x.State = Cached
			}
		}
		if h.Name != mappedBlocks {
			g.fastBins(h.Addr+8, h.Addr+g.delta-2*g.ptr)
		}
	}
}

// cacheAt reads a cache if a block can be one: each version of glibc has its size and form.
func (g *glibc) cacheAt(b *Block) (blocks []*Block, ok bool) {
	// A rest of less than 4 words is not split off.
	if more := up(cacheBinsMore*(2+g.ptr)+g.ptr, g.align); b.State == Used && b.Size+g.ptr >= more && b.Size < more+3*g.ptr {
		return g.cacheOfSlots(b.Addr)
	}
	for _, count := range []uint64{2, 1} { // bytes of a count: 2 since 2.30
		if b.State != Used || b.Size+g.ptr != up(cacheBins*(count+g.ptr)+g.ptr, g.align) {
			continue
		}
		if blocks, ok = g.cache(b.Addr, count, true); ok {
			return blocks, true
		}
		if blocks, ok = g.cache(b.Addr, count, false); ok {
			g.plain = true
			return blocks, true
		}
	}
	return nil, false
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

// cache reads a cache. ok is false if the block at addr cannot be one.
func (g *glibc) cache(addr, count uint64, mangled bool) (blocks []*Block, ok bool) {
	for i := range uint64(cacheBins) {
		n, _ := g.m.Uint(addr+i*count, int(count))
		at, there := g.m.Pointer(addr + cacheBins*count + i*g.ptr)
		if !there || (n == 0) != (at == 0) {
			return nil, false
		}
		for ; n > 0; n-- {
			b := g.block(at)
			if b == nil || b.State != Used || b.Size+g.ptr != 4*g.ptr+i*g.align {
				return nil, false
			}
			blocks = append(blocks, b)
			at = g.link(at, mangled)
		}
		if at != 0 {
			return nil, false
		}
	}
	return blocks, true
}

// cacheOfSlots reads a cache of 2.42 or later. ok is false if the block at addr cannot be one: in a cache, all
// lists have the same number of places.
func (g *glibc) cacheOfSlots(addr uint64) (blocks []*Block, ok bool) {
	places := uint64(0)
	for i := range uint64(cacheBinsMore) {
		n, _ := g.m.Uint(addr+2*i, 2)
		at, _ := g.m.Pointer(addr + 2*cacheBinsMore + i*g.ptr)
		for ; at != 0; n++ {
			b := g.block(at)
			if b == nil || b.State != Used || n >= 1<<16 {
				return nil, false
			}
			if size := 4*g.ptr + min(i, cacheBins)*g.align; b.Size+g.ptr != size && (i < cacheBins || b.Size+g.ptr < size) {
				return nil, false
			}
			blocks = append(blocks, b)
			at = g.link(at, true)
		}
		if i == 0 {
			places = n
		}
		if n != places || n == 0 {
			return nil, false
		}
	}
	return blocks, true
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

// fastBins marks the chunks in the lists before the address of an arena's top.
func (g *glibc) fastBins(start, top uint64) {
	for at := top - g.ptr; at >= start && at+16*g.ptr > top; at -= g.ptr {
		head, _ := g.m.Pointer(at)
		for b := g.block(head + 2*g.ptr); b != nil && b.State == Used && b.Size <= maxFast*g.ptr; {
			b.State = Cached
			b = g.block(g.link(b.Addr, !g.plain) + 2*g.ptr)
		}
	}
}
