package unwind

import (
	"bytes"
	"debug/elf"
)

// sigframe describes one kind of signal frame: the trampoline that a handler returns to, and
// the location of the interrupted registers.
type sigframe struct {
	code [][]byte // instructions; the trampoline may be stopped at any of them
	// at is the offset of the machine context from the stack pointer. If pointer is true, it
	// is the offset of a pointer, and the context begins bytes after the pointer's target.
	at      uint64
	pointer bool
	then    uint64
	pc      uint64         // offset in the context
	size    uint64         // size of a register in the context
	regs    map[int]uint64 // DWARF number → offset
	thumb   uint64         // offset of CPSR, 0 if none
}

// regsAt returns the offsets of n registers, from DWARF number first on.
func regsAt(first int, offset, size uint64, n int) map[int]uint64 {
	m := map[int]uint64{}
	for i := range n {
		m[first+i] = offset + uint64(i)*size
	}
	return m
}

func listed(size uint64, regs ...int) map[int]uint64 {
	m := map[int]uint64{}
	for i, r := range regs {
		if r >= 0 {
			m[r] = uint64(i) * size
		}
	}
	return m
}

func with(m map[int]uint64, pairs ...uint64) map[int]uint64 {
	for i := 0; i+1 < len(pairs); i += 2 {
		m[int(pairs[i])] = pairs[i+1]
	}
	return m
}

// words returns 32-bit instructions in the machine's byte order.
func (a *machine) words(list ...uint32) (code [][]byte) {
	for _, v := range list {
		b := make([]byte, 4)
		a.code.PutUint32(b, v)
		code = append(code, b)
	}
	return code
}

// halves returns an instruction of 16-bit units in the machine's byte order.
func (a *machine) halves(list ...uint32) []byte {
	b := make([]byte, 2*len(list))
	for i, v := range list {
		a.code.PutUint16(b[2*i:], uint16(v))
	}
	return b
}

// sigframes returns the signal frames of Linux on a machine.
func (a *machine) sigframes() []sigframe {
	switch a.machine {
	case elf.EM_X86_64: // struct rt_sigframe, behind the return address: ucontext
		return []sigframe{{code: [][]byte{{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0}, {0x0f, 0x05}},
			at: 40, pc: 16 * 8, size: 8,
			regs: listed(8, 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7)}}
	case elf.EM_386:
		regs := listed(4, -1, -1, -1, -1, 7, 6, 5, 4, 3, 2, 1, 0)
		old := sigframe{code: [][]byte{{0x58}, {0xb8, 0x77, 0, 0, 0}, {0xcd, 0x80}}, at: 4, pc: 14 * 4, size: 4, regs: regs}
		rt := sigframe{code: [][]byte{{0xb8, 0xad, 0, 0, 0}, {0xcd, 0x80}}, at: 8, pointer: true, then: 20,
			pc: 14 * 4, size: 4, regs: regs}
		return []sigframe{old, rt}
	case elf.EM_AARCH64:
		return []sigframe{{code: a.words(0xd2801168, 0xd4000001), at: 128 + 176, pc: 8 + 32*8, size: 8,
			regs: regsAt(0, 8, 8, 32)}}
	case elf.EM_ARM:
		var list []sigframe
		for _, at := range []uint64{20, 128 + 20} {
			number, old := uint32(119), at == 20
			if !old {
				number = 173
			}
			f := sigframe{at: at, pc: 12 + 15*4, size: 4, regs: regsAt(0, 12, 4, 15), thumb: 12 + 16*4}
			f.code = a.words(0xe3a07000|number, 0xef000000)
			list = append(list, f)
			f.code = a.words(0xe3a07000|number, 0xef900000|number)
			list = append(list, f)
			f.code = [][]byte{a.halves(0x2700 | number), a.halves(0xdf00)} // movs r7, #number; svc 0
			list = append(list, f)
			f.code = [][]byte{a.halves(0xf04f, 0x0700|number), a.halves(0xdf00)} // mov.w, as glibc has it
			list = append(list, f)
		}
		return list
	case elf.EM_MIPS:
		if a.word == 8 {
			var list []sigframe
			for _, li := range []uint32{0x2402145b} { // 5211
				list = append(list, sigframe{code: a.words(li, 0x0000000c), at: 24 + 128 + 40, pc: 576, size: 8,
					regs: regsAt(0, 0, 8, 32)})
			}
			return list
		}
		regs := regsAt(0, 16, 8, 32)
		if a.order.String() == "BigEndian" {
			for r := range regs {
				regs[r] += 4
			}
		}
		pc := uint64(8)
		if a.order.String() == "BigEndian" {
			pc = 12
		}
		return []sigframe{
			{code: a.words(0x24021017, 0x0000000c), at: 24, pc: pc, size: 4, regs: regs},
			{code: a.words(0x24021061, 0x0000000c), at: 24 + 128 + 24, pc: pc, size: 4, regs: regs},
		}
	case elf.EM_RISCV:
		at := uint64(128 + 176)
		if a.word == 4 {
			at = 128 + 160
		}
		return []sigframe{{code: a.words(0x08b00893, 0x00000073), at: at, pc: 0, size: a.word,
			regs: regsAt(1, a.word, a.word, 31)}}
	case elf.EM_PPC:
		regs := with(regsAt(0, 0, 4, 32), 65, 36*4, 66, 35*4)
		return []sigframe{
			{code: a.words(0x38000077, 0x44000002), at: 64 + 28, pointer: true, pc: 32 * 4, size: 4, regs: regs},
			{code: a.words(0x380000ac, 0x44000002), at: 64 + 16 + 128 + 48, pointer: true, pc: 32 * 4, size: 4, regs: regs},
		}
	}
	return nil
}

