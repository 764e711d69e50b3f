package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/symbol/arch"
)

// maxReg is the number of registers stored. Registers have the DWARF numbers of the
// machine.
const maxReg = 128

// Regs holds the known registers of one frame.
type Regs struct {
	// PC is the address of the next instruction, bit 0 set for Thumb code.
	PC    uint64
	val   [maxReg]uint64
	known [maxReg / 64]uint64
}

// Get returns the value of DWARF register n, and whether it is known.
func (r *Regs) Get(n int) (uint64, bool) {
	if n < 0 || n >= maxReg || r.known[n/64]>>(n%64)&1 == 0 {
		return 0, false
	}
	return r.val[n], true
}

// Set sets DWARF register n. It ignores numbers that are not stored.
func (r *Regs) Set(n int, v uint64) {
	if n >= 0 && n < maxReg {
		r.val[n] = v
		r.known[n/64] |= 1 << (n % 64)
	}
}

// Forget makes register n unknown.
func (r *Regs) Forget(n int) {
	if n >= 0 && n < maxReg {
		r.known[n/64] &^= 1 << (n % 64)
	}
}

// machine describes a machine for unwinding. Register numbers are those of DWARF.
type machine struct {
	name     string
	machine  elf.Machine
	calls    *arch.Arch
	word     uint64 // bytes of an address
	order    binary.ByteOrder
	code     binary.ByteOrder // byte order of instructions
	sp, fp   int
	ra       int    // register with the return address at entry, -1 if it is on the stack
	raColumn int    // return address column of CFI
	saved    []int  // callee-saved registers
	step     uint64 // shortest instruction in bytes
	tag      uint64 // bits of a code address that are not part of it
	names    []string
	sysReg   int      // register with the number of a system call
	exits    []uint64 // numbers of system calls that do not return
	decode   func(a *machine, code []byte, pc uint64, in *inst) bool
}

func seq(from, to int) (list []int) {
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list
}

// archOf returns the description of a machine, nil if it is not known.
func archOf(m elf.Machine, class elf.Class, order binary.ByteOrder) *machine {
	a := &machine{machine: m, calls: arch.Of(m), word: 8, order: order, code: order, fp: -1, ra: -1}
	if class == elf.ELFCLASS32 {
		a.word = 4
	}
	switch m {
	case elf.EM_X86_64:
		a.name, a.word, a.step = "x86-64", 8, 1
		a.sysReg, a.exits = 0, []uint64{60, 231, 15}
		a.sp, a.fp, a.raColumn = 7, 6, 16
		a.saved = []int{3, 6, 12, 13, 14, 15}
		a.names = []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
			"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}
		a.decode = decodeX86
	case elf.EM_386:
		a.name, a.word, a.step = "i386", 4, 1
		a.sysReg, a.exits = 0, []uint64{1, 252, 119, 173}
		a.sp, a.fp, a.raColumn = 4, 5, 8
		a.saved = []int{3, 5, 6, 7}
		a.names = []string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"}
		a.decode = decodeX86
	case elf.EM_AARCH64:
		a.name, a.step, a.code = "aarch64", 4, binary.LittleEndian
		a.sysReg, a.exits = 8, []uint64{93, 94, 139}
		a.sp, a.fp, a.ra, a.raColumn = 31, 29, 30, 30
		a.saved = seq(19, 29)
		a.names = append(numbered("x", 31), "sp")
		a.decode = decodeWords(aarch64Table)
	case elf.EM_ARM:
		a.name, a.step, a.tag = "arm", 2, 1
		a.sysReg, a.exits = 7, []uint64{1, 248, 119, 173}
		a.sp, a.fp, a.ra, a.raColumn = 13, 11, 14, 14
		a.saved = seq(4, 11)
		a.names = append(numbered("r", 13), "sp", "lr")
		a.decode = decodeARM
	case elf.EM_MIPS:
		a.name, a.step = "mips", 4
		a.sysReg, a.exits = 2, []uint64{4001, 4246, 4119, 4193, 5058, 5205, 5211}
		a.sp, a.fp, a.ra, a.raColumn = 29, 30, 31, 31
		a.saved = append(seq(16, 23), 28, 30)
		a.names = numbered("r", 32)
		a.decode = decodeWords(mipsTable)
	case elf.EM_RISCV:
		a.name, a.step, a.code = "riscv", 2, binary.LittleEndian
		a.sysReg, a.exits = 17, []uint64{93, 94, 139}
		a.sp, a.fp, a.ra, a.raColumn = 2, 8, 1, 1
		a.saved = append([]int{3, 4, 8, 9}, seq(18, 27)...)
		a.names = numbered("x", 32)
		a.decode = decodeRISCV
	case elf.EM_PPC:
		a.name, a.step, a.word = "powerpc", 4, 4
		a.sp, a.fp, a.ra, a.raColumn = 1, 31, 65, 65
		a.saved = append(seq(14, 31), 2)
		a.names = numbered("r", 32)
	case elf.EM_XTENSA:
		a.name, a.step = "xtensa", 1
		a.sp = xtensaSP
		a.names = numbered("a", 16)
	case elf.EM_S390:
		a.name, a.step, a.word = "s390x", 2, 8
		a.sp, a.fp, a.ra, a.raColumn = 15, 11, 14, 14
		a.saved = seq(6, 13)
		a.names = numbered("r", 16)
	default:
		return nil
	}
	return a
}

