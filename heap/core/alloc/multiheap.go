package alloc

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// ESP-IDF, components/heap, since 5.1: a heap begins with its own structure, whose last field points behind
// itself, to the control block of TLSF. So no symbol is needed:
//
//	multi_heap_info: lock │ free bytes │ fewest free bytes │ size of the pool │ control
//	control:         null block, 4 words │ numbers of lists, 32 bits │ size of control │ bitmap, 32 bits │ bitmaps │ lists
//	block:           size, bit 0: free, bit 1: the block before is free │ block …, its last word, if free: block before the next
//
// The bitmaps are behind the control block, the lists behind the bitmaps, and the blocks behind the
// lists, up to a block of size 0. A free block has links to the next and the previous one of its list;
// they, and the last word, point to the word before the size. With poisoning, a used block is:
//
//	0xabba1234 │ requested size │ block … │ 0xbaad5678
//
// The variable registered_heaps leads to a list of all heaps, also of those that the image lacks:
//
//	heap_t: name, with CONFIG_HEAP_TASK_TRACKING │ 3 capabilities, 32 bits │ start │ end │ lock │ multi_heap_info │ next
//
// With CONFIG_HEAP_TASK_TRACKING, a block is behind a word with its task.

const (
	headCanary = uint64(0xabba1234)
	tailCanary = uint64(0xbaad5678)
)

// multiHeap is one heap.
type multiHeap struct {
	*finder
	h       *Heap
	control uint64 // address of the control block
	size    uint64 // of the control block with bitmaps and lists
	lists   uint64 // address
	start   uint64 // of the blocks
	end     uint64 // of the blocks: address of the size of the last, empty one
	pool    uint64 // bytes from control on
	plain   bool   // TLSF alone
}

func (f *finder) multiHeaps() (heaps []*Heap, err error) {
	heaps, err = f.search(f.memory(), func(addr, v uint64) *Heap {
		if v == addr+f.ptr {
			if s := f.multiHeapAt(v); s != nil {
				return s.read()
			}
		}
		return nil
	})
	r := f.registeredHeaps()
	switch {
	case err != nil && len(r.ranges) > 0:
		return nil, &MissingError{"ESP-IDF's heap", r.ranges[0].Start, r.ranges[0].End}
	case err != nil:
		return nil, err
	}
	for _, x := range r.ranges {
		if !slices.ContainsFunc(heaps, func(h *Heap) bool { return h.Addr == x.Start }) {
			heaps[0].prove(fmt.Sprintf("the heap from %#x to %#x, which is registered, is in the image", x.Start, x.End), 1, 0)
		}
	}
	if r.tasks {
		for _, h := range heaps {
			h.skip(f.ptr)
		}
	}
	return heaps, nil
}

// registered is the list of registered heaps.
type registered struct {
	ranges []core.Map
	tasks  bool // blocks are behind a word with their task
}

// registeredHeaps reads the list of registered heaps, if there is a symbol.
func (f *finder) registeredHeaps() (r registered) {
	head, ok := f.variable("registered_heaps")
	if !ok {
		return r
	}
	at, _ := f.m.Pointer(head.Addr)
	first, heap, ok := f.heapFields(at)
	if !ok {
		return r
	}
	r.tasks = first > 12
	for at != 0 && len(r.ranges) < 64 {
		start, _ := f.m.Pointer(at + first)
		end, ok := f.m.Pointer(at + first + f.ptr)
		if info, _ := f.m.Pointer(at + heap); info == start && ok && start < end {
			r.ranges = append(r.ranges, core.Map{Start: start, End: end, Write: true})
		} else if !ok || info != 0 { // 0: not in use
			break
		}
		at, _ = f.m.Pointer(at + heap + f.ptr)
	}
	return r
}

// heapFields returns the offsets of the start and of multi_heap_info in a heap_t: both have the same value.
func (f *finder) heapFields(at uint64) (first, heap uint64, ok bool) {
	for _, first := range []uint64{12, 12 + f.ptr} {
		start, _ := f.m.Pointer(at + first)
		for heap := first + 2*f.ptr; heap < first+16*f.ptr; heap += f.ptr { // the lock depends on the chip
			if v, ok := f.m.Pointer(at + heap); ok && v == start && v != 0 {
				return first, heap, true
			}
		}
	}
	return 0, 0, false
}

// skip moves the start of used blocks: what is before belongs to the header.
func (h *Heap) skip(n uint64) {
	for i := range h.Blocks {
		if b := &h.Blocks[i]; b.State == Used && b.Size >= n {
			b.Addr, b.Header, b.Size = b.Addr+n, b.Header+uint16(n), b.Size-n
		}
	}
}

