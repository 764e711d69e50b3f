package core

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Thread is the state of a thread of a process, or of a processor of a guest.
type Thread struct {
	ID     int    // kernel's ID, the LWP in gdb; of an RTOS, often the address of the task
	Name   string // of a task, "" if not known
	State  string // of a task, in the words of its kernel; "" if not known
	Signal int    // signal that stopped the thread, 0 if none
	// Crashed reports whether a crash dump of firmware is about this thread.
	Crashed bool
	PC, SP  uint64
	TLS     uint64 // the thread pointer, 0 if not known
	// Regs holds the registers by DWARF number, as in the ABI of the machine. It includes PC
	// and SP if these have numbers.
	Regs map[int]uint64
	// Values holds all registers of the note, including the program counter, flags and
	// segments, because any of them may point into the heap. The thread pointer of PowerPC
	// is stored without its bias.
	Values []uint64
}

// layout gives the positions of registers in the core notes of a machine.
type layout struct {
	count int         // number of words in pr_reg
	dwarf map[int]int // DWARF number → index in pr_reg
	pc    int         // index
	sp    int         // index
}

// seq maps the n DWARF numbers from reg on to the indexes from index on.
func (l layout) seq(reg, index, n int) layout {
	for i := range n {
		l.dwarf[reg+i] = index + i
	}
	return l
}

func newLayout(count, pc, sp int, pairs ...int) layout {
	l := layout{count: count, pc: pc, sp: sp, dwarf: map[int]int{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		l.dwarf[pairs[i]] = pairs[i+1]
	}
	return l
}

// layoutOf returns the layout of elf_gregset_t in Linux, arch/*/include/asm/elf.h and user.h.
func layoutOf(machine elf.Machine, word int) (layout, bool) {
	switch {
	case machine == elf.EM_X86_64 && word == 64:
		return newLayout(27, 16, 19, 0, 10, 1, 12, 2, 11, 3, 5, 4, 13, 5, 14, 6, 4, 7, 19,
			8, 9, 9, 8, 10, 7, 11, 6, 12, 3, 13, 2, 14, 1, 15, 0, 16, 16), true
	case machine == elf.EM_386:
		return newLayout(17, 12, 15, 0, 6, 1, 1, 2, 2, 3, 0, 4, 15, 5, 5, 6, 3, 7, 4, 8, 12), true
	case machine == elf.EM_ARM:
		return newLayout(18, 15, 13).seq(0, 0, 16), true
	case machine == elf.EM_AARCH64:
		return newLayout(34, 32, 31, 32, 32).seq(0, 0, 32), true
	case machine == elf.EM_RISCV: // pc takes the place of x0
		return newLayout(32, 0, 2).seq(1, 1, 31), true
	case machine == elf.EM_MIPS && word == 32: // six words of arguments first
		return newLayout(45, 40, 6+29).seq(0, 6, 32), true
	case machine == elf.EM_MIPS:
		return newLayout(45, 34, 29).seq(0, 0, 32), true
	case machine == elf.EM_PPC:
		return newLayout(48, 32, 1, 65, 36, 66, 35).seq(0, 0, 32), true
	case machine == elf.EM_XTENSA: // pc, ps, then special registers and reserved words
		return newLayout(xtensaRegs+16, 0, xtensaRegs+1).seq(0, xtensaRegs, 16), true
	case machine == elf.EM_S390 && word == 64: // PSW mask, PSW address, registers
		return newLayout(18, 1, 2+15, 65, 1).seq(0, 2, 16), true
	}
	return layout{}, false
}

// armStatus is the index of CPSR or xPSR, xtensaRegs that of a0, in pr_reg.
const (
	armStatus  = 16
	xtensaRegs = 64
)

// Thumb reports whether a thread of Arm was in Thumb code: bit 5 of CPSR, or bit 24 of xPSR, which a Cortex-M has.
func (t *Thread) Thumb() bool {
	return len(t.Values) > armStatus && t.Values[armStatus]&(1<<24|1<<5) != 0
}

// powerBias is the distance in bytes of PowerPC's thread pointer from the start of the
// thread's variables.
const powerBias = 0x7000

// readThread reads an elf_prstatus: a header that depends on the word size, then the
// registers.
func readThread(machine elf.Machine, word int, order binary.ByteOrder, desc []byte) (t Thread, err error) {
	l, ok := layoutOf(machine, word)
	if !ok {
		return t, fmt.Errorf("registers of %v are not known", machine)
	}
	pid, regs := 24, 72
	if word == 64 {
		pid, regs = 32, 112
	}
	size := word / 8
	if len(desc) < regs+l.count*size {
		return t, fmt.Errorf("registers of %d bytes, expected %d of %v", len(desc), regs+l.count*size, machine)
	}
	t.Signal = int(order.Uint16(desc[12:]))
	t.ID = int(order.Uint32(desc[pid:]))
	for i := range l.count {
		t.Values = append(t.Values, uintOf(desc[regs+i*size:][:size], order))
	}
	t.PC, t.SP = t.Values[l.pc], t.Values[l.sp]
	switch {
	case machine == elf.EM_X86_64:
		t.TLS = t.Values[21] // fs_base
	case machine == elf.EM_RISCV:
		t.TLS = t.Values[4]
	case machine == elf.EM_PPC:
		t.TLS = t.Values[2] - powerBias
	case machine == elf.EM_S390: // access registers 0 and 1, after the others
		if acrs := desc[regs+l.count*size:]; len(acrs) >= 8 {
			t.TLS = uint64(order.Uint32(acrs))<<32 | uint64(order.Uint32(acrs[4:]))
		}
	}
	t.Regs = make(map[int]uint64, len(l.dwarf))
	for reg, i := range l.dwarf {
		t.Regs[reg] = t.Values[i]
	}
	if machine == elf.EM_PPC { // with its bias, the thread pointer would point to unrelated memory
		t.Values[2] = t.TLS
	}
	return t, nil
}

// StackPointer returns the DWARF number of a machine's stack pointer.
func StackPointer(machine elf.Machine, word int) (reg int, ok bool) {
	l, ok := layoutOf(machine, word)
	for reg, i := range l.dwarf {
		if i == l.sp {
			return reg, true
		}
	}
	return 0, ok
}
