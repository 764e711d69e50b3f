// Package image reads the memory of a crashed program: the core file of a process, or
// the RAM of a device. It finds the heap of libwebsockets or of device/, the call stack
// of each block, overwritten metadata, and leaks.
//
//	core, dump-guest-memory ─┐
//	Intel HEX, S-records    ─┼→ Image ─Find→ Heap ─┬→ ~h#begin, ~m# …, ~h#end
//	raw RAM                 ─┘  memory,  blocks    ├→ damage, and who is suspected
//	                            threads            └→ leaks
//
// Images are not trusted. Files are mapped, not read; what a header claims is checked
// against what the file has; what was not accepted becomes a note. Nothing panics, and
// no loop is longer than the image.
package image
