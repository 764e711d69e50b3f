package crash

import "debug/elf"

// StackPointer returns the DWARF number of the stack pointer of a 32-bit machine that runs an RTOS, -1 if it is not known.
func StackPointer(m elf.Machine) int {
	switch m {
	case elf.EM_ARM:
		return 13
	case elf.EM_RISCV:
		return 2
	case elf.EM_XTENSA:
		return 1
	}
	return -1
}

// Saved returns the registers that the context switch of FreeRTOS or ThreadX saved on a task's stack. read returns n
// bytes at an address, nil if they are not known. On Arm, kernels store them in one of these orders, which EXC_RETURN
// tells apart:
//
//	Cortex-M3             r4-r11, frame
//	Cortex-M4F, M7        r4-r11, EXC_RETURN, [s16-s31], frame
//	Cortex-M33            PSPLIM, EXC_RETURN, r4-r11, [s16-s31], frame
//	ThreadX, Cortex-M0    EXC_RETURN, [s16-s31], r4-r11, frame
//	RV32                  mepc, mstatus, x1, x5-x31, nesting
//
// s16-s31 are there if bit 4 of EXC_RETURN is 0. frame is what the processor pushes at an exception.
func Saved(m elf.Machine, sp uint64, read func(addr, n uint64) []byte) (t Thread, ok bool) {
	word := func(i int) uint64 {
		if b := read(sp+uint64(4*i), 4); b != nil {
			return uint64(le.Uint32(b))
		}
		return 0
	}
	switch m {
	case elf.EM_RISCV:
		b := read(sp, 31*4)
		if b == nil {
			return t, false
		}
		w := words(b, 4)
		t.PC = w[0]
		t.set(w[2:], 1)
		t.set(w[3:], seq(5, 31)...)
		t.Regs[2] = sp + 31*4
		return t, true
	case elf.EM_ARM:
		r4, frame := 0, 8
		extended := false
		float := func(exc uint64) int {
			if extended = exc&0x10 == 0; extended {
				return 16
			}
			return 0
		}
		switch {
		case isEXCReturn(word(8)):
			frame = 9 + float(word(8))
		case isEXCReturn(word(0)):
			r4 = 1 + float(word(0))
			frame = r4 + 8
		case isEXCReturn(word(1)):
			r4, frame = 2, 10+float(word(1))
		}
		b := read(sp, uint64(4*(frame+8)))
		if b == nil {
			return t, false
		}
		w := words(b, 4)
		t.set(w[r4:], seq(4, 11)...)
		return Interrupted(t, sp+uint64(4*frame), extended, read)
	}
	return t, false
}

// isEXCReturn reports whether v is the value of lr in an exception handler that interrupted a task: bits 31 to 7 are 1,
// bit 2 is 1 (the task's stack pointer), and it returns to a thread (bit 3).
func isEXCReturn(v uint64) bool { return v|0x7f == 0xffffffff && v&0xf != 0xf && v&0xc == 0xc }

// Interrupted adds the registers in the frame that a Cortex-M pushed at an address, with room for those of floating
// point if extended: r0-r3, r12, lr, pc, xPSR. It reports whether the frame is valid.
func Interrupted(t Thread, at uint64, extended bool, read func(addr, n uint64) []byte) (Thread, bool) {
	b := read(at, 32)
	if len(b) < 32 {
		return t, false
	}
	w := words(b, 4)
	t.set(w, 0, 1, 2, 3, 12, 14)
	t.PC, t.Status = w[6], w[7]
	sp := at + 32
	if extended {
		sp += 18 * 4
	}
	if t.Status&(1<<9) != 0 { // aligned to 8 bytes
		sp += 4
	}
	t.Regs[13] = sp
	return t, t.Status&(1<<24) != 0 // Thumb
}
