// Package callpath reads and writes call paths with what they hold, as of SPEC.md,
// Part III: lines of paths (~p#), lines of events of paths (~v#), the names of paths,
// and the code ranges that frames are relative to. It does no I/O.
//
//	~p# line ──Line──> Entry: a Path, its live blocks and bytes
//	~v# line ──Events──> Event: allocated, freed, moved, by the name of a path
//	Entry ──Names──> the frames of a path that another line names
//	Frame <──Ranges──> address
//	Entry ──Writer──> ~p# lines
package callpath
