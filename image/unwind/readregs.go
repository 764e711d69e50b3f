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

// ReadRegs reads the registers of a thread from text: gdb's `info registers`,
// qemu's, or lines of name and value. Registers that are not needed are skipped;
// the program counter and the stack pointer must be there.
//
//	rip            0x401136   0x401136 <main+4>      gdb: value in hexadecimal
//	R00=00000001 R01=20000100 XPSR=61000000          qemu: any number on a line
//	 pc       80000136                               qemu
func ReadRegs(r io.Reader, m elf.Machine, class elf.Class) (regs Regs, err error) {
	const maxLines = 10000
	sc := bufio.NewScanner(r)
	pc := false
	set := func(name, value string) bool {
		name = strings.TrimPrefix(name, "$")
		v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(value), "0x"), 16, 64)
		if err != nil {
			return false
		}
		n, isPC, ok := RegisterNumber(m, class, name)
		switch {
		case m == elf.EM_ARM && (strings.EqualFold(name, "cpsr") && v&0x20 != 0 || strings.EqualFold(name, "xpsr")):
			regs.PC |= 1 // Thumb
		case !ok:
		case isPC:
			regs.PC, pc = regs.PC&1|v, true
		default:
			regs.Set(n, v)
		}
		return true
	}
	for n := 1; sc.Scan(); n++ {
		if n > maxLines {
			return regs, fmt.Errorf("more than %d lines of registers", maxLines)
		}
		line := sc.Text()
		if strings.Contains(line, "=") {
			for _, f := range strings.Fields(strings.NewReplacer("= ", "=", " =", "=").Replace(line)) {
				if name, value, ok := strings.Cut(f, "="); ok {
					set(name, value)
				}
			}
			continue
		}
		f := strings.Fields(line)
		if len(f) >= 2 && strings.HasPrefix(f[1], "0x") {
			if !set(f[0], f[1]) {
				return regs, fmt.Errorf("line %d: %q, expected a hexadecimal number", n, f[1])
			}
			continue
		}
		for i := 0; i+1 < len(f); i += 2 {
			if !set(f[i], f[i+1]) {
				break
			}
		}
	}
	if err := sc.Err(); err != nil {
		return regs, err
	}
	a := archOf(m, class, nil)
	if a == nil {
		return regs, fmt.Errorf("registers of %v are not known", m)
	}
	if _, ok := regs.Get(a.sp); !ok || !pc {
		return regs, errors.New("no program counter or no stack pointer, expected both")
	}
	return regs, nil
}
