package symbol

// oldLocation is what is known of an address.
type oldLocation struct {
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

// oldFrameAddr is one return address of a record, and what is known of it.
type oldFrameAddr struct {
	*oldLocation
	State State
}
