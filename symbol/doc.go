// Package symbol turns addresses of compressed backtraces into functions and
// lines. It reads ELF and DWARF itself; no other program is started.
//
//	address ─memory map or load bases→ module, address in it ─File→ frames: function, file:line, inlined chain
//
// Most programs need only a [Process]: [NewProcess] opens the ELF files, [Process.Map] sets
// the memory map, and [Process.Resolve] returns the frames of the addresses of a record.
// Without a memory map, [InferBases] infers load bases from addresses and ELF files. A [File]
// is one ELF file with its functions and lines.
//
// Addresses in backtraces are return addresses. A [File] looks up the exact address that it
// is given; a [Process] looks up the call before it.
//
// # Untrusted input
//
// Malformed files cause errors or missing symbols but no panic, even if they shrink while
// they are in use. Each file has a budget: 64 MB of memory and 2^25 steps of about 10 to 40
// ns, plus 16 bytes and 8 steps per byte of the file and of its .dwo files. Beyond the budget,
// functions are named from the symbol table, without lines, and [File.Why] gives the reason. The output
// of linkers needs a fraction of the budget. Names are cut at 32 KB, and demangled names at
// 16 KB; the names of the symbol table have a second budget of the same memory. At most 256
// calls may be inlined into each other. Demangling is limited to 2 s per name and 10 s per
// [Demangler]; names beyond these limits stay mangled.
//
// A program names files of split debug information (.dwo), anywhere on the machine or in the
// sysroot. Such a file is used only if it has the unit whose id is in the program.
//
// A log names files, as modules. Below a sysroot, they are opened through [os.Root], and
// links are followed as a program in the sysroot would follow them. Elsewhere, a file is
// used only if it has the build-id in the log, and only if the log comes from the same kind
// of machine. Only regular files are opened. A process may have 65,536
// mappings; with over 4,096 executable ones, lossy addresses stay lost. The caches
// of a [Process] hold 131,072 addresses by default, about 60 MB, and the names of its
// files, independent of the length of the log.
//
// Names are safe to print: control characters in them are escaped.
//
// # Why not debug/dwarf
//
// The standard library's reader has no bound on memory and time for hostile files, and does not read the names
// that dwz moves to another file, as those of Debian's packages. With a simple index on top, it finds the same functions,
// inlined calls and lines otherwise, in 0.7 to 3.7 times the time and 2 to 6 times the memory:
//
//	LWSBT_FULL=1 go test -run Real -v ./symbol/internal/dwarf
package symbol