// memoryCode returns up to n bytes of code at pc, from a file if possible, else from
// memory.
func (w *walker) memoryCode(pc uint64, n int) []byte {
	if m := w.module(pc); m != nil {
		b := m.code(pc - m.Bias)
		return b[:min(n, len(b))]
	}
	b := make([]byte, n)
	got := w.Memory.Read(b, pc)
	return b[:max(0, min(got, n))]
}

// trampolineAt returns the kind of signal frame whose trampoline is at pc.
func (w *walker) trampolineAt(pc uint64) *sigframe {
	if !w.trampolines {
		w.trampolines, w.frames = true, w.arch.sigframes()
	}
	if len(w.frames) == 0 {
		return nil
	}
	code := w.memoryCode(w.arch.addr(pc), maxCode)
	for i := range w.frames {
		f := &w.frames[i]
		if bytes.HasPrefix(code, bytes.Join(f.code, nil)) {
			return f
		}
	}
	return nil
}

func (w *walker) isTrampoline(pc uint64) bool { return w.excReturn(pc) || w.trampolineAt(pc) != nil }

// excReturn reports whether pc is an EXC_RETURN, the return address of an exception
// handler on a Cortex-M. It returns false for 0xffffffff, the value of lr after a reset.
func (w *walker) excReturn(pc uint64) bool {
	return w.arch.machine == elf.EM_ARM && pc&0xffffff83 == 0xffffff81
}

// stepException returns the registers that a Cortex-M pushed at an exception: r0 to r3,
// r12, lr, pc, xPSR, then floating-point registers. The other registers are unchanged.
// The stack of a thread (PSP) is only known if it is the current one.
//
//	EXC_RETURN   1111 1111 1111 1111 1111 1111 1 ... F ... S 0 1
//	                                     F: 0 with floating point, S: 1 on PSP
func (w *walker) stepException(pc, sp uint64, regs *Regs) (out Regs, ok bool) {
	if pc&4 != 0 {
		psp, known := w.start.Get(armPSP) // handlers do not change it
		if !known {
			return out, false
		}
		sp = psp
	}
	out = *regs
	for i, r := range []int{0, 1, 2, 3, 12, armLR} {
		v, ok := w.word(sp + uint64(i)*4)
		if !ok {
			return out, false
		}
		out.Set(r, v)
	}
	at, ok1 := w.word(sp + 24)
	xpsr, ok2 := w.word(sp + 28)
	if !ok1 || !ok2 || xpsr&(1<<24) == 0 { // not Thumb: not the frame of a Cortex-M
		return out, false
	}
	sp += 32
	if pc&0x10 == 0 {
		sp += 72
	}
	if xpsr&(1<<9) != 0 {
		sp += 4
	}
	out.PC = at | 1
	out.Set(armSP, w.arch.mask(sp))
	return out, true
}

// inTrampoline returns the kind of signal frame whose trampoline contains pc, and the
// stack pointer at the first instruction of the trampoline; sp is the stack pointer at
// pc.
func (w *walker) inTrampoline(pc, sp uint64) (*sigframe, uint64) {
	if f := w.trampolineAt(pc); f != nil {
		return f, sp
	}
	for _, back := range []uint64{2, 4, 7, 5, 1, 6} { // at its second instruction?
		f := w.trampolineAt(pc - back)
		if f == nil {
			continue
		}
		n := uint64(0)
		for i, c := range f.code[:len(f.code)-1] {
			if n += uint64(len(c)); n != back {
				continue
			}
			if i == 0 && len(f.code) == 3 || i == 1 {
				sp -= w.arch.word // the POP of i386
			}
			return f, sp
		}
	}
	return nil, 0
}

// stepSignal returns the interrupted registers, if pc is in the trampoline of a signal
// handler.
func (w *walker) stepSignal(pc, sp uint64, regs *Regs) (out Regs, ok bool) {
	a := w.arch
	if w.excReturn(pc | 1) {
		return w.stepException(pc, sp, regs)
	}
	f, sp := w.inTrampoline(pc, sp)
	if f == nil {
		return out, false
	}
	at := a.mask(sp + f.at)
	if f.pointer {
		v, ok := w.word(at)
		if !ok {
			return out, false
		}
		at = v + f.then
	}
	pc, ok = w.number(a.mask(at+f.pc), int(f.size))
	if !ok {
		return out, false
	}
	for r, off := range f.regs {
		if v, ok := w.number(a.mask(at+off), int(f.size)); ok {
			out.Set(r, v)
		}
	}
	if f.thumb != 0 {
		if cpsr, ok := w.number(a.mask(at+f.thumb), 4); ok && cpsr&0x20 != 0 {
			pc |= 1
		}
	}
	out.PC = a.mask(pc)
	_, ok = out.Get(a.sp)
	return out, ok
}
