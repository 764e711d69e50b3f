package symbol

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol/arch"
	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// File is an ELF file with its debug information. Addresses of a File are the file's own,
// as in its program headers.
//
// Only one goroutine at a time may use a File.
type File struct {
	Path    string
	BuildID string // hexadecimal, "" if there is none
	Machine elf.Machine
	Word    int  // bits of an address
	PIE     bool // position-independent: ET_DYN

	tree                   tree
	name                   string // in tree
	info                   fs.FileInfo
	arch                   arch.Arch
	order                  binary.ByteOrder
	program                bool      // a program, not a library
	object                 bool      // not linked: ET_REL, as are the files that dwz makes
	noCode                 bool      // the file holds debug information but no code
	text                   []segment // executable, by address
	loads                  []segment // all that is loaded
	codeLoads              []segment // the executable ones of loads
	entry                  uint64
	textSpans, loadedSpans spans
	sections               []*elf.Section
	image                  []byte // the whole file

	debugDirs []string
	debugFile string               // separate debug file in use, "" if none
	split     map[string]splitFile // by name
	debug     *dwarf.Data          // nil if there is none
	found     []dwarf.Frame
	budget    *dwarf.Budget
	why       string // why there are no lines, or no function names
	note      string // what else is wrong with it
	close     []func()

	symbols  *symbolTable      // nil until needed: see symtab
	callSet  *callSet          // nil until needed: see calls
	textFunc func(uint64) bool // f.Executable
}

// segment is a part of the file that is loaded.
type segment struct {
	addr, off, size uint64 // size in the file
	end             uint64 // addr plus the size in memory
}

func (s segment) holds(addr uint64) bool { return s.addr <= addr && addr < s.end }

// DebugDirs returns the default directories of separate debug files.
func DebugDirs() []string { return []string{"/usr/lib/debug"} }

// Open reads the ELF file at path and its debug information. Debug information in a
// separate file is found by build-id or .gnu_debuglink, in the directory of path, in .debug
// there, and under debugDirs.
func Open(path string, debugDirs []string) (*File, error) {
	f, err := openFile(tree{}, path, debugDirs, nil)
	if head := (notELF)(nil); errors.As(err, &head) {
		err = fmt.Errorf("%w: starts with %q, expected %q", err, []byte(head), elf.ELFMAG)
	}
	return f, err
}

// openFile opens a file of a tree. If accept is not nil, it is called once the headers are
// read, and can reject the file.
func openFile(t tree, name string, debugDirs []string, accept func(*File) error) (*File, error) {
	f, err := openELF(t, name)
	if err != nil {
		return nil, err
	}
	if f.object {
		err = fmt.Errorf("%s: a relocatable object, expected a linked program or library", f.Path)
	}
	if err == nil && accept != nil {
		err = accept(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	f.debugDirs = debugDirs
	if err := f.openDebug(); err != nil {
		f.why = printable.Text(err.Error())
	}
	if f.noCode && f.debug != nil {
		f.note = "it has only debug information, so calls cannot be checked and no load base can be inferred: name the program, too"
	}
	return f, nil
}

// Close releases the file's memory. Frames that the File returned stay valid.
func (f *File) Close() {
	for _, c := range f.close {
		c()
	}
	f.close, f.debug, f.image = nil, nil, nil
}

// Why returns why lines or function names are missing, "" if neither are.
func (f *File) Why() string { return f.why }

// DebugPath returns the path of the file that the debug information comes from.
func (f *File) DebugPath() string {
	if f.debugFile != "" {
		return f.debugFile
	}
	return f.Path
}

// kind describes the file: "32-bit Arm".
func (f *File) kind() string { return fmt.Sprintf("%d-bit %s", f.Word, machineName(f.Machine)) }

func (f *File) bigEndian() bool { return f.order == binary.ByteOrder(binary.BigEndian) }

func machineName(m elf.Machine) string {
	if name := arch.Of(m).Name; name != "" {
		return name
	}
	return m.String()
}

// faulted recovers from a page fault while the file's image is read. Callers defer it with
// old set to the result of debug.SetPanicOnFault(true). The image is the mapped file: if the
// file shrinks, a read past its new end faults. Other panics continue.
func (f *File) faulted(old bool, err *error) {
	debug.SetPanicOnFault(old)
	r := recover()
	if r == nil {
		return
	}
	if fault, ok := r.(interface{ Addr() uintptr }); !ok || fault.Addr() == 0 {
		panic(r)
	}
	f.why, f.noCode, f.debug = "became shorter while it was in use", true, nil
	f.symbols = &symbolTable{}
	if err != nil {
		*err = fmt.Errorf("%s: %s", f.Path, f.why)
	}
}

// Executable reports whether addr lies in an executable part of the file.
func (f *File) Executable(addr uint64) bool { return f.textSpans.holds(addr, addr) }

// loaded reports whether addr lies in any loaded part of the file.
func (f *File) loaded(addr uint64) bool { return f.loadedSpans.holds(addr, addr) }

// codeBefore returns up to n executable bytes of the file that end at address end. The slice
// refers to the file's image: it is valid until the next call, and the caller must not
// change it.
func (f *File) codeBefore(end uint64, n int) []byte {
	i, _ := slices.BinarySearchFunc(f.text, end, func(s segment, end uint64) int { return cmp.Compare(s.addr, end) })
	if i--; i < 0 || end > f.text[i].addr+f.text[i].size {
		return nil
	}
	s := &f.text[i]
	back := min(end-s.addr, uint64(n))
	return f.bytesAt(s.off+(end-s.addr)-back, back)
}

// ownAddr returns the file's own address for an address in memory. It returns false if the
// address has more bits than the file's machine.
func (f *File) ownAddr(pc, bias uint64) (uint64, bool) {
	addr := pc - bias
	if f.Word == 32 {
		if pc>>32 != 0 {
			return 0, false
		}
		addr = uint64(uint32(addr))
	}
	return f.unwindowed(addr), true
}

// unwindowed returns an Xtensa return address with the top bits of a code address. In a
// return address, the processor stores the size of the caller's register window there.
func (f *File) unwindowed(addr uint64) uint64 {
	if f.Machine != elf.EM_XTENSA || f.loaded(addr) {
		return addr
	}
	for top := range uint64(4) {
		if a := addr&0x3fffffff | top<<30; f.Executable(a) {
			return a
		}
	}
	return addr
}

// addrOfOffset returns the address at which the byte at a file offset is loaded. It returns
// false if the byte is not loaded.
func (f *File) addrOfOffset(off uint64) (uint64, bool) {
	for _, s := range f.loads {
		if s.off <= off && off < s.off+s.size {
			return off - s.off + s.addr, true
		}
	}
	// A mapping begins on a page, its segment somewhere in it.
	for _, s := range f.loads {
		page := s.off &^ 0xffff
		if page <= off && off < s.off+s.size && s.addr >= s.off-off {
			return s.addr - (s.off - off), true
		}
	}
	return 0, false
}

// extent returns the lowest loaded address and the end of the highest loaded segment.
func (f *File) extent() (low, high uint64) {
	low = ^uint64(0)
	for _, s := range f.loads {
		low, high = min(low, s.addr), max(high, s.end)
	}
	return min(low, high), high
}
