// Package core reads the memory of a crashed program: the core file of a process, or
// the RAM of a device. It finds the heap of libwebsockets or of device/, the call stack
// of each block, overwritten metadata, and leaks.
//
//	core, dump-guest-memory ─┐
//	crash dump ──────crash──→┤
//	Intel HEX, S-records    ─┼→ Image ─Find→ Heap ─┬→ ~h#begin, ~m# …, ~h#end
//	raw RAM                 ─┘  memory,  blocks    ├→ damage and suspects
//	                            threads            └→ leaks
//
// Images are not trusted. Files are mapped, not read; claims of a header are checked
// against the size of the file; rejected parts are reported as notes. No input makes
// the package panic, and all loops are bounded by the size of the image.
package core
