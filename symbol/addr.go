package symbol

import (
	"fmt"
	"strings"
)

// Addr is a return address of a record, with its function and lines if they are known. Two values are equal
// only if they were resolved at the same [Process.Generation]: compare their PC, State
// and Own to tell whether two addresses are the same.
type Addr struct {
	// PC is the address in memory, with the upper bits that were recovered. It is the
	// file's own address where the bits of the load base are not all known, and has
	// only its low 31 bits right if State is Lost.
	PC       uint64
	State    State
	Location *Location // nil if the address is in no known file or mapping
}

// State is how far an address of a record can be trusted.
type State uint8

const (
	Exact    State = iota // as it was read
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

// Location is the module and the frames of an address. Several addresses share a
// Location; it never changes.
type Location struct {
	Module *Module // nil if the address is in no known file
	// Own is the address in the file, without the load base. If there is only a memory
	// map, and the file is not available, Own is an offset in the file.
	Own uint64
	// Call is the address in memory that was looked up, as a rule inside the call
	// instruction in front of the return address.
	Call    uint64
	Frames  []Frame // innermost first, empty if no symbol is known
	Missing string  // why Frames is empty or has no lines, "" if it has both
}

// Module is a file that a process loaded.
type Module struct {
	Name    string // path, or what the log calls the file
	BuildID string // hexadecimal in lower case, "" if not known

	// File, Start, End and Offset are set in what [Process.Resolve] returns.
	File       *File  // nil if it is not available
	Start, End uint64 // addresses in memory of the mapping, or of the whole file without a map
	Offset     uint64 // of Start in the file, in bytes

	// Logged modules were named by a log and not by the user: only a file with
	// the module's build-id is used for one, unless it is below a sysroot.
	Logged bool
	// Inode is the number of the file that was mapped, 0 if it is not known. Of modules
	// that are not Logged, a file of this machine is used only if it has that number,
	// unless it is below a sysroot.
	Inode uint64
}

// Frame is one call in source. What is not known is "" or 0.
type Frame struct {
	Func          string // linkage name
	Name          string // Func, demangled; a [Process] sets it
	File          string
	Line          int
	Discriminator int  // distinguishes pieces of code of one line
	Inlined       bool // into the frame that follows
}

// Frames returns the calls at the address, innermost first: several if calls were
// inlined, none if no symbol is known. The caller must not change them.
func (a Addr) Frames() []Frame {
	if a.Location == nil {
		return nil
	}
	return a.Location.Frames
}

// Missing returns why the address has no frames, or frames without lines; "" if it has
// both.
func (a Addr) Missing() string {
	switch {
	case a.Location != nil:
		return a.Location.Missing
	case a.State == Lost:
		return reasonLost
	}
	return reasonNothing
}

// Ambiguous reports whether the address is lost because several addresses of the
// process have its low 31 bits.
func (a Addr) Ambiguous() bool { return a.State == Lost && a.Location != nil }

// String returns the innermost function. If that is not known, it returns the address:
// "app+0x1234" in a module, "0x401234", or "?1234" if the upper bits are lost.
func (a Addr) String() string {
	l := a.Location
	switch {
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
)
