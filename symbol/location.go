package symbol

// Location is what is known of an address.
type Location struct {
	PC uint64
	// Module is the file the address is in, as the process or the user calls it,
	// "" if that is not known, and ObjAddr the address in the module; or the
	// offset in its file, if Mapping says no more and the file is not available.
	Module  string
	ObjAddr uint64
	BuildID string
	File    *File // nil if it is not available
	// LookupPC is the address in memory that was looked up: as a rule inside the
	// call that PC is the return address of.
	LookupPC uint64
	// Mapping is the mapping it is in, nil without a map.
	Mapping *Mapping
	// Frames are the calls found, innermost first; empty if none was.
	Frames []Frame
	// Reason says why Frames is empty, or has no lines; "" if it has both.
	Reason string
}

// State says how far an address of a record can be trusted.
type State uint8

const (
	Exact    State = iota // as it was read
	Inferred              // bits that the encoder dropped were recovered
	Lost                  // only its low 31 bits are known
)

// String returns exact, inferred or lost.
func (s State) String() string { return [...]string{"exact", "inferred", "lost"}[s] }

// FrameAddr is one return address of a record, and what is known of it.
type FrameAddr struct {
	*Location
	State State
}

// Reasons why nothing is known of an address. [Location.Reason]
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
