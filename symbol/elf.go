package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol/arch"
	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
	"github.com/lwsbt/lwsbt/symbol/internal/elfnote"
)

// notELF is the error for a file that is not ELF. It holds the first bytes of the file,
// which are shown only if the user named the file.
type notELF []byte

func (notELF) Error() string { return "not an ELF file" }

// openELF maps the file and reads its headers.
func openELF(t tree, name string) (f *File, err error) {
	path := t.path(name)
	fail := func(err error) (*File, error) {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("%s: %w", printable.Text(path), err)
	}
	file, err := t.open(name)
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fail(err)
	}
	image, release, err := readImage(file)
	if err != nil {
		return fail(err)
	}
	f = &File{Path: printable.Text(path), tree: t, name: name, info: info, image: image, split: map[string]splitFile{},
		budget: dwarf.NewBudget(int64(len(image))), close: []func(){release}}
	if err = f.readHeaders(); err != nil {
		release()
		return fail(err)
	}
	return f, nil
}

// maxSegments limits the loaded segments of a file, and the executable sections that refine
// them. Programs have about a dozen.
const maxSegments = 1 << 10

// readHeaders reads the ELF header, segments and sections.
func (f *File) readHeaders() (err error) {
	defer f.faulted(debug.SetPanicOnFault(true), &err)
	if !bytes.HasPrefix(f.image, []byte(elf.ELFMAG)) {
		return notELF(bytes.Clone(f.image[:min(4, len(f.image))]))
	}
	e, err := f.parseELF()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends early")
	}
	if err != nil {
		return fmt.Errorf("malformed ELF: %w", err)
	}
	f.Machine, f.Word, f.PIE, f.object = e.Machine, 64, e.Type == elf.ET_DYN, e.Type == elf.ET_REL
	f.arch, f.order, f.sections = *arch.Of(e.Machine), e.ByteOrder, e.Sections
	if e.Class == elf.ELFCLASS32 {
		f.Word = 32
	}
	f.entry = e.Entry
	f.program = programOf(e)
	left := 2 * uint64(len(f.image)) // bytes of notes: each may be in a segment and a section
	notes := func(off, n uint64) {
		if f.BuildID == "" && n <= left {
			left -= n
			f.BuildID = elfnote.BuildID(f.bytesAt(off, n), f.order)
		}
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			s := segment{addr: p.Vaddr, off: p.Off, size: p.Filesz, end: p.Vaddr + p.Memsz}
			f.loads = append(f.loads, s)
			if p.Flags&elf.PF_X != 0 {
				f.text, f.codeLoads = append(f.text, s), append(f.codeLoads, s)
			}
		}
		if p.Type == elf.PT_NOTE {
			notes(p.Off, p.Filesz)
		}
	}
	if len(f.loads) > maxSegments {
		return fmt.Errorf("malformed ELF: %d loaded segments, expected at most %d", len(f.loads), maxSegments)
	}
	f.textSections()
	f.loadedSpans, f.textSpans = newSpans(f.loads), newSpans(f.text)
	slices.SortStableFunc(f.text, func(a, b segment) int { return cmp.Compare(a.addr, b.addr) })
	for _, s := range e.Sections {
		if s.Type == elf.SHT_NOTE {
			notes(s.Offset, s.Size)
		}
	}
	f.textFunc = f.Executable
	return nil
}

// parseELF reads headers with debug/elf. It first checks that the section names fit the
// file's memory budget.
func (f *File) parseELF() (e *elf.File, err error) {
	if n := sectionNames(f.image); !f.budget.Alloc(n) {
		return nil, fmt.Errorf("the names of its sections have %d bytes", n)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a fault, for File.faulted
			panic(r)
		default:
			err = fmt.Errorf("debug/elf: %v", r)
		}
	}()
	return elf.NewFile(bytes.NewReader(f.image))
}

// programOf reports whether a file is a program, of which a process has one, and not a library.
func programOf(e *elf.File) bool {
	if e.Type != elf.ET_DYN {
		return true
	}
	defer func() { recover() }() // debug/elf, of a malformed file
	flags, _ := e.DynValue(elf.DT_FLAGS_1)
	name, _ := e.DynValue(elf.DT_SONAME)
	interp := slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	return len(name) == 0 && (interp || len(flags) > 0 && elf.DynFlag1(flags[0])&elf.DF_1_PIE != 0)
}

