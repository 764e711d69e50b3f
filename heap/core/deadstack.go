package core

import "debug/elf"

// redZone returns the number of bytes below the stack pointer that a function may use.
func redZone(machine elf.Machine) uint64 {
	switch machine {
	case elf.EM_X86_64:
		return 128
	case elf.EM_PPC64:
		return 512
	}
	return 0
}

// untouched is the number of zero bytes below which a stack has never grown: what is there is other memory.
const untouched = 16 << 10

// unused returns the unused part of the stack of a thread, below its stack pointer. It extends down to the next other memory: a
// variable, a block, memory behind pages that were never used, or what is below a stack that the program describes, as of a
// coroutine or a signal handler.
func (m *Image) unused(area span, sp uint64, data, others []span) span {
	low := sp - min(sp, redZone(m.Machine))
	from := max(area.start, m.described(area, sp, data))
	for _, s := range others {
		if s.start < low { // a stack in data or in a block: other variables are below it
			from = max(from, min(s.end, low))
		}
	}
	const page = 4096
	for at, zero := low&^(page-1), 0; at >= from+page; {
		at -= page
		b, _ := m.Bytes(at, page)
		if zero += page; !isZero(b) {
			zero = 0
		}
		if zero == untouched {
			return span{at, low}
		}
	}
	return span{min(from, low), low}
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// described returns the start of the stack that a stack_t describes in which sp is, 0 if there is none: a ucontext_t of makecontext in
// data, or of a signal handler in its frame above sp.
//
//	start │ flags, 32 bits │ size in bytes
func (m *Image) described(area span, sp uint64, data []span) (start uint64) {
	ptr := uint64(m.PointerSize())
	for _, s := range append(data[:len(data):len(data)], span{sp &^ (ptr - 1), area.end}) {
		for at := (s.start + ptr - 1) &^ (ptr - 1); at+3*ptr <= s.end; at += ptr {
			v, _ := m.Pointer(at)
			if v <= area.start || v > sp {
				continue
			}
			flags, _ := m.Uint(at+ptr, 4)
			size, ok := m.Pointer(at + 2*ptr)
			if ok && flags&0x7fffffff < 8 && size > sp-v && size <= area.end-v {
				start = max(start, v)
			}
		}
	}
	return start
}
