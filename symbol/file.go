package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// File is an ELF file and what its debug information knows of its addresses,
// which are always the file's own: those of its program headers.
//
// A File is for one goroutine at a time.
type File struct {
	Path    string
	BuildID string // hexadecimal, "" if there is none
	Machine elf.Machine
	Word    int  // bits
	PIE     bool // may be loaded anywhere: ET_DYN

	order    order
	object   bool      // not linked: ET_REL, as are the files that dwz makes
	text     []segment // executable
	loads    []segment // all that is loaded
	sections []*elf.Section
	image    []byte // the whole file

	debugDirs []string
	debugPath string // separate debug file in use, "" if none
	dwarf     *dwarf // nil if there is none
	why       string // why there are no lines, or no function names
	close     []func()

	symtab func() []function
	calls  func() *callSet
}

// segment is a part of the file that is loaded.
type segment struct {
	addr, off, size uint64 // size in the file
	end             uint64 // addr plus the size in memory
}

func (s segment) holds(addr uint64) bool { return s.addr <= addr && addr < s.end }

// DebugDirs is where separate debug files are looked for unless told otherwise.
func DebugDirs() []string { return []string{"/usr/lib/debug"} }

// Open reads the ELF file at path, and the file with its debug information if
// that is a separate one: by build-id or .gnu_debuglink, beside it, in .debug/
// there and under debugDirs.
func Open(path string, debugDirs []string) (f *File, err error) {
	f, err = openELF(path)
	if err != nil {
		return nil, err
	}
	if f.object {
		f.Close()
		return nil, fmt.Errorf("%s: a relocatable object, expected a linked program or library", path)
	}
	f.debugDirs = debugDirs
	f.symtab = sync.OnceValue(f.readSymbols)
	f.calls = sync.OnceValue(f.findCalls)
	if err := f.openDebug(); err != nil {
		f.why = err.Error()
	}
	return f, nil
}

// Close gives back the file's memory. Frames it returned remain valid.
func (f *File) Close() {
	for _, c := range f.close {
		c()
	}
	f.close, f.dwarf, f.image = nil, nil, nil
}

// Why says why lines or even function names are missing, "" if they are not.
func (f *File) Why() string { return f.why }

// DebugPath is where the debug information came from.
func (f *File) DebugPath() string {
	if f.debugPath != "" {
		return f.debugPath
	}
	return f.Path
}

// guard turns a panic in the libraries below, and a fault in a file that shrank
// while it is mapped, into an error.
func guard(path string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: malformed: %v", path, r)
	}
}

// openELF maps the file and reads its headers.
func openELF(path string) (f *File, err error) {
	defer guard(path, &err)
	image, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if f == nil {
			unmap()
		}
	}()
	if !bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		return nil, fmt.Errorf("%s: not an ELF file: starts with %q, expected %q",
			path, image[:min(4, len(image))], elf.ELFMAG)
	}
	e, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("%s: malformed ELF: %w", path, err)
	}
	g := &File{Path: path, Machine: e.Machine, Word: 64, PIE: e.Type == elf.ET_DYN, object: e.Type == elf.ET_REL,
		order: order(e.ByteOrder == binary.ByteOrder(binary.BigEndian)), sections: e.Sections,
		image: image, close: []func(){unmap}}
	if e.Class == elf.ELFCLASS32 {
		g.Word = 32
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			s := segment{addr: p.Vaddr, off: p.Off, size: p.Filesz, end: p.Vaddr + p.Memsz}
			g.loads = append(g.loads, s)
			if p.Flags&elf.PF_X != 0 {
				g.text = append(g.text, s)
			}
		}
		if p.Type == elf.PT_NOTE && g.BuildID == "" {
			g.BuildID = g.buildID(g.bytesAt(p.Off, p.Filesz))
		}
	}
	g.textSections()
	for _, s := range e.Sections {
		if s.Type == elf.SHT_NOTE && g.BuildID == "" {
			g.BuildID = g.buildID(g.bytesAt(s.Offset, s.Size))
		}
	}
	return g, nil
}

// textSections narrows the executable parts to sections, where there are any: a
// segment often holds more than code.
func (f *File) textSections() {
	var list []segment
	for _, s := range f.sections {
		if s.Type == elf.SHT_PROGBITS && s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 {
			list = append(list, segment{addr: s.Addr, off: s.Offset, size: s.FileSize, end: s.Addr + s.Size})
		}
	}
	if len(list) > 0 {
		f.text = list
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
			b, err := inflateOld(f.bytesAt(s.Offset, s.FileSize))
			if err != nil {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
			return b, nil
		}
	}
	return nil, nil
}

