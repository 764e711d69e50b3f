package alloc

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// NuttX, mm/mm_heap: struct mm_heap_s has the first and the last node of each region, which are used and empty. So
// no symbol is needed, and the last two have the size of a header:
//
//	mm_heap_s: lock │ size of the heap │ most used │ used │ first nodes │ last nodes │ number of regions │ lists …
//	node:      size of the node before, if free │ size │ pid │ number │ backtrace … │ block, or two links
//
// Bit 0 of a size: the node is used; bit 1: the node before is free. A block ends behind the first field
// of the next node. With CONFIG_MM_SMALL, sizes have 16 bits. With one region, there is no number of
// regions. Pid, number and backtrace depend on CONFIG_MM_BACKTRACE; free nodes always have the number.
// The lists are free nodes of size 0, in one list with the others.

// maxRegions limits CONFIG_MM_REGIONS.
const maxRegions = 8

// mmHeap is one heap.
type mmHeap struct {
	*finder
	h       *Heap
	addr    uint64 // of the first nodes in mm_heap_s
	field   uint64 // bytes of a size
	node    uint64 // bytes of the header of a used node
	least   uint64 // bytes of the smallest node
	max     int    // CONFIG_MM_REGIONS
	regions []core.Map
	end     uint64 // of the region that is read: address of the last node
	links   uint64 // offset in a free node
}

func (f *finder) mmHeaps() (heaps []*Heap, err error) {
	return f.search(f.memory(), func(addr, v uint64) *Heap {
		if v != 0 && v%2 == 0 {
			if s := f.mmHeapAt(addr, v); s != nil {
				return s.read()
			}
		}
		return nil
	})
}

// mmHeapAt returns the heap whose first nodes begin with first, at an address; nil if there is none.
func (f *finder) mmHeapAt(addr, first uint64) *mmHeap {
	for _, field := range []uint64{f.ptr, 2} {
		v, ok := f.m.Uint(first+field, int(field))
		node := v &^ 1
		if !ok || v&3 != 1 || node < 2*field || node > 64*f.ptr || node%field != 0 {
			continue
		}
		s := &mmHeap{finder: f, addr: addr, field: field, node: node}
		for s.max = 1; s.max <= maxRegions; s.max++ {
			if s.found() {
				return s
			}
		}
	}
	return nil
}

// found reports whether there is a heap with s.max regions or less: its size is their sum.
func (s *mmHeap) found() bool {
	n, sum := uint64(1), uint64(0)
	if s.max > 1 {
		n, _ = s.m.Uint(s.addr+2*uint64(s.max)*s.ptr, 4)
	}
	if n == 0 || n > uint64(s.max) {
		return false
	}
	s.regions = s.regions[:0]
	for i := range n {
		start, _ := s.m.Pointer(s.addr + i*s.ptr)
		end, _ := s.m.Pointer(s.addr + (uint64(s.max)+i)*s.ptr)
		first, _ := s.m.Uint(start+s.field, int(s.field))
		last, ok := s.m.Uint(end+s.field, int(s.field))
		if !ok || first != s.node|1 || last&^2 != s.node|1 || end < start+s.node {
			return false
		}
		sum += end - start + s.node
		s.regions = append(s.regions, core.Map{Start: start, End: end + s.node, Write: true})
	}
	slices.SortFunc(s.regions, func(a, b core.Map) int { return int(int64(a.Start - b.Start)) })
	size, _ := s.m.Pointer(s.addr - 3*s.ptr)
	before, _ := s.m.Pointer(s.addr - s.ptr) // before mm_maxused and mm_curused were added
	return size == sum || before == sum
}

// lists returns the address of the first list.
func (s *mmHeap) lists() uint64 {
	at := s.addr + 2*uint64(s.max)*s.ptr
	if s.max > 1 {
		at += 4
	}
	return up(at, s.ptr)
}

