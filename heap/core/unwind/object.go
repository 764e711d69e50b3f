package unwind

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/elffile"
)

// Object is an ELF file with code. It must not be used by several goroutines at once.
type Object struct {
	Path    string
	Machine elf.Machine
	Class   elf.Class
	Order   binary.ByteOrder
	arch    *machine
	entry   uint64
	file    io.ReaderAt
	closer  io.Closer
	loads   []load
	text    []span
	plt     []span // stubs that jump to other functions
	eh      *frameTable
	debug   *frameTable
	exidx   section
	starts  []uint64 // of functions, sorted
	symbols bool     // starts includes the symbol table
	called  bool     // starts includes the targets of calls
	jumps   []jump   // sorted by target
	jumped  bool     // jumps is filled in
	pages   map[uint64][]byte
}

type load struct{ addr, off, size, end uint64 }

type span struct{ low, high uint64 }

func (s span) holds(a uint64) bool { return s.low <= a && a < s.high }

type section struct {
	addr uint64
	data []byte
}

// maxSection is the size of the largest section that is read, in bytes.
const maxSection = 1 << 30

// maxRatio is the largest compression ratio of a section.
const maxRatio = 100

// maxNames limits the bytes of the names of sections.
const maxNames = 1 << 28

// maxSpans limits the number of segments of a file, and of spans of its code. Usually there
// are a dozen.
const maxSpans = 1 << 10

// Open reads the ELF file at path.
func Open(path string) (*Object, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s: expected a regular file", path)
	}
	o, err := NewObject(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	o.closer = f
	return o, nil
}

// NewObject reads an ELF file from r, which must remain usable. Errors begin with name.
func NewObject(r io.ReaderAt, name string) (o *Object, err error) {
	defer func() {
		if r := recover(); r != nil { // a panic of debug/elf
			o, err = nil, fmt.Errorf("%s: malformed ELF: %v", name, r)
		}
	}()
	e, err := elffile.Open(r, maxNames)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a := archOf(e.Machine, e.Class, e.ByteOrder)
	if a == nil {
		return nil, fmt.Errorf("%s: machine %v, expected x86-64, i386, Arm, AArch64, MIPS, PowerPC, RISC-V, S/390 or Xtensa", name, e.Machine)
	}
	o = &Object{Path: name, Machine: e.Machine, Class: e.Class, Order: e.ByteOrder, arch: a, entry: e.Entry, file: r,
		pages: map[uint64][]byte{}}
	// The entry point of a library is not the bottom of a stack; the entry point of the
	// kernel's vdso is a function.
	if at, err := e.DynValue(elf.DT_SONAME); err == nil && len(at) > 0 {
		o.entry = 0
	}
	if o.read(e); len(o.loads) > maxSpans {
		return nil, fmt.Errorf("%s: malformed ELF: %d loaded segments, expected at most %d", name, len(o.loads), maxSpans)
	}
	return o, nil
}

// Close closes the file.
func (o *Object) Close() error {
	if o.closer == nil {
		return nil
	}
	return o.closer.Close()
}

// Types of the segment and section of Arm's unwind tables.
const (
	ptARMExidx  = 0x70000001
	shtARMExidx = 0x70000001
)

// read reads the data for unwinding from the ELF file.
func (o *Object) read(e *elf.File) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Filesz > 0 {
			o.loads = append(o.loads, load{p.Vaddr, p.Off, p.Filesz, p.Vaddr + p.Memsz})
			if p.Flags&elf.PF_X != 0 {
				o.text = append(o.text, span{p.Vaddr, p.Vaddr + p.Filesz})
			}
		}
		if p.Type == ptARMExidx && o.Machine == elf.EM_ARM && p.Filesz < maxSection && len(e.Sections) == 0 {
			if b := o.bytes(p.Vaddr, int(p.Filesz)); b != nil {
				o.exidx = section{p.Vaddr, b}
			}
		}
	}
	// Segments may overlap: where code and constants share a window of addresses, ESP-IDF has a segment of zeros in the place
	// of the code. Code is read last, over the zeros.
	slices.SortStableFunc(o.loads, func(a, b load) int { return cmp.Compare(o.codeAt(a), o.codeAt(b)) })
	var text []span
	for _, s := range e.Sections {
		if s.Type == elf.SHT_NOBITS && s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 && s.Addr+s.Size > s.Addr {
			text = append(text, span{s.Addr, s.Addr + s.Size}) // a separate debug file: it has no code, but tables
			continue
		}
		if s.Type == elf.SHT_NOBITS || s.Size == 0 || s.Size > maxSection ||
			s.Flags&elf.SHF_COMPRESSED != 0 && s.Size/maxRatio > s.FileSize {
			continue
		}
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 {
			text = append(text, span{s.Addr, s.Addr + s.Size})
		}
		o.readSection(s)
	}
	if text != nil && len(text) <= maxSpans {
		o.text = text
	}
	o.text = apart(o.text)
	o.readSymbols(e)
}