// inflateOld reads a .zdebug section: "ZLIB", its size as 8 bytes, a zlib stream.
func inflateOld(b []byte) ([]byte, error) {
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

// SectionAddr is the address of a section by its name.
func (f *File) SectionAddr(name string) (uint64, error) {
	for _, s := range f.sections {
		if s.Name == name {
			return s.Addr, nil
		}
	}
	return 0, fmt.Errorf("%s: no section %s", f.Path, name)
}

// Text says whether addr lies in an executable part of the file.
func (f *File) Text(addr uint64) bool { return inSegments(f.text, addr) }

// Loaded says whether addr lies in any loaded part of the file.
func (f *File) Loaded(addr uint64) bool { return inSegments(f.loads, addr) }

func inSegments(list []segment, addr uint64) bool {
	return slices.ContainsFunc(list, func(s segment) bool { return s.holds(addr) })
}

// code returns the file's bytes up to address end, at most n of them, as far as
// they are executable.
func (f *File) code(end uint64, n int) []byte {
	for _, s := range f.text {
		if s.addr < end && end <= s.addr+s.size {
			back := min(end-s.addr, uint64(n))
			return f.bytesAt(s.off+(end-s.addr)-back, back)
		}
	}
	return nil
}

// AddrOfOffset is the address at which the byte at a file offset is loaded.
func (f *File) AddrOfOffset(off uint64) (uint64, bool) {
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

// Span is the lowest and the end of the highest address that is loaded.
func (f *File) Span() (low, high uint64) {
	low = ^uint64(0)
	for _, s := range f.loads {
		low, high = min(low, s.addr), max(high, s.end)
	}
	return min(low, high), high
}

// openDebug finds debug information, in the file or beside it.
func (f *File) openDebug() error {
	d, err := readDwarf(f)
	if d != nil || err != nil {
		f.dwarf = d
		return err
	}
	tried := 0
	for _, c := range f.debugCandidates() {
		if _, err := os.Stat(c.path); err != nil {
			continue
		}
		g, err := openELF(c.path)
		if err == nil && c.fits(f, g) {
			if d, err = readDwarf(g); d != nil {
				f.dwarf, f.debugPath = d, c.path
				f.close = append(f.close, g.Close)
				f.symtab = sync.OnceValue(g.readSymbols)
				return nil
			}
		}
		if g != nil {
			g.Close()
		}
		if err != nil {
			return err
		}
		tried++
	}
	if tried > 0 {
		return errors.New("its debug file is of another build")
	}
	if len(f.symtab()) == 0 {
		return errors.New("neither debug information nor symbols in it")
	}
	return errors.New("no debug information in it, so functions without lines")
}

// debugCandidate is a place where a separate debug file may be.
type debugCandidate struct {
	path string
	crc  uint32
	link bool // by .gnu_debuglink: the sum must fit
}

func (c debugCandidate) fits(f, g *File) bool {
	if f.BuildID != "" && g.BuildID != "" {
		return f.BuildID == g.BuildID
	}
	return !c.link || crc32.ChecksumIEEE(g.image) == c.crc
}

func (f *File) debugCandidates() []debugCandidate {
	var list []debugCandidate
	if len(f.BuildID) > 2 {
		for _, d := range f.debugDirs {
			list = append(list, debugCandidate{path: buildIDPath(d, f.BuildID)})
		}
	}
	link, err := f.section(".gnu_debuglink")
	name := stringAt(link, 0)
	sum := (len(name) + 4) &^ 3
	if err != nil || len(name) == 0 || len(link) < sum+4 {
		return list
	}
	c := f.order.at(link, uint64(sum))
	base, dir := filepath.Base(string(name)), filepath.Dir(f.Path)
	places := []string{filepath.Join(dir, base), filepath.Join(dir, ".debug", base)}
	if abs, err := filepath.Abs(dir); err == nil {
		for _, d := range f.debugDirs {
			places = append(places, filepath.Join(d, abs, base))
		}
	}
	crc := c.u32()
	for _, p := range places {
		list = append(list, debugCandidate{path: p, crc: crc, link: true})
	}
	return list
}

// buildIDPath is where a directory of debug files keeps the one of a build-id.
func buildIDPath(dir, id string) string {
	return filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")
}
