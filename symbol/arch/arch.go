// Package arch describes machines: how to recognize the call before a return address, and
// how to compute the address of the call.
//
//	       call              delay slot (MIPS)
//	... | 0c 10 00 40      | 00 00 00 00      | 8f bc 00 10 ...
//	    ^ CallAddr                            ^ return address, with TagBits
package arch

import (
	"debug/elf"
	"encoding/binary"
)

// Arch is a kind of machine. [Of] returns the one of an ELF machine.
type Arch struct {
	Machine elf.Machine
	Name    string // as people write it
	// Step is the alignment of instructions, in bytes.
	Step uint64
	// DelaySlot is the number of bytes of instructions after a call that run before the
	// call takes effect. The return address follows them.
	DelaySlot uint64
	// TagBits are the bits of a return address that give the instruction set of the
	// code (Thumb, MIPS16, microMIPS) and are not part of the address. (BT-CAP-4)
	TagBits uint64

	isCall func(*Code) bool
}

// MaxCall is the maximum length in bytes of a call with its delay slot: an x86-64 indirect
// call has up to 8 bytes, a MIPS call 4, and its delay slot 4.
const MaxCall = 8

var table = []Arch{
	{Machine: elf.EM_X86_64, Name: "x86-64", Step: 1, isCall: callX86},
	{Machine: elf.EM_386, Name: "x86", Step: 1, isCall: callX86},
	{Machine: elf.EM_AARCH64, Name: "AArch64", Step: 4, isCall: callAArch64},
	{Machine: elf.EM_ARM, Name: "Arm", Step: 2, TagBits: 1, isCall: callARM},
	{Machine: elf.EM_RISCV, Name: "RISC-V", Step: 2, isCall: callRISCV},
	{Machine: elf.EM_MIPS, Name: "MIPS", Step: 4, DelaySlot: 4, TagBits: 1, isCall: callMIPS},
	{Machine: elf.EM_PPC, Name: "PowerPC", Step: 4, isCall: callPPC},
	{Machine: elf.EM_PPC64, Name: "PowerPC", Step: 4, isCall: callPPC},
	{Machine: elf.EM_S390, Name: "S/390", Step: 2, isCall: callS390},
	{Machine: elf.EM_XTENSA, Name: "Xtensa", Step: 1, isCall: callXtensa},
}

// Of returns the Arch of an ELF machine. For an unknown machine, Name is empty, Step is 1,
// and calls are not recognized.
func Of(machine elf.Machine) *Arch {
	for i := range table {
		if table[i].Machine == machine {
			return &table[i]
		}
	}
	return &Arch{Machine: machine, Step: 1}
}

// Code is the code in front of an address.
type Code struct {
	Bytes []byte // bytes that end at Addr; the last MaxCall bytes suffice
	Addr  uint64 // without TagBits
	Word  int    // bits of an address
	Big   bool   // byte order
	Thumb bool   // the code is Thumb
	// Text reports whether an address is executable. Data that looks like a call to an
	// address that is not executable is no call. If Text is nil, all addresses count as
	// executable.
	Text func(addr uint64) bool
}

// RecognisesCalls reports whether FollowsCall can recognize calls of the machine.
func (a *Arch) RecognisesCalls() bool { return a.isCall != nil }

// FollowsCall reports whether the instruction that ends at c.Addr is a call, or the delay
// slot of a call, as before every return address. It returns true if calls are not
// recognized.
func (a *Arch) FollowsCall(c *Code) bool { return a.isCall == nil || a.isCall(c) }

// Strip returns an address without its TagBits.
func (a *Arch) Strip(addr uint64) uint64 { return addr &^ a.TagBits }

// CallAddr returns an address inside the instruction that returns to ret. Looking up this
// address finds the line of the call and not the line after it. (BT-CAP-3)
func (a *Arch) CallAddr(ret uint64) uint64 {
	tagged := ret&a.TagBits != 0 // a short instruction set: its delay slots have 2 bytes or 4
	ret = a.Strip(ret)
	if back := 2 * a.DelaySlot; back > 0 && !tagged && ret%a.Step == 0 && ret >= back {
		return ret - back
	}
	return max(ret, 1) - 1
}

func (c *Code) text(addr uint64) bool {
	if c.Word == 32 {
		addr = uint64(uint32(addr))
	}
	return c.Text == nil || c.Text(addr)
}

func (c *Code) word(b []byte) uint32 {
	if c.Big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *Code) half(b []byte) uint16 {
	if c.Big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}