func (s *mmHeap) read() *Heap {
	s.h = &Heap{Kind: NuttX, Name: "NuttX heap", Addr: s.addr, overlap: s.field, slack: uint8(s.ptr - 1)}
	lists := s.lists()
	for s.links = up(s.node, s.ptr); s.links <= up(s.node, s.ptr)+s.ptr; s.links += s.ptr {
		next, _ := s.m.Pointer(lists + s.links)
		if back, _ := s.m.Pointer(next + s.links + s.ptr); next != 0 && back == lists {
			break
		}
	}
	s.least = 1 << bits.Len64(s.links+2*s.ptr-1)
	s.h.least = s.least - s.node + s.field
	for _, r := range s.regions {
		s.end = r.End - s.node
		start, end := r.Start+s.node+s.field, s.end+s.field
		c := chain{f: s.finder, h: s.h, start: start, end: end, align: s.ptr, least: s.least, confirm: confirm, read: s.next}
		s.h.prove(fmt.Sprintf("the blocks from %#x on end at the last node", r.Start), end, c.walk())
		s.h.own(r.Start, r.End-r.Start)
	}
	n, _ := s.h.Count(Free)
	listed, heads := s.listed(lists)
	s.h.prove("blocks in the list of free blocks", listed, uint64(n))
	s.h.own(s.addr-3*s.ptr, lists+heads*(s.links+2*s.ptr)-s.addr+3*s.ptr)
	s.stacks()
	return s.h
}

// size reads a size with its flags, at the address of the size. ok is false if the node cannot have it.
func (s *mmHeap) size(addr uint64) (size, flags uint64, ok bool) {
	v, ok := s.m.Uint(addr, int(s.field))
	size, flags = v&^3, v&3
	if addr == s.end+s.field {
		return size, flags, ok && size == s.node && flags&1 == 1
	}
	return size, flags, ok && size >= s.least && size%s.ptr == 0 && size <= s.end+s.field-addr
}

// next reads a node, at the address of its size.
func (s *mmHeap) next(addr uint64) (c chunk, why string) {
	size, flags, ok := s.size(addr)
	if !ok {
		return c, fmt.Sprintf("the size of the header is %#x, expected a multiple of %d from %d to %#x", size, s.ptr, s.least, s.end+s.field-addr)
	}
	used := flags & 1
	_, next, ok := s.size(addr + size)
	if ok && next>>1 == used {
		return c, fmt.Sprintf("the flags of the header are %d, those behind the block %d", flags, next)
	}
	header := s.node - s.field
	b := Block{Addr: addr + header, Size: size - header, Header: uint16(header), State: Free}
	if used == 0 {
		if before, _ := s.m.Uint(addr+size-s.field, int(s.field)); before != size {
			return c, fmt.Sprintf("the size of the header is %#x, behind the block it is %#x", size, before)
		}
		return chunk{size: size, block: b, alone: !ok}, ""
	}
	b.State = Used
	return chunk{size: size, block: b, alone: !ok}, ""
}

// listed returns the number of free nodes in the lists, and that of the lists.
func (s *mmHeap) listed(lists uint64) (n, heads uint64) {
	size := s.links + 2*s.ptr
	s.ring(lists, s.links, s.links+s.ptr, func(at uint64) {
		if own, _ := s.m.Uint(at+s.field, int(s.field)); own == 0 {
			heads = max(heads, (at-lists)/size+1)
		} else {
			n++
		}
	})
	return n, heads
}

// stacks sets the call stacks of blocks, if the headers have them. A number before them is another one for
// each block.
func (s *mmHeap) stacks() {
	first := up(2*s.field+4, s.ptr)
	if first >= s.node {
		return
	}
	numbers, used := map[uint64]bool{}, 0
	node := func(b *Block) uint64 { return b.Addr - s.node }
	for i := range s.h.Blocks {
		if b := &s.h.Blocks[i]; b.State == Used && b.Trust != Damaged {
			v, _ := s.m.Pointer(node(b) + first)
			numbers[v] = true
			used++
		}
	}
	if used > 1 && len(numbers) == used {
		first += s.ptr
	}
	for i := range s.h.Blocks {
		b := &s.h.Blocks[i]
		if b.State != Used || b.Trust == Damaged {
			continue
		}
		for at := first; at < s.node; at += s.ptr {
			v, _ := s.m.Pointer(node(b) + at)
			if v == 0 {
				break
			}
			if s.h.Stacks == nil {
				s.h.Stacks = map[uint64][]uint64{}
			}
			s.h.Stacks[b.Addr] = append(s.h.Stacks[b.Addr], v)
		}
	}
}
