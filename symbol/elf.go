package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"

	"github.com/lwsbt/lwsbt/internal/elffile"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol/arch"
	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
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
	e, err := elffile.Open(bytes.NewReader(f.image), f.budget.Left())
	if err != nil {
		return err
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
			f.BuildID = elffile.BuildID(f.bytesAt(off, n), f.order)
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