// memory returns the memory in which heaps of firmware may be: all that was writable, or the data of the files
// of a process.
func (f *finder) memory() (list []core.Map) {
	if slices.ContainsFunc(f.m.Maps, func(r core.Map) bool { return r.File != "" }) {
		return f.data()
	}
	segs := f.m.Segments()
	for i := range segs {
		if s := &segs[i]; s.Write && !s.ELF {
			list = append(list, core.Map{Start: s.Addr, End: s.End(), Write: true})
		}
	}
	return list
}

// multiHeapAt returns the heap with a control block, nil if there is none.
func (f *finder) multiHeapAt(control uint64) *multiHeap {
	s := &multiHeap{finder: f, control: control}
	field := func(addr uint64) uint64 { v, _ := f.m.Pointer(addr); return v }
	free, least := field(control-4*f.ptr), field(control-3*f.ptr)
	s.pool = field(control - 2*f.ptr)
	at := control + 4*f.ptr + f.ptr // of the size: the numbers have 32 bits
	s.size = field(at)
	bitmaps := field(at + 2*f.ptr)
	s.lists = field(at + 3*f.ptr)
	s.start = control + s.size
	s.end = s.start + (s.pool-s.size-2*f.ptr)&^3 + f.ptr
	if bitmaps != at+4*f.ptr || s.lists <= bitmaps || s.lists >= s.start || least > free || free > s.pool ||
		s.size > 1<<16 || s.pool > 1<<32 || s.pool < s.size+6*f.ptr || s.end < control {
		return nil
	}
	return s
}

// TLSF alone, without ESP-IDF: the control block begins with a null block, to which empty lists lead. Behind it are the bitmaps of
// the lists, whose bits are set if the lists are not empty, then the lists, and the pool. Other pools of the same control
// block are not found: if a list leads there, the heap is not proven.
//
//	control: 4 words │ bitmap │ bitmaps, 32 bits │ lists │ pool

func (f *finder) tlsfPools() ([]*Heap, error) {
	seen, before := map[uint64]bool{}, uint64(0)
	return f.search(f.memory(), func(addr, v uint64) *Heap {
		empty := v == before && v < addr && addr-v < maxControl && v%f.ptr == 0 && !seen[v] // two empty lists
		if before = v; !empty {
			return nil
		}
		seen[v] = true
		if s := f.tlsfAt(v); s != nil {
			return s.read()
		}
		return nil
	})
}

// maxControl is the largest size of a control block in bytes.
const maxControl = 1 << 14

// tlsfAt returns the pool with a control block, nil if there is none: its bitmaps must fit its lists.
func (f *finder) tlsfAt(control uint64) *multiHeap {
	s := &multiHeap{finder: f, control: control, plain: true}
	highest, shift := uint64(30), uint64(2) // bits of the largest size, and of the alignment
	if f.ptr == 8 {
		highest, shift = 32, 3
	}
	at := control + 4*f.ptr
	for bits := uint64(5); bits >= 3; bits-- { // the second level has 32 lists, or fewer
		rows := highest - bits - shift + 1
		s.lists = up(at+4*(1+rows), f.ptr)
		s.start = s.lists + rows<<bits*f.ptr
		if !s.bitmapsFit(at, rows, 1<<bits) {
			continue
		}
		s.size = s.start - control
		s.end = f.contiguous(s.start) - f.ptr // if the last block is not found: not proven
		if end := s.last(); end > 0 {
			s.end = end
		}
		s.pool = s.end + f.ptr - control
		return s
	}
	return nil
}

// last returns the address of the last block, which has size 0 and no free block or chain of blocks behind it; 0 if it is not found.
func (s *multiHeap) last() uint64 {
	const many = 4 // blocks that are not random
	free := s.start
	for at := s.lists; at < s.start; at += s.ptr {
		if v, _ := s.m.Pointer(at); v < s.end {
			free = max(free, v)
		}
	}
	for at, end, n := s.start, uint64(0), many; s.budget > 0; s.budget-- {
		if _, _, ok := s.header(at); ok {
			if c, why := s.next(at); why == "" {
				if at, n = at+c.size, n+1; n == many {
					end = 0
				}
				continue
			}
		}
		switch v, ok := s.m.Pointer(at); {
		case end == 0 && ok && v&^3 == 0 && at > free:
			end = at
		case !ok || at > end+maxControl && end != 0:
			return end
		}
		at, n = at+s.ptr, 0
	}
	return 0
}

