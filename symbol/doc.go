// Package symbol turns addresses of compressed backtraces into functions and
// lines. It reads ELF and DWARF itself; no other program is started.
//
//	address ─Space→ module, its own address ─File→ frames: function, file:line, inlined chain
//
// Three things are to be known about an address before it names a line, and each
// has its type. Where it was: a [Space] is the modules of a process at one
// moment, a [Timeline] the moments of a log. What it was before the encoder lost
// its upper bits: [Repair] with a map, [InferBases] with nothing but the ELF.
// What stands there: a [File].
//
// Addresses in backtraces are return addresses. A [File] looks up exactly what
// it is asked; [File.CallAt] is the address to ask for.
//
// Malformed files are errors, or holes in what is known; they never panic.
package symbol