// sectionNames returns the memory that debug/elf needs for all section headers and names, in
// bytes. Many sections can have one long name.
func sectionNames(image []byte) (total int64) {
	if len(image) < 64 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(image[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	wide := elf.Class(image[elf.EI_CLASS]) == elf.ELFCLASS64
	table, size, number, names := uint64(order.Uint32(image[32:])), uint64(order.Uint16(image[46:])),
		uint64(order.Uint16(image[48:])), uint64(order.Uint16(image[50:]))
	if wide {
		table, size, number, names = order.Uint64(image[40:]), uint64(order.Uint16(image[58:])),
			uint64(order.Uint16(image[60:])), uint64(order.Uint16(image[62:]))
	}
	// field returns a field of a section header, by its offset in either class.
	field := func(section, narrow, at uint64) (v uint64, ok bool) {
		entry := uint64(40)
		if wide {
			entry = 64
		}
		off := table + section*size
		if table > uint64(len(image)) || section > uint64(len(image)) || off > uint64(len(image)) || uint64(len(image))-off < entry {
			return 0, false
		}
		if wide && at != 0 && at != 40 { // all but name and link have 8 bytes
			return order.Uint64(image[off+at:]), true
		} else if wide {
			return uint64(order.Uint32(image[off+at:])), true
		}
		return uint64(order.Uint32(image[off+narrow:])), true
	}
	if number == 0 { // too many for the header: section 0 has the number
		number, _ = field(0, 20, 32)
	}
	if names == uint64(elf.SHN_XINDEX) {
		names, _ = field(0, 24, 40)
	}
	start, ok := field(names, 16, 24)
	if !ok || start > uint64(len(image)) {
		return 0
	}
	for i := range number {
		name, ok := field(i, 0, 0)
		if !ok {
			break
		}
		if name < uint64(len(image))-start {
			s := image[start+name:]
			n := bytes.IndexByte(s[:min(len(s), 1<<20)], 0)
			if n < 0 {
				n = min(len(s), 1<<20)
			}
			total += int64(n) + 300 // the other fields of a section
		}
		if total > dwarf.FloorBytes+dwarf.BytesPerByte*int64(len(image)) {
			break
		}
	}
	return total
}

// textSections replaces executable segments by executable sections, if there are any,
// because a segment often holds more than code. In a debug file, the sections have no bytes.
func (f *File) textSections() {
	var list []segment
	kept := false
	for _, s := range f.sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		g := segment{addr: s.Addr, off: s.Offset, size: s.FileSize, end: s.Addr + s.Size}
		switch s.Type {
		case elf.SHT_PROGBITS:
			kept = true
		case elf.SHT_NOBITS:
			g.size = 0
		default:
			continue
		}
		list = append(list, g)
	}
	if len(list) > 0 && len(list) <= maxSegments {
		f.text, f.noCode = list, !kept
	}
}

// bytesAt returns a part of the file, nil if the file is shorter.
func (f *File) bytesAt(off, n uint64) []byte {
	if off > uint64(len(f.image)) || n > uint64(len(f.image))-off {
		return nil
	}
	return f.image[off : off+n : off+n]
}

// span is a range of addresses [low, high).
type span struct{ low, high uint64 }

// spans is a sorted list of spans that do not overlap.
type spans []span

// newSpans merges the ranges of segments.
func newSpans(list []segment) (out spans) {
	for _, s := range list {
		if s.addr < s.end {
			out = append(out, span{s.addr, s.end})
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	n := 0
	for _, s := range out {
		if n > 0 && s.low <= out[n-1].high {
			out[n-1].high = max(out[n-1].high, s.high)
			continue
		}
		out[n] = s
		n++
	}
	return out[:n]
}

// holds reports whether [low, high) lies in one of the spans.
func (s spans) holds(low, high uint64) bool {
	i, _ := slices.BinarySearchFunc(s, low, func(e span, a uint64) int {
		if e.high <= a {
			return -1
		}
		return 1
	})
	return i < len(s) && s[i].low <= low && high <= s[i].high
}
