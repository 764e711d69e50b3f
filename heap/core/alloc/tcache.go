package alloc

// Chunks in the caches of glibc have headers of used chunks. Each thread has a block
// tcache_perthread_struct { counts[64], entries[64] }: lists of up to 7 chunks of one size each. Each arena has
// fast bins, lists before its top. Since 2.32, links are XORed with the address of the link >> 12.

const cacheBins = 64

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
			g.fastBins(h.Addr + g.delta - 2*g.ptr)
		}
	}
}

// cacheAt reads a cache if a block can be one: each version of glibc has its size and form.
func (g *glibc) cacheAt(b *Block) (blocks []*Block, ok bool) {
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
func (g *glibc) fastBins(top uint64) {
	for at := top - g.ptr; at+16*g.ptr > top; at -= g.ptr {
		head, _ := g.m.Pointer(at)
		for b := g.block(head + 2*g.ptr); b != nil && b.State == Used && b.Size <= maxFast*g.ptr; {
			b.State = Cached
			b = g.block(g.link(b.Addr, !g.plain) + 2*g.ptr)
		}
	}
}
