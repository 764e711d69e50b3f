package alloc

import "fmt"

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

// bytePool is one pool.
type bytePool struct {
	*finder
	h          *Heap
	addr       uint64 // of TX_BYTE_POOL
	start, end uint64 // of the chunks: end is the last header
}

func (f *finder) bytePools() (heaps []*Heap, err error) {
	if f.ptr != 4 {
		return nil, ErrNone
	}
	return f.search(f.memory(), func(addr, v uint64) *Heap {
		if v == bytePoolID {
			if p := f.bytePoolAt(addr); p != nil {
				return p.read()
			}
		}
		return nil
	})
}

// bytePoolAt returns the pool at an address, nil if there is none: its end, or its first chunk, must
// belong to it.
func (f *finder) bytePoolAt(addr uint64) *bytePool {
	var x [8]uint64
	for i := range x {
		x[i], _ = f.m.Uint(addr+4*uint64(i), 4)
	}
	free, first, search, start, size := x[2], x[4], x[5], x[6], x[7]
	if size < 3*bytePoolHead || size%4 != 0 || start%4 != 0 || start+size > 1<<32 || first != start || search < start || search >= start+size || free > size {
		return nil
	}
	p := &bytePool{finder: f, addr: addr, start: start, end: start + size - bytePoolHead}
	back, _ := f.m.Uint(p.end, 4)
	last, _ := f.m.Uint(p.end+4, 4)
	if _, why := p.next(start); why != "" && (back != start || last != addr) {
		return nil
	}
	return p
}

func (p *bytePool) read() *Heap {
	p.h = &Heap{Kind: ThreadX, Name: "ThreadX byte pool", Addr: p.addr, slack: 3}
	c := chain{f: p.finder, h: p.h, start: p.start, end: p.end, align: 4, least: bytePoolHead + 4, confirm: confirm, read: p.next}
	p.h.prove("the blocks end at the end of the pool", p.end, c.walk())
	available, _ := p.m.Uint(p.addr+8, 4)
	chunks, _ := p.m.Uint(p.addr+12, 4)
	n, bytes := p.h.Count(Free)
	p.h.prove("free bytes", available, bytes+uint64(n)*bytePoolHead)
	p.h.prove("blocks", chunks-1, uint64(len(p.h.Blocks)))
	p.join()
	p.h.own(p.addr, 13*4)
	p.h.own(p.start, p.end+bytePoolHead-p.start)
	return p.h
}

// next reads a chunk.
func (p *bytePool) next(addr uint64) (c chunk, why string) {
	next, _ := p.m.Uint(addr, 4)
	owner, ok := p.m.Uint(addr+4, 4)
	switch {
	case !ok:
		return c, "no memory"
	case next < addr+bytePoolHead+4 || next > p.end || next%4 != 0:
		return c, fmt.Sprintf("the link of the header is %#x, expected %#x to %#x", next, addr+bytePoolHead+4, p.end)
	case owner != bytePoolFree && owner != p.addr:
		return c, fmt.Sprintf("the pool of the header is %#x, expected %#x", owner, p.addr)
	}
	b := Block{Addr: addr + bytePoolHead, Size: next - addr - bytePoolHead, Header: bytePoolHead, State: Free}
	if owner == p.addr {
		b.State = Used
	}
	behind, _ := p.m.Uint(next+4, 4)
	return chunk{size: next - addr, block: b, alone: next != p.end && behind != p.addr && behind != bytePoolFree}, ""
}

// join joins free blocks, as the next search does.
func (p *bytePool) join() {
	list := p.h.Blocks[:0]
	index := make([]int, len(p.h.Blocks))
	for i := range p.h.Blocks {
		b := p.h.Blocks[i]
		if n := len(list); n > 0 && b.State == Free && list[n-1].State == Free {
			list[n-1].Size = b.Addr + b.Size - list[n-1].Addr
		} else {
			list = append(list, b)
		}
		index[i] = len(list) - 1
	}
	for i := range p.h.Damage {
		d := &p.h.Damage[i]
		d.Block = index[d.Block]
		if d.Before >= 0 {
			d.Before = index[d.Before]
		}
	}
	p.h.Blocks = list
}