// bitmapsFit reports whether the bits of the bitmaps at an address are those of the lists that are not empty.
func (s *multiHeap) bitmapsFit(at, rows, columns uint64) bool {
	first, ok := s.m.Uint(at, 4)
	for row := range rows {
		second, _ := s.m.Uint(at+4*(1+row), 4)
		for column := range columns {
			v, there := s.m.Pointer(s.lists + (row*columns+column)*s.ptr)
			if s.budget--; !ok || !there || s.budget <= 0 || (v != s.control) != (second>>column&1 == 1) || v%s.ptr != 0 {
				return false
			}
		}
		if (second != 0) != (first>>row&1 == 1) || second>>columns != 0 {
			return false
		}
	}
	return first != 0 // not: no free block at all, which other data looks like
}

func (s *multiHeap) read() *Heap {
	base := s.control - 5*s.ptr
	s.h = &Heap{Kind: MultiHeap, Name: "ESP-IDF heap", Addr: base, overlap: s.ptr, slack: uint8(s.ptr - 1), least: 3 * s.ptr}
	if s.plain {
		base = s.control
		s.h.Kind, s.h.Name, s.h.Addr = TLSF, "TLSF pool", base
	}
	c := chain{f: s.finder, h: s.h, start: s.start, end: s.end, align: 4, least: 4 * s.ptr, confirm: confirm, read: s.next}
	end := c.walk()
	poisoned := !s.plain && s.poisoned()
	if poisoned && len(s.h.Damage) > 0 { // search again, with the canaries
		s.blocks += len(s.h.Blocks)
		s.h.Blocks, s.h.Damage = nil, nil
		c.strict = s.nextPoisoned
		end = c.walk()
	}
	s.h.prove("the blocks end at the end mark", s.end, end)
	used := uint64(0)
	for i := range s.h.Blocks {
		if b := &s.h.Blocks[i]; b.State == Used {
			used += b.Size + b.header()
		}
	}
	if free, _ := s.m.Pointer(s.control - 4*s.ptr); !s.plain {
		s.h.prove("free bytes", free, s.pool-s.size-used)
	}
	n, _ := s.h.Count(Free)
	s.h.prove("blocks in the lists of free blocks", s.listed(), uint64(n))
	if poisoned {
		s.unpoison()
		s.h.slack = 0
	}
	s.h.own(base, s.end+s.ptr-base)
	return s.h
}

// header reads a size with its flags. ok is false if the block cannot have it.
func (s *multiHeap) header(addr uint64) (size, flags uint64, ok bool) {
	v, ok := s.m.Pointer(addr)
	size, flags = v&^3, v&3
	if addr == s.end {
		return size, flags, ok && size == 0
	}
	return size, flags, ok && size >= 3*s.ptr && size <= s.end-s.ptr-addr
}

// next reads a block of the chain.
func (s *multiHeap) next(addr uint64) (c chunk, why string) {
	size, flags, ok := s.header(addr)
	if !ok {
		return c, fmt.Sprintf("the size of the header is %#x, expected %d to %#x", size, 3*s.ptr, s.end-s.ptr-addr)
	}
	b := Block{Addr: addr + s.ptr, Size: size, Header: uint16(s.ptr), State: Used}
	behind := addr + s.ptr + size
	_, next, ok := s.header(behind)
	if ok && next>>1 != flags&1 {
		return c, fmt.Sprintf("the flags of the header are %d, those behind the block %d", flags, next)
	}
	if flags&1 != 0 {
		b.State = Free
		next, _ := s.m.Pointer(addr + s.ptr)
		prev, _ := s.m.Pointer(addr + 2*s.ptr)
		self, _ := s.m.Pointer(behind - s.ptr)
		if self != addr-s.ptr || !s.linked(next) || !s.linked(prev) {
			return c, "the header is that of a free block, which has no links"
		}
		return chunk{size: s.ptr + size, block: b, alone: !ok}, ""
	}
	if self, _ := s.m.Pointer(behind - s.ptr); self == addr-s.ptr {
		b.Unused = uint32(s.ptr)
	}
	return chunk{size: s.ptr + size, block: b, alone: !ok}, ""
}

// linked reports whether a free block may have a link to an address.
func (s *multiHeap) linked(v uint64) bool { return v == s.control || v >= s.start-s.ptr && v < s.end }

