package alloc

import (
	"fmt"
	"math/bits"

	"github.com/lwsbt/lwsbt/heap/core"
)

// Zephyr's sys_heap, lib/heap: it is found by its own structure, struct z_heap, to which a variable
// points. Numbers of chunks are in units of 8 bytes from struct z_heap on, which is chunk 0:
//
//	struct z_heap: size of left chunk 0 │ size and used │ end chunk │ bucket mask │ statistics, if configured │ buckets
//	chunk:         size of left chunk   │ size and used │ block, or previous and next free chunk
//
// Fields are numbers of 4 bytes, or 2 in heaps of less than 256 KB with 32-bit words. "Size and used" is
// twice the size, and 1 if the chunk is used. The end chunk has size 0.

const sysUnit = 8

// sysHeap is one heap.
type sysHeap struct {
	*finder
	h     *Heap
	base  uint64
	end   uint64 // address of the end chunk
	field uint64 // bytes
}

func (f *finder) zephyr() (heaps []*Heap, err error) {
	seen := map[uint64]bool{}
	return f.search(f.data(), func(_, v uint64) *Heap {
		if v%sysUnit == 0 && v != 0 && !seen[v] {
			if s := f.sysHeapAt(v); s != nil {
				seen[v] = true
				return s.read()
			}
		}
		return nil
	})
}

// sysHeapAt returns the heap at an address, nil if there is none: its first chunk must be used and
// have no left neighbour, and the end chunk must be used, empty, and have one.
func (f *finder) sysHeapAt(base uint64) *sysHeap {
	last, _ := f.m.Uint(base+8, 4)
	for _, field := range []uint64{2, 4} {
		if field == 2 && (f.ptr == 8 || last > 0x7fff) {
			continue
		}
		s := &sysHeap{finder: f, base: base, end: base + last*sysUnit, field: field}
		left, size, used, ok := s.chunk(base)
		if !ok || left != 0 || !used || size < 3 || size >= last {
			continue
		}
		before, none, used, ok := s.chunk(s.end)
		if !ok || none != 0 || !used || before == 0 || before > last-3 {
			continue
		}
		left, _, _, _ = s.chunk(base + size*sysUnit)
		_, again, _, _ := s.chunk(s.end - before*sysUnit)
		if left == size || again == before { // one of them may be overwritten
			return s
		}
	}
	return nil
}

// chunk reads the header of a chunk; sizes are in units.
func (s *sysHeap) chunk(addr uint64) (left, size uint64, used, ok bool) {
	left, _ = s.m.Uint(addr, int(s.field))
	v, ok := s.m.Uint(addr+s.field, int(s.field))
	return left, v >> 1, v&1 == 1, ok
}

// fits reports whether the chunk behind a chunk has the chunk's size.
func (s *sysHeap) fits(addr, size uint64) bool {
	if size == 0 || size > (s.end-addr)/sysUnit {
		return false
	}
	left, _, _, ok := s.chunk(addr + size*sysUnit)
	return ok && left == size
}

func (s *sysHeap) header() uint64 { return 2 * s.field }

func (s *sysHeap) read() *Heap {
	s.h = &Heap{Kind: SysHeap, Name: "Zephyr sys_heap", Addr: s.base, slack: sysUnit - 1}
	_, first, _, _ := s.chunk(s.base)
	c := chain{f: s.finder, h: s.h, start: s.base + first*sysUnit, end: s.end, align: sysUnit, least: sysUnit, confirm: confirm, field: s.field, read: s.next}
	s.h.prove("the blocks end at the end chunk", s.end, c.walk())
	if listed, ok := s.listed(first); ok {
		free := uint64(0)
		for i := range s.h.Blocks {
			if b := &s.h.Blocks[i]; b.State == Free && b.Size > 0 { // a header alone is in no list
				free++
			}
		}
		s.h.prove("blocks in the lists of free blocks", listed, free)
	}
	s.h.own(s.base, s.end+s.header()-s.base)
	return s.h
}

// next reads a chunk of the chain.
func (s *sysHeap) next(addr uint64) (c chunk, why string) {
	_, size, used, ok := s.chunk(addr)
	switch {
	case !ok:
		return c, "no memory"
	case size == 0 || size > (s.end-addr)/sysUnit:
		return c, fmt.Sprintf("the size of the header is %d units of 8 bytes, expected 1 to %d", size, (s.end-addr)/sysUnit)
	}
	if !s.fits(addr, size) { // this header is wrong, or the next one
		behind := addr + size*sysUnit
		if _, next, _, ok := s.chunk(behind); behind == s.end || ok && s.fits(behind, next) {
			left, _, _, _ := s.chunk(behind)
			return c, fmt.Sprintf("the size of the header is %d units of 8 bytes, behind the block it is %d", size, left)
		}
		if _, next, _, ok := s.chunk(behind); ok && next > 0 && next <= (s.end-behind)/sysUnit {
			return c, "neither the size of the header nor that behind the block is confirmed"
		}
	}
	b := Block{Addr: addr + s.header(), Size: size*sysUnit - s.header(), Header: uint16(s.header()), State: Free}
	if used {
		b.State = Used
	}
	return chunk{size: size * sysUnit, block: b}, ""
}

// listed returns the number of chunks in the lists of free chunks. ok is false if the form of struct
// z_heap is not known.
func (s *sysHeap) listed(first uint64) (n uint64, ok bool) {
	least := uint64(1) // smallest chunk with a block
	if s.field == 4 {
		least = 2
	}
	last := (s.end - s.base) / sysUnit
	buckets := uint64(bits.Len64(last - least + 1))
	at := uint64(0)
	for _, size := range []uint64{16, 16 + 3*s.ptr} { // without and with statistics
		if up(up(size, s.ptr)+4*buckets, sysUnit) == first*sysUnit {
			at = s.base + size
		}
	}
	if at == 0 {
		return 0, false
	}
	for i := range buckets {
		head, _ := s.m.Uint(at+4*i, 4)
		for c := head; c != 0; {
			if n++; n > core.MaxBlocks || n > last || c >= last {
				return n, true // a loop: the number differs from that of the chunks
			}
			if c, ok = s.m.Uint(s.base+c*sysUnit+3*s.field, int(s.field)); !ok || c == head {
				break
			}
		}
	}
	return n, true
}
