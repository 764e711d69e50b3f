//go:build linux

package recorder

import (
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/elfnote"
)

// module is a loaded module, as reported by a process.
type module struct {
	base       uint64 // address in memory minus address in the file
	start, end uint64
	name       string // "[vdso]" if the process reports none
	buildID    string // hexadecimal, "" if there is none
}

// segment is the contents of an mmap line.
type segment struct {
	module
	start, size uint64
	flags       string // of r, w and x
	relative    uint64 // the file's own address of start
}

func (s *segment) executable() bool { return strings.Contains(s.flags, "x") }

// place identifies an executable segment: readers of a recording treat segments with equal
// places as the same segment.
type place struct {
	name, buildID         string
	start, size, relative uint64
}

// modules is the memory map of a process. The code is the executable segments end to end, in
// the order in which they are first written. A segment keeps its offset until the process
// ends, even if its module is unloaded, so that call paths stay valid.
type modules struct {
	listed   []module // in the order of the recording
	segments map[module][]segment
	offsets  map[place]uint64
	next     uint64 // the offset of the next segment
	code     []code // mapped now, by start
}

type code struct{ start, end, offset uint64 }

func (m *modules) reset() {
	*m = modules{segments: map[module][]segment{}, offsets: map[place]uint64{}}
}

func (m *modules) clone() modules {
	return modules{slices.Clone(m.listed), maps.Clone(m.segments), maps.Clone(m.offsets), m.next, slices.Clone(m.code)}
}

// unload removes all code mappings. The process then reports the remaining modules again.
func (m *modules) unload() { m.code = m.code[:0] }

// load maps a module.
func (m *modules) load(mod module, pid int) {
	segments, known := m.segments[mod]
	if !known {
		segments = mod.read(pid)
		m.segments[mod] = segments
		m.listed = append(m.listed, mod)
	}
	m.code = slices.DeleteFunc(m.code, func(c code) bool { return c.start < mod.end && mod.start < c.end })
	for _, s := range segments {
		if !s.executable() {
			continue
		}
		p := place{s.name, s.buildID, s.start, s.size, s.relative}
		offset, known := m.offsets[p]
		if !known {
			offset = m.next
			m.next += s.size
			m.offsets[p] = offset
		}
		m.code = append(m.code, code{s.start, s.start + s.size, offset})
	}
	slices.SortFunc(m.code, func(a, b code) int { return cmp.Compare(a.start, b.start) })
}

// append appends the lines of the modules listed[from:].
func (m *modules) append(dst []byte, from int) []byte {
	for id, mod := range m.listed[from:] {
		id += from
		dst = fmt.Appendf(dst, "{{{module:%d:%s:elf:%s}}}\n", id, escapeName(mod.name), mod.buildID)
		for _, s := range m.segments[mod] {
			dst = fmt.Appendf(dst, "{{{mmap:%#x:%#x:load:%d:%s:%#x}}}\n", s.start, s.size, id, s.flags, s.relative)
		}
	}
	return dst
}

// step returns the frame of a return address.
func (m *modules) step(addr uint64) step {
	lo, hi := 0, len(m.code)
	for lo < hi {
		if mid := (lo + hi) / 2; m.code[mid].end <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(m.code) && addr >= m.code[lo].start {
		if x := m.code[lo].offset + addr - m.code[lo].start; x < callpath.MaxOffset {
			return step{x, inCode}
		}
	}
	return step{addr, outside}
}

// read returns the segments of a module from its file. Without the file, the whole module is
// one segment.
func (mod module) read(pid int) []segment {
	var found []segment
	if f, err := openFile(pid, mod.name); err == nil {
		found = mod.readFrom(f)
		f.Close()
	}
	if !slices.ContainsFunc(found, func(s segment) bool { return s.executable() }) {
		return []segment{{mod, mod.start, mod.end - mod.start, "rx", mod.start - mod.base}}
	}
	return found
}

// absolute returns the absolute path of a file that a process opened as name, or name if the
// path cannot be found.
func absolute(pid int, name string) string {
	if strings.HasPrefix(name, "/") || !strings.Contains(name, "/") {
		return name
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		if dir, err = os.Getwd(); err != nil {
			return name
		}
	}
	return filepath.Join(dir, name)
}

// openFile opens the file at a path in the process's file system, or else in the recorder's.
func openFile(pid int, name string) (*os.File, error) {
	if !strings.HasPrefix(name, "/") {
		return nil, os.ErrNotExist
	}
	for _, path := range []string{fmt.Sprintf("/proc/%d/root%s", pid, name), name} {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return f, nil
		}
		f.Close()
	}
	return nil, os.ErrNotExist
}

// readFrom returns the segments in the file of a module. It returns nil if r is not an ELF
// file or not the file that the process has loaded.
func (mod module) readFrom(r io.ReaderAt) []segment {
	f, err := elf.NewFile(withoutSections{r})
	if err != nil {
		return nil
	}
	var found []segment
	id := ""
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_NOTE:
			notes := make([]byte, min(p.Filesz, 1<<16))
			if n, _ := p.ReadAt(notes, 0); id == "" {
				id = elfnote.BuildID(notes[:n], f.ByteOrder)
			}
		case elf.PT_LOAD:
			start := mod.base + p.Vaddr
			if f.Class == elf.ELFCLASS32 {
				start &= 1<<32 - 1
			}
			if p.Memsz == 0 || start < mod.start&^0xffff || p.Memsz > mod.end-start || start >= mod.end {
				return nil // another file by now
			}
			found = append(found, segment{mod, start, p.Memsz, flagsOf(p.Flags), p.Vaddr})
		}
	}
	if id != mod.buildID {
		return nil
	}
	return found
}

func flagsOf(f elf.ProgFlag) string {
	s := ""
	for i, flag := range []elf.ProgFlag{elf.PF_R, elf.PF_W, elf.PF_X} {
		if f&flag != 0 {
			s += "rwx"[i : i+1]
		}
	}
	return s
}

// withoutSections hides an ELF file's section headers from debug/elf, which would read
// and check them: only program headers are needed.
type withoutSections struct{ r io.ReaderAt }

func (h withoutSections) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.r.ReadAt(p, off)
	var class [1]byte
	if _, e := h.r.ReadAt(class[:], elf.EI_CLASS); e != nil || off >= 64 {
		return n, err
	}
	fields := [][2]int64{{0x28, 0x30}, {0x3c, 0x40}} // e_shoff; e_shnum, e_shstrndx
	if elf.Class(class[0]) == elf.ELFCLASS32 {
		fields = [][2]int64{{0x20, 0x24}, {0x30, 0x34}}
	}
	for _, field := range fields {
		for i := max(field[0], off); i < min(field[1], off+int64(n)); i++ {
			p[i-off] = 0
		}
	}
	return n, err
}

// escapeName returns a path for a module line.
func escapeName(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c < ' ' || c == 0x7f || strings.IndexByte("{}:%~", c) >= 0 {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
