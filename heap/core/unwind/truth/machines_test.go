// Package truth compares package unwind with gdb: it stops programs at many places, and
// takes gdb's backtrace with full debug information as the reference.
package truth

import (
	"debug/elf"
	"encoding/binary"
	"strconv"
)

// Machine is a machine and instruction set that programs can be compiled for and run on.
type Machine struct {
	Name    string
	CC      string   // compiler
	Flags   []string // of it
	Strip   string   // objcopy
	Qemu    string   // emulator, "" to run natively
	CPU     string   // CPU to emulate, "" for the default
	Machine elf.Machine
	Class   elf.Class
	Order   binary.ByteOrder
	SP      string         // gdb's name of the stack pointer
	Regs    map[int]string // gdb's names by DWARF number
	RISC    bool
	Exidx   bool // has EHABI tables instead of .eh_frame
	Tables  bool // its code is not read: only with tables
}

func numbered(m map[int]string, first int, prefix string, from, to int) map[int]string {
	for i := from; i <= to; i++ {
		m[first+i-from] = prefix + strconv.Itoa(i)
	}
	return m
}

func named(names ...string) map[int]string {
	m := map[int]string{}
	for i, n := range names {
		m[i] = n
	}
	return m
}

// Machines returns all machines that are measured.
func Machines() []Machine {
	le, be := binary.ByteOrder(binary.LittleEndian), binary.ByteOrder(binary.BigEndian)
	arm := numbered(map[int]string{13: "sp", 14: "lr"}, 0, "r", 0, 12)
	mips := numbered(map[int]string{}, 0, "r", 0, 31)
	return []Machine{
		{Name: "x86-64", CC: "gcc", Strip: "objcopy", Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Order: le, SP: "rsp",
			Regs: named("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15")},
		{Name: "i386", CC: "i686-linux-gnu-gcc", Strip: "i686-linux-gnu-objcopy", Machine: elf.EM_386, Class: elf.ELFCLASS32, Order: le, SP: "esp",
			Regs: named("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")},
		{Name: "arm", CC: "arm-linux-gnueabihf-gcc", Flags: []string{"-marm"}, Strip: "arm-linux-gnueabihf-objcopy", Qemu: "qemu-arm",
			Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Order: le, SP: "sp", Regs: arm, RISC: true, Exidx: true},
		{Name: "thumb", CC: "arm-linux-gnueabihf-gcc", Flags: []string{"-mthumb"}, Strip: "arm-linux-gnueabihf-objcopy", Qemu: "qemu-arm",
			Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Order: le, SP: "sp", Regs: arm, RISC: true, Exidx: true},
		{Name: "aarch64", CC: "aarch64-linux-gnu-gcc", Strip: "aarch64-linux-gnu-objcopy", Qemu: "qemu-aarch64",
			CPU:     "cortex-a57", // without SVE, whose signal frames gdb does not read
			Machine: elf.EM_AARCH64, Class: elf.ELFCLASS64, Order: le, SP: "sp", RISC: true,
			Regs: numbered(map[int]string{31: "sp"}, 0, "x", 0, 30)},
		{Name: "riscv64", CC: "riscv64-linux-gnu-gcc", Strip: "riscv64-linux-gnu-objcopy", Qemu: "qemu-riscv64",
			Machine: elf.EM_RISCV, Class: elf.ELFCLASS64, Order: le, SP: "sp", RISC: true,
			Regs: numbered(map[int]string{}, 1, "x", 1, 31)},
		{Name: "mips", CC: "mips-linux-gnu-gcc", Strip: "mips-linux-gnu-objcopy", Qemu: "qemu-mips",
			Machine: elf.EM_MIPS, Class: elf.ELFCLASS32, Order: be, SP: "r29", Regs: mips, RISC: true},
		{Name: "mipsel", CC: "mipsel-linux-gnu-gcc", Strip: "mipsel-linux-gnu-objcopy", Qemu: "qemu-mipsel",
			Machine: elf.EM_MIPS, Class: elf.ELFCLASS32, Order: le, SP: "r29", Regs: mips, RISC: true},
		{Name: "mips64el", CC: "mips64el-linux-gnuabi64-gcc", Strip: "mips64el-linux-gnuabi64-objcopy", Qemu: "qemu-mips64el",
			Machine: elf.EM_MIPS, Class: elf.ELFCLASS64, Order: le, SP: "r29", Regs: mips, RISC: true},
		{Name: "powerpc", CC: "powerpc-linux-gnu-gcc", Strip: "powerpc-linux-gnu-objcopy", Qemu: "qemu-ppc",
			Machine: elf.EM_PPC, Class: elf.ELFCLASS32, Order: be, SP: "r1", RISC: true, Tables: true,
			Regs: numbered(map[int]string{65: "lr", 66: "ctr"}, 0, "r", 0, 31)},
	}
}
