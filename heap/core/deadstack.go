package core

import (
	"debug/elf"
	"slices"
	"sort"
)

// redZone returns the number of bytes below the stack pointer that a function may use.
func redZone(machine elf.Machine) uint64 {
	if machine == elf.EM_X86_64 {
		return 128
	}
	return 0
}

// untouched is the number of zero bytes below which a stack has never grown: what is there is other memory.
const untouched = 16 << 10

// stack is the stack of a thread.
type stack struct {
	area  span // memory that it is in, with others
	sp    uint64
	start uint64 // of the stack, 0 if it is not known
}

// unused returns the unused part of a stack, below its stack pointer. It extends down to the next other memory: a
// variable, a block, memory behind pages that were never used, or what is below a stack that the program describes, as of a
// coroutine or a signal handler.
func (m *Image) unused(stack stack, others []span) span {
	low := stack.sp - min(stack.sp, redZone(m.Machine))
	from := max(stack.area.start, stack.start)
	for _, s := range others {
		if s.start < low { // a stack in data or in a block: other variables are below it
			from = max(from, min(s.end, low))
		}
	}
	const page = 4096
	for at, zero := low&^(page-1), 0; at >= from+page; {
		at -= page
		b, _ := m.Bytes(at, page)
		if zero += page; !allZero(b) {
			zero = 0
		}
		if zero == untouched {
			return span{at, low}
		}
	}
	return span{min(from, low), low}
}

// describe sets the starts of the stacks that a stack_t describes in which sp is: a ucontext_t of makecontext in data, or of a signal
// handler in its frame above an sp. The stacks are sorted.
//
//	start │ flags, 32 bits │ size in bytes
func (m *Image) describe(stacks []stack, data []span) {
	where := slices.Clone(data)
	for _, s := range stacks {
		where = append(where, span{s.sp, s.area.end}.words(m))
	}
	size, read := m.PointerSize(), m.Words()
	for _, s := range normal(where) {
		m.each(s, func(addr uint64, b []byte) {
			for at := int(-addr & uint64(size-1)); at+3*size <= len(b); at += size {
				v := read.Word(b[at:])
				i := sort.Search(len(stacks), func(i int) bool { return stacks[i].sp >= v })
				if i == len(stacks) || v <= stacks[i].area.start {
					continue
				}
				s := &stacks[i]
				flags, n := uintOf(b[at+size:][:4], m.ByteOrder()), read.Word(b[at+2*size:])
				if flags&0x7fffffff < 8 && n > s.sp-v && n <= s.area.end-v {
					s.start = max(s.start, v)
				}
			}
		})
	}
}

// SegmentsIn returns the segments that overlap the memory between two addresses.
func (m *Image) SegmentsIn(start, end uint64) []Segment {
	segs := m.Segments()
	segs = segs[sort.Search(len(segs), func(i int) bool { return segs[i].Addr+uint64(len(segs[i].Data))-1 >= start }):]
	return segs[:sort.Search(len(segs), func(i int) bool { return segs[i].Addr >= end })]
}

// in returns the part of a segment that is in a span, which overlaps it.
func (s *Segment) in(r span) Segment {
	from := max(r.start, s.Addr) - s.Addr
	to := min(r.end-s.Addr, uint64(len(s.Data)))
	return Segment{Addr: s.Addr + from, Data: s.Data[from:to], src: s.src, off: s.off + int64(from)}
}
