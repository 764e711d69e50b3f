package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol/arch"
)

// notELF is the error of a file that is none; it holds the file's first bytes,
// which are not shown unless the user named the file.
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
	f = &File{Path: printable.Text(path), tree: t, name: name, info: info, image: image, close: []func(){release}}
	defer func() {
		if err != nil {
			release()
		}
	}()
	defer f.faulted(debug.SetPanicOnFault(true), &err)
	if err := f.readHeaders(); err != nil {
		release()
		return fail(err)
	}
	return f, nil
}

// readHeaders reads the ELF header, segments and sections.
func (f *File) readHeaders() error {
	if !bytes.HasPrefix(f.image, []byte(elf.ELFMAG)) {
		return notELF(bytes.Clone(f.image[:min(4, len(f.image))]))
	}
	e, err := parseELF(f.image)
	if err != nil {
		return fmt.Errorf("malformed ELF: %w", err)
	}
	f.Machine, f.Word, f.PIE, f.object = e.Machine, 64, e.Type == elf.ET_DYN, e.Type == elf.ET_REL
	f.arch, f.order, f.sections = arch.Of(e.Machine), order(e.Data == elf.ELFDATA2MSB), e.Sections
	if e.Class == elf.ELFCLASS32 {
		f.Word = 32
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			s := segment{addr: p.Vaddr, off: p.Off, size: p.Filesz, end: p.Vaddr + p.Memsz}
			f.loads = append(f.loads, s)
			if p.Flags&elf.PF_X != 0 {
				f.text = append(f.text, s)
			}
		}
		if p.Type == elf.PT_NOTE && f.BuildID == "" {
			f.BuildID = f.buildID(f.bytesAt(p.Off, p.Filesz))
		}
	}
	f.textSections()
	for _, s := range e.Sections {
		if s.Type == elf.SHT_NOTE && f.BuildID == "" {
			f.BuildID = f.buildID(f.bytesAt(s.Offset, s.Size))
		}
	}
	f.textFunc = f.Text
	f.symtab = sync.OnceValue(f.readSymbols)
	f.calls = sync.OnceValue(f.findCalls)
	return nil
}

// parseELF reads headers by the standard library, which may panic on bad ones.
func parseELF(image []byte) (e *elf.File, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			panic(r)
		default:
			err = fmt.Errorf("debug/elf: %v", r)
		}
	}()
	return elf.NewFile(bytes.NewReader(image))
}

// textSections narrows the executable parts to sections, where there are any: a
// segment often holds more than code. A file of debug information alone has the
// sections without their bytes.
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
	if len(list) > 0 {
		f.text, f.noCode = list, !kept
	}
}

// bytesAt is a part of the file, nil if the file is shorter.
func (f *File) bytesAt(off, n uint64) []byte {
	if off > uint64(len(f.image)) || n > uint64(len(f.image))-off {
		return nil
	}
	return f.image[off : off+n : off+n]
}

// buildID finds the GNU build-id among notes.
func (f *File) buildID(notes []byte) string {
	const gnuBuildID = 3
	c := f.order.at(notes, 0)
	for len(c.b)-c.off >= 12 {
		nameSize, descSize, kind := c.u32(), c.u32(), c.u32()
		name := c.take(int(nameSize))
		c.skip(-uint64(nameSize) & 3)
		desc := c.take(int(descSize))
		c.skip(-uint64(descSize) & 3)
		if len(desc) == 0 {
			continue
		}
		if kind == gnuBuildID && string(name) == "GNU\x00" {
			return hex.EncodeToString(desc)
		}
	}
	return ""
}

// section returns a section's bytes, inflated, nil if there is none or it holds
// none, as in a file whose debug information was split off.
func (f *File) section(name string) ([]byte, error) {
	for _, s := range f.sections {
		if s.Type == elf.SHT_NOBITS {
			continue
		}
		switch {
		case s.Name == name && s.Flags&elf.SHF_COMPRESSED == 0:
			b := f.bytesAt(s.Offset, s.FileSize)
			if b == nil && s.FileSize != 0 {
				return nil, fmt.Errorf("section %s: ends at %d, the file has %d bytes", name,
					s.Offset+s.FileSize, len(f.image))
			}
			return b, nil
		case s.Name == name:
			b, err := s.Data()
			if err != nil {
				return nil, fmt.Errorf("section %s: %w", name, err)
			}
			return b, nil
		case strings.HasPrefix(name, ".debug_") && s.Name == ".z"+name[1:]:
			b, err := inflateZdebug(f.bytesAt(s.Offset, s.FileSize))
			if err != nil {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
			return b, nil
		}
	}
	return nil, nil
}

// inflateZdebug reads a .zdebug section: "ZLIB", its size as 8 bytes, a zlib stream.
func inflateZdebug(b []byte) ([]byte, error) {
	if len(b) < 12 || string(b[:4]) != "ZLIB" {
		return nil, errors.New(`expected "ZLIB" and a size`)
	}
	r, err := zlib.NewReader(bytes.NewReader(b[12:]))
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint64(b[4:])
	out, err := io.ReadAll(io.LimitReader(r, int64(min(size, 1<<40))))
	if err == nil && uint64(len(out)) != size {
		err = fmt.Errorf("%d bytes, expected %d", len(out), size)
	}
	return out, err
}
