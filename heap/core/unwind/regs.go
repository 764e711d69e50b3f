package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strconv"
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

// machines are the known machines. A word of 0 is that of the class of the file.
var machines = []machine{
	{machine: elf.EM_X86_64, name: "x86-64", word: 8, step: 1, sp: 7, fp: 6, ra: -1, raColumn: 16, saved: []int{3, 6, 12, 13, 14, 15},
		exits: []uint64{60, 231, 15}, decode: decodeX86,
		names: strings.Fields("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15")},
	{machine: elf.EM_386, name: "i386", word: 4, step: 1, sp: 4, fp: 5, ra: -1, raColumn: 8, saved: []int{3, 5, 6, 7},
		exits: []uint64{1, 252, 119, 173}, decode: decodeX86, names: strings.Fields("eax ecx edx ebx esp ebp esi edi")},
	{machine: elf.EM_AARCH64, name: "aarch64", step: 4, code: binary.LittleEndian, sp: 31, fp: 29, ra: 30, raColumn: 30, saved: seq(19, 29),
		sysReg: 8, exits: []uint64{93, 94, 139}, decode: decodeWords(aarch64Table), names: append(numbered("x", 31), "sp")},
	{machine: elf.EM_ARM, name: "arm", step: 2, tag: 1, sp: 13, fp: 11, ra: 14, raColumn: 14, saved: seq(4, 11),
		sysReg: 7, exits: []uint64{1, 248, 119, 173}, decode: decodeARM, names: append(numbered("r", 13), "sp", "lr")},
	{machine: elf.EM_MIPS, name: "mips", step: 4, sp: 29, fp: 30, ra: 31, raColumn: 31, saved: append(seq(16, 23), 28, 30),
		sysReg: 2, exits: []uint64{4001, 4246, 4119, 4193, 5058, 5205, 5211}, decode: decodeWords(mipsTable), names: numbered("r", 32)},
	{machine: elf.EM_RISCV, name: "riscv", step: 2, code: binary.LittleEndian, sp: 2, fp: 8, ra: 1, raColumn: 1,
		saved: append([]int{3, 4, 8, 9}, seq(18, 27)...), sysReg: 17, exits: []uint64{93, 94, 139}, decode: decodeRISCV, names: numbered("x", 32)},
	{machine: elf.EM_PPC, name: "powerpc", word: 4, step: 4, sp: 1, fp: 31, ra: 65, raColumn: 65, saved: append(seq(14, 31), 2), names: numbered("r", 32)},
	{machine: elf.EM_XTENSA, name: "xtensa", step: 1, sp: xtensaSP, fp: -1, ra: -1, names: numbered("a", 16)},
	{machine: elf.EM_S390, name: "s390x", word: 8, step: 2, sp: 15, fp: 11, ra: 14, raColumn: 14, saved: seq(6, 13), names: numbered("r", 16)},
}

// archOf returns the description of a machine, nil if it is not known.
func archOf(m elf.Machine, class elf.Class, order binary.ByteOrder) *machine {
	i := slices.IndexFunc(machines, func(a machine) bool { return a.machine == m })
	if i < 0 {
		return nil
	}
	a := machines[i]
	a.calls, a.order = arch.Of(m), order
	if a.code == nil {
		a.code = order
	}
	if a.word == 0 {
		if a.word = 8; class == elf.ELFCLASS32 {
			a.word = 4
		}
	}
	return &a
}

func numbered(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, prefix+strconv.Itoa(i))
	}
	return list
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