func numbered(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, prefix+itoa(i))
	}
	return list
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + itoa(i%10)
}

// mask returns v truncated to an address of the machine.
func (a *machine) mask(v uint64) uint64 {
	if a.word == 4 {
		return v & 0xffffffff
	}
	return v
}

// addr returns a code address without the bits that are not part of it.
func (a *machine) addr(pc uint64) uint64 { return pc &^ a.tag }

// RegisterNumber returns the DWARF number of a register by its name in gdb or qemu. pc
// reports whether it is the program counter.
func RegisterNumber(m elf.Machine, class elf.Class, name string) (n int, pc, ok bool) {
	a := archOf(m, class, binary.LittleEndian)
	if a == nil {
		return 0, false, false
	}
	name = strings.ToLower(name)
	if short, long, two := strings.Cut(name, "/"); two { // x1/ra
		if n, pc, ok = RegisterNumber(m, class, short); ok {
			return n, pc, ok
		}
		name = long
	}
	switch name {
	case "pc", "rip", "eip", "nip", "epc":
		return 0, true, true
	case "sp", "rsp", "esp":
		return a.sp, false, true
	case "lr", "ra":
		return a.ra, false, a.ra >= 0
	}
	for i, list := range [][]string{a.names, abiNames[m]} {
		if n := slices.Index(list, name); n >= 0 && (i == 0 || list[n] != "") {
			return n, m == elf.EM_ARM && n == 15, true
		}
	}
	if len(name) == 3 && name[1] == '0' { // R01
		return RegisterNumber(m, class, name[:1]+name[2:])
	}
	switch {
	case m == elf.EM_ARM && name == "r15":
		return 0, true, true
	case m == elf.EM_ARM && (name == "r13" || name == "r14"):
		return int(name[2]-'0') + 10, false, true
	case m == elf.EM_ARM && name == "psp":
		return armPSP, false, true
	case m == elf.EM_PPC && name == "ctr":
		return 66, false, true
	case name == "fp":
		return a.fp, false, a.fp >= 0
	}
	return 0, false, false
}

// abiNames are the ABI names of registers, in the order of DWARF numbers.
var abiNames = map[elf.Machine][]string{
	elf.EM_MIPS:  strings.Fields("zero at v0 v1 a0 a1 a2 a3 t0 t1 t2 t3 t4 t5 t6 t7 s0 s1 s2 s3 s4 s5 s6 s7 t8 t9 k0 k1 gp sp s8 ra"),
	elf.EM_RISCV: strings.Fields("zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"),
	elf.EM_ARM:   strings.Fields("a1 a2 a3 a4 v1 v2 v3 v4 v5 sb sl fp ip sp lr"),
}
