package profile

import (
	"strconv"
	"strings"
)

// State is how far an address can be trusted.
type State uint8

const (
	Exact    State = iota // as it was read
	Inferred              // bits that the encoder dropped were recovered
	Lost                  // only its low 31 bits are known
)

// Frame is one call in source. What is not known is "" or 0.
type Frame struct {
	Func    string // as people write it
	Linkage string // as the linker has it
	File    string
	Line    int
	Inlined bool // into the frame that follows
}

// Module is a file in memory: one mapping of it, or all of it where no map is known.
type Module struct {
	Path          string
	BuildID       string // hexadecimal, "" if not known
	Start, Limit  uint64 // addresses in memory
	Offset        uint64 // of Start in the file
	Object        uint64 // the file's own address of Start
	HasFuncs      bool
	HasFiles      bool
	HasLines      bool
	HasInlineInfo bool
}

// Location is a return address and the code there.
type Location struct {
	Addr    uint64 // as the record had it, or as it was recovered
	Call    uint64 // inside the call instruction, the address that was looked up
	State   State
	Module  *Module // nil if not known
	ObjAddr uint64  // the module's own address of Addr
	Frames  []Frame // innermost first; empty if no symbol is known
}

// Name returns the location as an address, as far as that is known: "app+0x1234",
// "0x401234", or "?1234" of one whose upper bits are lost.
func (l *Location) Name() string {
	switch {
	case l.State == Lost:
		return "?" + strconv.FormatUint(l.Addr&(1<<31-1), 16)
	case l.Module != nil && l.Module.Path != "":
		return base(l.Module.Path) + "+0x" + strconv.FormatUint(l.ObjAddr, 16)
	}
	return "0x" + strconv.FormatUint(l.Addr, 16)
}

// base is the last element of a path of any system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
