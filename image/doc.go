// Package image reads what is left of a program that died: the core file of a
// process, or the RAM of a device. It finds the heap of libwebsockets or of
// device/ in it, block by block with the call stack of each, what of it was
// overwritten, and what nothing points to any more.
//
//	core, dump-guest-memory ─┐
//	Intel HEX, S-records    ─┼→ Image ─Find→ Heap ─┬→ ~h#begin, ~m# …, ~h#end
//	raw RAM                 ─┘  memory,  blocks    ├→ damage, and who is suspected
//	                            threads            └→ leaks
//
// Images are not trusted. Files are mapped, not read; what a header claims is
// checked against what the file has; what was not believed becomes a note.
// Nothing panics, and no loop is longer than the image.
package image