// listed returns the number of blocks in the lists of free blocks.
func (s *multiHeap) listed() (n uint64) {
	for at := s.lists; at < s.start; at += s.ptr {
		v, _ := s.m.Pointer(at)
		for v != s.control {
			s.budget--
			if n++; s.budget <= 0 || n > (s.end-s.start)/s.ptr {
				return n // a loop: the number differs from that of the blocks
			}
			var ok bool
			if v, ok = s.m.Pointer(v + 2*s.ptr); !ok {
				break
			}
		}
	}
	return n
}

// nextPoisoned is next, for heaps with canaries.
func (s *multiHeap) nextPoisoned(addr uint64) (c chunk, why string) {
	if c, why = s.next(addr); why == "" && c.block.State == Used {
		if v, _ := s.m.Uint(c.block.Addr, 4); v != headCanary {
			return c, "no canary"
		}
	}
	return c, why
}

// poisoned reports whether at least half of the used blocks have a canary.
func (s *multiHeap) poisoned() bool {
	used, poisoned := 0, 0
	for i := range s.h.Blocks {
		if b := &s.h.Blocks[i]; b.State == Used && b.Trust != Damaged {
			used++
			if v, _ := s.m.Uint(b.Addr, 4); v == headCanary {
				poisoned++
			}
		}
	}
	return poisoned > 0 && poisoned >= used-used/2
}

// unpoison finds the program's blocks in those with canaries.
func (s *multiHeap) unpoison() {
	for i := range s.h.Blocks {
		switch b := &s.h.Blocks[i]; {
		case b.Trust == Damaged:
			if v, _ := s.m.Uint(b.Addr, 4); v == headCanary && b.Size > 2*s.ptr {
				b.Addr, b.Header, b.Size = b.Addr+2*s.ptr, b.Header+uint16(2*s.ptr), b.Size-2*s.ptr
			}
		case b.State == Used:
			s.canaries(i)
		}
	}
	slices.SortStableFunc(s.h.Damage, func(a, b Damage) int { return int(a.Block - b.Block) })
}

// canaries checks the canaries of a block.
func (s *multiHeap) canaries(i int) {
	b := &s.h.Blocks[i]
	head, _ := s.m.Uint(b.Addr, 4)
	size, _ := s.m.Pointer(b.Addr + s.ptr)
	most := b.Size - 2*s.ptr
	damage := Damage{Addr: b.Addr, Part: core.DamagedNode, Block: i, Before: i - 1}
	b.Addr += 2 * s.ptr
	b.Header += uint16(2 * s.ptr)
	b.Size = most
	b.Unused = 0
	tail, _ := s.m.Uint(b.Addr+size, 4)
	if size > most-4 || tail != tailCanary && bits.OnesCount64(tail^tailCanary) > 8 { // not one byte of it
		for n := most - 4; n > 0; n-- { // if there is one elsewhere, the size is wrong
			if v, _ := s.m.Uint(b.Addr+n, 4); v == tailCanary {
				damage.Addr += s.ptr
				damage.What = fmt.Sprintf("the requested size is %#x, but the canary is behind %#x bytes", size, n)
				size = n
				break
			}
		}
	}
	switch {
	case head != headCanary:
		damage.What = fmt.Sprintf("the canary before the block is %#x, expected %#x", head, headCanary)
	case damage.What != "":
	case size > most-4, most-size > most/8+10*s.ptr:
		damage.What = fmt.Sprintf("the requested size is %#x in a block of %#x", size, most)
	case s.hides(b.Addr+size+4, b.Addr+most):
		damage.What = fmt.Sprintf("the size of the header is %#x, but a block with canaries begins behind the canary", most+2*s.ptr)
	case tail != tailCanary:
		damage.Addr, damage.Before, damage.Part = b.Addr+size, i, core.DamagedEnd
		damage.What = fmt.Sprintf("the canary behind the block is %#x, expected %#x", tail, tailCanary)
	default:
		b.Size = size
		return
	}
	b.doubt()
	s.h.Damage = append(s.h.Damage, damage)
}

// hides reports whether a block with canaries is between two addresses, and ends at the second one: the allocator leaves no such
// rest.
func (s *multiHeap) hides(start, end uint64) bool {
	for at := up(start, 4); at+5*s.ptr <= end; at += s.ptr {
		size, _ := s.m.Pointer(at)
		head, _ := s.m.Uint(at+s.ptr, 4)
		request, _ := s.m.Pointer(at + s.ptr + 4)
		tail, ok := s.m.Uint(at+2*s.ptr+4+request, 4)
		if ok && at+s.ptr+size&^3 == end && head == headCanary && tail == tailCanary && request < size {
			return true
		}
	}
	return false
}
