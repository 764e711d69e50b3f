package symbol

import (
	"fmt"
	"strings"
)

// Addr is a return address of a record, with its function and lines if they are known. Two
// equal addresses have equal Addr values only if they were resolved in the same
// [Process.Generation]. To compare addresses of several generations,
// compare PC, State and, where there is a Location, its Own.
type Addr struct {
	// PC is the address in memory, including recovered upper bits. If the load base is not
	// known in full, PC is the file's own address. If State is Lost, only the low 31 bits
	// of PC are correct.
	PC       uint64
	State    State
	Location *Location // nil if no known file or mapping holds the address
}

// CodeOffset returns the Addr of a code offset of SPEC.md, BT-CODE-1, if it is not known which
// address it stands for. PC is the offset. All these have one Location, since a log may have
// millions of them.
func CodeOffset(x uint64) Addr { return Addr{PC: x, Location: unplaced} }

var unplaced = &Location{Missing: reasonUnplaced}

// CodeOffset returns the code offset of an Addr that [CodeOffset] returned. For all others, ok is
// false.
func (a Addr) CodeOffset() (x uint64, ok bool) { return a.PC, a.Location == unplaced }

// State is the reliability of an address of a record.
type State uint8

const (
	Exact    State = iota // as recorded
	Inferred              // bits that the encoder dropped were recovered
	Lost                  // only the low 31 bits are known
)

// String returns "exact", "inferred" or "lost".
func (s State) String() string {
	if s > Lost {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return [...]string{"exact", "inferred", "lost"}[s]
}

// Location is the module and the frames of an address. Several addresses may share a
// Location. A Location never changes.
type Location struct {
	Module *Module // nil if no known file holds the address
	// Own is the address in the file, without the load base. If only a memory map is
	// available and not the file, Own is an offset in the file.
	Own uint64
	// Call is the address in memory that was looked up: usually one inside the call
	// instruction before the return address.
	Call    uint64
	Frames  []Frame // innermost first, empty if no symbol is known
	Build   string  // build ID of the program that ran, if no known file holds the address and the log has it
	Missing string  // why Frames is empty or has no lines, "" if it has both
}

// Module is a file that a process loaded.
type Module struct {
	Name    string // path, or the name of the file in the log
	BuildID string // hexadecimal in lower case, "" if not known

	// File, Start, End and Offset are set in the result of [Process.Resolve].
	File       *File  // nil if it is not available
	Start, End uint64 // addresses in memory, of the mapping, or of the whole file if there is no memory map
	Offset     uint64 // offset of Start in the file, in bytes

	// Versions is the number of a program of which Config.Files has several builds, from 1, or 0.
	Versions int

	// Logged reports whether a log named the module, and not the user. Such a module is
	// read only from a file with the module's build-id, or from below a sysroot.
	Logged bool
	// Inode is the inode number of the file that was mapped, 0 if it is not known. For a
	// module that is not Logged, a file of this machine is used only if it has this inode
	// number or is below a sysroot.
	Inode uint64
}

// Frame is one call in source. Unknown fields are "" or 0.
type Frame struct {
	Func          string // linkage name
	Name          string // Func, demangled; a [Process] sets it
	File          string
	Line          int
	Discriminator int  // distinguishes several pieces of code on one line
	Inlined       bool // inlined into the next frame
}

// Frames returns the calls at the address, innermost first. There are several if calls were
// inlined, and none if no symbol is known. A code offset is a function with its name. The caller
// must not change the slice.
func (a Addr) Frames() []Frame {
	switch a.Location {
	case nil:
		return nil
	case unplaced:
		return []Frame{{Func: a.String(), Name: a.String()}}
	}
	return a.Location.Frames
}

// Missing returns the reason why the address has no frames, or frames without lines. It
// returns "" if the address has both.
func (a Addr) Missing() string {
	switch {
	case a.Location != nil:
		return a.Location.Missing
	case a.State == Lost:
		return reasonLost
	}
	return reasonNothing
}

// Ambiguous reports whether the address is Lost because several addresses of the process
// have its low 31 bits.
func (a Addr) Ambiguous() bool { return a.State == Lost && a.Location != nil }

// String returns the name of the innermost function, or if it is not known, the address:
// "app+0x1234" in a module, "0x401234", "?1234" if the upper bits are lost, or "code+0x1234" for a
// code offset.
func (a Addr) String() string {
	l := a.Location
	switch {
	case l == unplaced:
		return fmt.Sprintf("code+%#x", a.PC)
	case l != nil && len(l.Frames) > 0 && l.Frames[0].Name != "":
		return l.Frames[0].Name
	case a.State == Lost:
		return fmt.Sprintf("?%x", a.PC&low31Mask)
	case l != nil && l.Module != nil && l.Module.Name != "":
		name := l.Module.Name
		return fmt.Sprintf("%s+%#x", name[strings.LastIndexAny(name, `/\`)+1:], l.Own)
	}
	return fmt.Sprintf("%#x", a.PC)
}

// Reasons why nothing is known of an address, for [Location.Missing].
const (
	reasonLost      = "only the low 31 bits are known"
	reasonAmbiguous = "only the low 31 bits are known, and several addresses have them"
	reasonUnmapped  = "in no mapping"
	reasonAnonymous = "in memory without a file"
	reasonNoFile    = "in none of the ELF files"
	reasonNothing   = "no ELF file and no map given"
	reasonNoLines   = "no line information for it"
	reasonNoSymbol  = "no symbol covers it"
	reasonUnplaced  = "the log does not say where the code is"
)
