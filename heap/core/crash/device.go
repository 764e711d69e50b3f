package crash

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// What device/ adds to a dump of Zephyr: block T of version 0x4254 (adapters/crash.c), and the fault status registers
// of a Cortex-M as memory at their addresses.
//
//	kernel u8, count u8, size of a task u16
//	tasks   control block, stack pointer, 12 bytes of the name
//	state   control block of the current task or 0; then of a Cortex-M msp, psp, EXC_RETURN; of a RISC-V mcause, mtval, mstatus
//
// The current task has the stack pointer of the registers, or, if the crash was in an interrupt of a Cortex-M, psp. The
// registers of other tasks are on their stacks.
const (
	tasksHeader = 4
	taskSize    = 20
	stateSize   = 16

	faultStatus       = 0xe000ed28 // CFSR, HFSR, DFSR, MMFAR, BFAR
	secureFaultStatus = 0xe000ede4 // SFSR, SFAR
	// armPSP is the DWARF number of the process stack pointer of a Cortex-M.
	armPSP = 92
	// exceptionNumber is the part of xPSR that has the number of the exception that runs, 0 in a thread.
	exceptionNumber = 0x1ff
)

// taskTable reads the table of tasks and the state.
func (z *zephyr) taskTable() {
	b, d := z.tasks, z.d
	if b == nil {
		return
	}
	if len(b) < tasksHeader {
		d.damaged("the table of tasks has %d bytes, expected at least %d", len(b), tasksHeader)
		return
	}
	n, size := int(b[1]), int(le.Uint16(b[2:]))
	b = b[tasksHeader:]
	if n > 0 && size < taskSize || len(b) < n*size {
		d.damaged("the table of %d tasks has %d bytes, expected %d", n, len(b), n*size)
		return
	}
	var state []uint64
	if rest := b[n*size:]; len(rest) >= stateSize {
		state = words(rest[:stateSize], 4)
	}
	inInterrupt := z.state(state)
	for i := range n {
		e := b[i*size:]
		sp := uint64(le.Uint32(e[4:]))
		name, _, _ := bytes.Cut(e[8:20], []byte{0})
		t := Thread{ID: uint64(le.Uint32(e)), Name: string(name)}
		current := state != nil && state[0] == t.ID
		if current && inInterrupt {
			d.about("the crash was in an interrupt of task %s", t.Name)
		}
		if len(d.Threads) > 0 && d.Threads[0].Crashed && d.Threads[0].ID == 0 &&
			(d.Threads[0].Regs[StackPointer(d.Machine)] == sp || current && inInterrupt && d.Machine == elf.EM_ARM) {
			d.Threads[0].ID, d.Threads[0].Name = t.ID, t.Name
			continue
		}
		if current && inInterrupt {
			d.Threads[0].Name = "interrupt"
		}
		saved, ok := Saved(d.Machine, sp, d.read)
		if !ok {
			d.damaged("task %s: no registers on its stack at %#x", t.Name, sp)
			continue
		}
		t.PC, t.Status, t.Regs = saved.PC, saved.Status, saved.Regs
		d.addThread(t)
	}
}

// state takes the last words of the block, and says what the fault was. It reports whether it was in an interrupt.
func (z *zephyr) state(state []uint64) (inInterrupt bool) {
	d := z.d
	if state == nil || len(d.Threads) == 0 || !d.Threads[0].Crashed {
		return false
	}
	t := &d.Threads[0]
	fault := le.Uint32(z.all[8:]) == 0 // else the program ended itself, by an instruction that faults
	switch d.Machine {
	case elf.EM_ARM:
		t.Regs[armPSP] = state[2]
		if pushed := []int{0, 1, 2, 3, 12, 14}; t.PC == 0 && t.Status == 0 && !slices.ContainsFunc(pushed, func(r int) bool { return t.Regs[r] != 0 }) {
			d.about("the processor could not save the registers: the stack pointer was 0x%08x", t.Regs[StackPointer(d.Machine)])
			d.Threads = d.Threads[1:]
		}
		if b := d.read(faultStatus, 20); b != nil && fault {
			if text := armFault(words(b, 4)); text != "" {
				d.about("%s", text)
			}
		}
		if b := d.read(secureFaultStatus, 8); b != nil && fault {
			if text := armSecureFault(uint64(le.Uint32(b)), uint64(le.Uint32(b[4:]))); text != "" {
				d.about("%s", text)
			}
		}
		return t.Status&exceptionNumber != 0
	case elf.EM_RISCV:
		if fault {
			d.about("%s", riscvFault(state[1], state[2]))
		}
		return !bytes.Contains(z.tasks[tasksHeader:], le.AppendUint32(nil, uint32(t.Regs[2])))
	}
	return false
}

