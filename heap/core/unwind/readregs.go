package unwind

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadRegs reads the registers of a thread from text: the output of `info registers` in
// gdb or qemu, or lines with a name and a value. It skips unknown registers. The program
// counter and the stack pointer are required.
//
//	rip            0x401136   0x401136 <main+4>      gdb: value in hexadecimal
//	R00=00000001 R01=20000100 XPSR=61000000          qemu: any number on a line
//	 pc       80000136                               qemu
func ReadRegs(r io.Reader, m elf.Machine, class elf.Class) (regs Regs, err error) {
	const maxLines = 10000
	sc := bufio.NewScanner(r)
	t := regText{machine: m, class: class}
	for n := 1; sc.Scan(); n++ {
		if n > maxLines {
			return t.regs, fmt.Errorf("more than %d lines of registers", maxLines)
		}
		if bad := t.line(sc.Text()); bad != "" {
			return t.regs, fmt.Errorf("line %d: %q, expected a hexadecimal number", n, bad)
		}
	}
	if err := sc.Err(); err != nil {
		return t.regs, err
	}
	a := archOf(m, class, nil)
	if a == nil {
		return t.regs, fmt.Errorf("registers of %v are not known", m)
	}
	if _, ok := t.regs.Get(a.sp); !ok || !t.pc {
		return t.regs, errors.New("no program counter or no stack pointer, expected both")
	}
	return t.regs, nil
}

// regText reads registers from text.
type regText struct {
	machine elf.Machine
	class   elf.Class
	regs    Regs
	pc      bool // the program counter was read
}

// line reads a line. If a value in gdb's format is not a number, line returns the value, else "".
func (t *regText) line(line string) (bad string) {
	if strings.Contains(line, "=") {
		for _, f := range strings.Fields(strings.NewReplacer("= ", "=", " =", "=").Replace(line)) {
			if name, value, ok := strings.Cut(f, "="); ok {
				t.set(name, value)
			}
		}
		return ""
	}
	f := strings.Fields(line)
	if len(f) >= 2 && strings.HasPrefix(f[1], "0x") {
		if !t.set(f[0], f[1]) {
			return f[1]
		}
		return ""
	}
	for i := 0; i+1 < len(f) && t.set(f[i], f[i+1]); i += 2 {
	}
	return ""
}

// set sets a register, and reports whether value is a number. It ignores unknown registers.
func (t *regText) set(name, value string) bool {
	name = strings.TrimPrefix(name, "$")
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(value), "0x"), 16, 64)
	if err != nil {
		return false
	}
	n, isPC, ok := RegisterNumber(t.machine, t.class, name)
	switch {
	case t.machine == elf.EM_ARM && (strings.EqualFold(name, "cpsr") && v&0x20 != 0 || strings.EqualFold(name, "xpsr")):
		t.regs.PC |= 1 // Thumb
	case !ok:
	case isPC:
		t.regs.PC, t.pc = t.regs.PC&1|v, true
	default:
		t.regs.Set(n, v)
	}
	return true
}