// readSection reads unwind tables and stubs from a section.
func (o *Object) readSection(s *elf.Section) {
	word := int(o.arch.word)
	switch {
	case strings.HasPrefix(s.Name, ".plt") || s.Name == ".iplt" || s.Name == ".MIPS.stubs":
		o.plt = append(o.plt, span{s.Addr, s.Addr + s.Size})
	case s.Name == ".eh_frame":
		if b, err := s.Data(); err == nil {
			o.eh = readFrames(b, s.Addr, true, o.arch.order, word)
		}
	case s.Name == ".debug_frame":
		if b, err := s.Data(); err == nil {
			o.debug = readFrames(b, 0, false, o.arch.order, word)
		}
	case s.Type == shtARMExidx && o.Machine == elf.EM_ARM:
		if b, err := s.Data(); err == nil {
			o.exidx = section{s.Addr, b}
		}
	}
}

// apart sorts spans and removes overlaps. It keeps at most maxSpans.
func apart(list []span) []span {
	slices.SortStableFunc(list, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	out, end := list[:0], uint64(0)
	for _, s := range list {
		if s.low = max(s.low, end); s.low < s.high && len(out) < maxSpans {
			out = append(out, s)
			end = s.high
		}
	}
	return out
}

func (o *Object) inText(addr uint64) bool {
	return slices.ContainsFunc(o.text, func(s span) bool { return s.holds(addr) })
}

func (o *Object) inPLT(addr uint64) bool {
	return slices.ContainsFunc(o.plt, func(s span) bool { return s.holds(addr) })
}

// codeAt returns 1 for a segment of code, else 0.
func (o *Object) codeAt(l load) int {
	if slices.Contains(o.text, span{l.addr, l.addr + l.size}) {
		return 1
	}
	return 0
}

// span returns the range of addresses that is loaded.
func (o *Object) span() (s span) {
	s.low = ^uint64(0)
	for _, l := range o.loads {
		s.low, s.high = min(s.low, l.addr), max(s.high, l.end)
	}
	return s
}

const (
	pageSize = 4096
	maxPages = 4096 // cached pages of one file
)

// page returns the page that contains addr, as loaded from the file, and its address. Bytes
// that are not in the file are 0. b is nil if nothing could be read.
func (o *Object) page(addr uint64) (b []byte, off uint64) {
	at := addr &^ (pageSize - 1)
	if b, ok := o.pages[at]; ok {
		return b, at
	}
	b = make([]byte, pageSize)
	have := false
	for _, l := range o.loads {
		low, high := max(l.addr, at), min(l.addr+l.size, at+pageSize)
		if low >= high {
			continue
		}
		if n, _ := o.file.ReadAt(b[low-at:high-at], int64(l.off+low-l.addr)); n == int(high-low) {
			have = true
		}
	}
	if !have {
		b = nil
	}
	if len(o.pages) >= maxPages {
		clear(o.pages)
	}
	o.pages[at] = b
	return b, at
}

// bytes returns n bytes of the file at a loaded address, or nil if some are not in the file.
func (o *Object) bytes(addr uint64, n int) []byte {
	if n < 0 || n > maxSection {
		return nil
	}
	var out []byte
	for n > 0 {
		b, at := o.page(addr)
		if b == nil || !o.inFile(addr) {
			return nil
		}
		part := b[addr-at:]
		part = part[:min(len(part), n)]
		if out == nil && len(part) == n {
			return part
		}
		out = append(out, part...)
		addr += uint64(len(part))
		n -= len(part)
	}
	return out
}

func (o *Object) inFile(addr uint64) bool {
	return slices.ContainsFunc(o.loads, func(l load) bool { return l.addr <= addr && addr-l.addr < l.size })
}

// Low returns the lowest address that the file loads, 0 if it loads nothing.
func (o *Object) Low() uint64 {
	s := o.span()
	if s.low > s.high {
		return 0
	}
	return s.low
}

// AtEntry reports whether pc, an address in the file, is in the startup code of the program,
// which is the bottom of a stack.
func (o *Object) AtEntry(pc uint64) bool {
	entry := o.arch.addr(o.entry)
	return entry != 0 && pc >= entry && pc-entry < 64
}