// armFaults are the bits of CFSR (Armv7-M Architecture Reference Manual, B3.2.15).
var armFaults = []struct {
	bit  int
	text string
}{
	{0, "instruction access violation"}, {1, "data access violation"}, {3, "memory fault when an exception returned"},
	{4, "memory fault when an exception began"}, {5, "memory fault when floating-point registers were saved"},
	{8, "instruction bus error"}, {9, "data bus error"}, {10, "imprecise data bus error"}, {11, "bus error when an exception returned"},
	{12, "bus error when an exception began"}, {13, "bus error when floating-point registers were saved"},
	{16, "undefined instruction"}, {17, "invalid state"}, {18, "invalid exception return"}, {19, "no coprocessor"},
	{20, "stack overflow"}, {24, "unaligned access"}, {25, "division by zero"},
}

// armSecureFaults are the bits of SFSR (Armv8-M Architecture Reference Manual, D1.2.234).
var armSecureFaults = []string{"entry into the secure state that is no gateway", "invalid signature of an exception return", "invalid exception return to the secure state",
	"access of non-secure code to secure memory", "invalid branch to the non-secure state", "fault when floating-point registers were saved late"}

// armSecureFault returns the text of SFSR and SFAR, "" if they have none.
func armSecureFault(status, address uint64) string {
	for bit, text := range armSecureFaults {
		switch {
		case status>>bit&1 == 0:
		case status>>6&1 != 0:
			return fmt.Sprintf("%s at 0x%08x", text, address)
		default:
			return text
		}
	}
	return ""
}

// armFault returns the text of the fault status registers, "" if they have none.
func armFault(r []uint64) string {
	cfsr, hfsr := r[0], r[1]
	var list []string
	for _, f := range armFaults {
		if cfsr>>f.bit&1 != 0 {
			list = append(list, f.text)
		}
	}
	if hfsr&2 != 0 {
		list = append(list, "bus error when the vector table was read")
	}
	text := strings.Join(list, ", ")
	switch {
	case text == "":
		return ""
	case cfsr>>7&1 != 0:
		text += fmt.Sprintf(" at 0x%08x", r[3])
	case cfsr>>15&1 != 0:
		text += fmt.Sprintf(" at 0x%08x", r[4])
	}
	return text
}

// riscvCauses are the exceptions of mcause (RISC-V Privileged Architectures, 3.1.15).
var riscvCauses = []string{"instruction address misaligned", "instruction access fault", "illegal instruction", "breakpoint",
	"load address misaligned", "load access fault", "store address misaligned", "store access fault", "environment call of mode U",
	"environment call of mode S", "", "environment call of mode M", "instruction page fault", "load page fault", "", "store page fault"}

func riscvFault(cause, value uint64) string {
	if cause < uint64(len(riscvCauses)) && riscvCauses[cause] != "" {
		if cause == 2 || cause == 3 { // mtval is the instruction or 0
			return riscvCauses[cause]
		}
		return fmt.Sprintf("%s at 0x%08x", riscvCauses[cause], value)
	}
	return fmt.Sprintf("mcause 0x%08x, mtval 0x%08x", cause, value)
}
