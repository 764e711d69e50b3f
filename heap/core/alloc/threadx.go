package alloc

// ThreadX, byte pools with 32-bit words, common/src/tx_byte_*.c: TX_BYTE_POOL begins with an identifier, so no
// symbol is needed:
//
//	identifier │ name │ free bytes │ number of chunks │ first chunk │ search │ start │ size │ …
//
// Chunks are a list in order of addresses. The last one is a used header without a block, and
// leads back to the start:
//
//	next chunk │ TX_BYTE_POOL, 0xffffeeee if free │ block …
//
// Free chunks are joined when a search meets them.

const (
	bytePoolID   = 0x42595445 // "BYTE"
	bytePoolFree = 0xffffeeee
	bytePoolHead = 8 // bytes of a header
)

func (f *finder) bytePools() (heaps []*Heap, err error) {
	if f.ptr != 4 {
		return nil, ErrNone
	}
	return f.search(f.memory(), func(addr, v uint64) *Heap {
		if v == bytePoolID {
			return f.bytePoolAt(addr)
		}
		return nil
	})
}

// bytePoolAt returns the pool at an address, nil if there is none: its end, or its first chunk, must
// belong to it.
func (f *finder) bytePoolAt(pool uint64) *Heap {
	var x [8]uint64
	for i := range x {
		x[i], _ = f.m.Uint(pool+4*uint64(i), 4)
	}
	free, chunks, first, search, start, size := x[2], x[3], x[4], x[5], x[6], x[7]
	if size < 3*bytePoolHead || size%4 != 0 || start%4 != 0 || start+size > 1<<32 || first != start || search < start || search >= start+size || free > size {
		return nil
	}
	s := &linked{finder: f, start: start, end: start + size - bytePoolHead, header: bytePoolHead, least: bytePoolHead + 4, field: 4, align: 4, oneWay: true}
	s.state = func(addr uint64) (used, ok bool) {
		owner, _ := f.m.Uint(addr+4, 4)
		return owner == pool, owner == pool || owner == bytePoolFree
	}
	back, _ := f.m.Uint(s.end, 4)
	last, _ := f.m.Uint(s.end+4, 4)
	if _, why := s.chunk(start); why != "" && (back != start || last != pool) {
		return nil
	}
	s.h = &Heap{Kind: ThreadX, Name: "ThreadX byte pool", Addr: pool, slack: 3}
	sum := s.read("the blocks end at the end of the pool")
	s.h.prove("free bytes", free, sum.free+sum.holes*bytePoolHead)
	s.h.prove("blocks", chunks-1, uint64(len(s.h.Blocks)))
	s.h.join()
	s.h.own(pool, 13*4)
	s.h.own(start, size)
	return s.h
}

// join joins free blocks, as the next search does.
func (h *Heap) join() {
	list := h.Blocks[:0]
	index := make([]int, len(h.Blocks))
	for i := range h.Blocks {
		b := h.Blocks[i]
		if n := len(list); n > 0 && b.State == Free && list[n-1].State == Free {
			list[n-1].Size = b.Addr + b.Size - list[n-1].Addr
		} else {
			list = append(list, b)
		}
		index[i] = len(list) - 1
	}
	for i := range h.Damage {
		d := &h.Damage[i]
		d.Block = index[d.Block]
		if d.Before >= 0 {
			d.Before = index[d.Before]
		}
	}
	h.Blocks = list
}
