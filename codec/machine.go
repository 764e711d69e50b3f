package codec

import (
	"fmt"
)

// Machine is the kind of machine that an encoder runs on: its word size, and the result
// of a shift by a negative count or by more than 30 bits in its compiled code. The encoder
// of lws contains such shifts, whose result C leaves undefined. (BT-MACH-1)
//
//	        field of 47 bits, most significant first          spill
//	exact   b46 … b32 │ b31 │ b30 … b0                          0
//	wrap    b14 … b0  │  1  │ b30 … b0                          1
//	zero     0  …  0  │  1  │ b30 … b0                          0
//
// The zero Machine is MachineExact64.
type Machine uint8

const (
	MachineExact64 Machine = iota // 64-bit words, every bit kept, as the author of lws intended
	MachineExact32                // 32-bit words, every bit kept
	MachineWrap64                 // x86-64, AArch64, RISC-V 64
	MachineWrap32                 // i386, MIPS
	MachineZero64                 // s390x
	MachineZero32                 // Arm, PowerPC
)

var machineNames = [...]string{"exact64", "exact32", "wrap64", "wrap32", "zero64", "zero32"}

// Machines returns all machines, with 32-bit and 64-bit words.
func Machines() []Machine {
	return []Machine{MachineExact32, MachineExact64, MachineWrap32, MachineWrap64, MachineZero32, MachineZero64}
}

// Word returns the word size of the machine in bits, 32 or 64.
func (m Machine) Word() int { return 64 - 32*int(m&1) }

// Lossy reports whether the encoder of the machine loses bits of some values. Machines
// with 32-bit words lose none. (BT-LOSS-1)
func (m Machine) Lossy() bool { return m == MachineWrap64 || m == MachineZero64 }

// String returns the name of the machine, as ParseMachine reads it.
func (m Machine) String() string {
	if int(m) < len(machineNames) {
		return machineNames[m]
	}
	return fmt.Sprintf("machine(%d)", uint8(m))
}

// ParseMachine returns the machine with the given name, such as "wrap64".
func ParseMachine(name string) (Machine, error) {
	for i, n := range machineNames {
		if n == name {
			return Machine(i), nil
		}
	}
	return 0, fmt.Errorf("machine %q is none of exact32, exact64, wrap32, wrap64, zero32, zero64", name)
}

// Wire returns the value that the encoder of the machine writes for v in a field as wide
// as v: v itself, or v without its upper bits. The low 31 bits are always correct. v must
// fit the machine's word. (BT-MACH-2, BT-MACH-3)
func (m Machine) Wire(v uint64) uint64 {
	wire, _ := m.loss().wire(v, significant(v))
	return wire
}

// loss describes how a machine changes values of 32 bits and more.
type loss struct {
	keep   uint64 // mask of the bits that it keeps
	over   uint64 // 1 if bit 31 becomes the OR of the bits from 31 up
	repeat uint64 // factor that copies the low 32 bits to the upper bits, or 1
	spill  uint64 // the spill bit after such a value
}

func (m Machine) loss() loss {
	switch m {
	case MachineExact32, MachineExact64:
		return loss{keep: ^uint64(0), repeat: 1}
	case MachineZero32, MachineZero64:
		return loss{keep: 1<<31 - 1, over: 1, repeat: 1}
	}
	return loss{keep: 1<<31 - 1, over: 1, repeat: 1<<32 | 1, spill: 1}
}

// wire returns the bits written for v, which has count bits, and the spill bit after
// them. It has no branches, for speed. (BT-MACH-2, BT-MACH-3, BT-MACH-4)
func (l loss) wire(v uint64, count uint) (wire, spill uint64) {
	over := (v>>31 + (1<<33 - 1)) >> 33 // 1 if a bit from 31 up is set
	unused := (64 - count) & 63
	return (v&l.keep | over&l.over<<31) * l.repeat << unused >> unused, over & l.spill
}
