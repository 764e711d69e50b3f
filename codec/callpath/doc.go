// Package callpath reads and writes call paths and their live blocks, as specified in
// spec/callpaths.md: lines of call paths (~p#), lines of their events (~v#), the names of
// paths, and the code ranges to which frames are relative. It does no I/O.
//
//	~p# line ──Line──> Entry: a Path, its live blocks and bytes
//	~v# line ──Events──> Event: allocated, freed, moved, by the name of a path
//	Entry ──Names──> the frames of a path that another line names
//	Frame <──Ranges──> address
//	Entry ──Writer──> ~p# lines
package callpath
