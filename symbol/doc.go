// Package symbol turns addresses of compressed backtraces into functions and
// lines. It reads ELF and DWARF itself; no other program is started.
//
//	address ─memory map or load bases→ module, address in it ─File→ frames: function, file:line, inlined chain
//
// A [Process] is all that most programs need: it is told the memory map, as a log has it,
// or load bases, as [InferBases] finds them where there are only the ELF files, and
// resolves the addresses of records. A [File] has the functions and lines of one ELF file.
//
// Addresses in backtraces are return addresses. A [File] looks up exactly what it
// is asked; [File.CallAddr] returns the address to ask for.
//
// # Untrusted input
//
// Malformed files cause errors or missing symbols, and no panic, even if they become
// shorter while they are in use. What a file may cost is in proportion to its size: 64
// MB of memory and 2^25 steps of some 10 to 40 ns, and for each byte of the file 16
// bytes and 8 steps more. Past that, functions are named from its symbol table, without
// lines, and [File.Why] says so. Linkers' output takes a fraction of it. Names longer
// than 32 KB are cut, demangled ones at 16 KB; those of the symbol table may take as much
// memory again. At most 256 calls may be inlined into each other. Names that could take
// over 2 s to demangle, or together over 10 s, are not demangled: see [Demangler].
//
// A log names files: its modules. Below a sysroot, these are opened by way of
// [os.Root], with links as a program there would follow them. Elsewhere, a file is used
// only if it has the build-id that the log says, and no file of this machine is used for
// the log of another machine. Only regular files are opened. A process may have
// 65,536 mappings. The caches of a [Process] hold 131,072 addresses by default, some 60 MB,
// and the names of its files, whatever the length of the log.
//
// Names are safe to print: see internal/printable.
//
// # Why not debug/dwarf
//
// The standard library's reader, with a simple index on top, finds the same functions,
// inlined calls and lines: a test of internal/dwarf compares 10,000 addresses of each of
// 20 real programs. It takes about three times as long and three to four times the memory:
// for the C library, 0.4 s and 53 MB to 3.2 s and 224 MB; for the Go linker, 0.12 s and
// 37 MB to 0.54 s and 129 MB.
//
//	LWSBT_FULL=1 go test -run DebugDwarf -v ./symbol/internal/dwarf
//
// It also lacks what this package needs: a bound on memory and time for hostile files and
// the names that dwz moves to another file.
package symbol
