//go:build linux

package record

import (
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// module is a loaded module, as reported by a process.
type module struct {
	base     uint64 // address in memory minus address in the file
	name     string // "[vdso]" if the process reports none
	buildID  string // hexadecimal, "" if there is none
	segments []segment
}

// segment is the contents of an mmap line.
type segment struct {
	start, size uint64
	flags       string // of r, w and x
	relative    uint64 // the file's own address of start
}

func (s *segment) executable() bool { return strings.Contains(s.flags, "x") }

// place identifies an executable segment: readers of a recording treat segments with equal
// places as the same segment.
type place struct {
	name, buildID string
	segment
}

// modules is the memory map of a process. The code is the executable segments end to end, in
// the order in which they are first written. A segment keeps its offset until the process
// ends, even if its module is unloaded, so that call paths stay valid.
type modules struct {
	listed  []module // in the order of the recording
	offsets map[place]uint64
	next    uint64 // the offset of the next segment
	code    []code // mapped now, by start
}

type code struct{ start, end, offset uint64 }

func (m *modules) reset() { *m = modules{offsets: map[place]uint64{}} }

func (m *modules) clone() modules {
	return modules{slices.Clone(m.listed), maps.Clone(m.offsets), m.next, slices.Clone(m.code)}
}

// unload removes all code mappings. The process then reports the remaining modules again.
func (m *modules) unload() { m.code = m.code[:0] }

// load maps the module of a record, and returns its path.
func (p *process) load(rec *record) (path string, err error) {
	n := rec.segments()
	id, rest := text(rec.words[3+2*n:], rec.idBytes())
	name, _ := text(rest, rec.pathBytes())
	if name == "" {
		name = "[vdso]"
	}
	mod := module{base: rec.words[1], name: absolute(p.host, name), buildID: fmt.Sprintf("%x", id)}
	for i := range n {
		relative, w := rec.words[3+2*i], rec.words[4+2*i]
		s := segment{(mod.base + relative) & (1<<p.word - 1), w >> 3, flagsOf(elf.ProgFlag(w & 7)), relative}
		if s.size == 0 || s.start+s.size < s.start {
			return "", fmt.Errorf("a segment of %#x bytes at %#x", s.size, s.start)
		}
		mod.segments = append(mod.segments, s)
	}
	first := len(p.modules.listed)
	p.modules.load(mod)
	if p.begun && first < len(p.modules.listed) {
		p.text = fmt.Appendf(p.text, "~h#load t=%d\n", p.time(rec.stamp))
		p.text = p.modules.append(p.text, first)
	}
	return mod.name, nil
}

// load maps a module. It lists the module if its code is new.
func (m *modules) load(mod module) {
	listed := false
	for _, s := range mod.segments {
		if !s.executable() {
			continue
		}
		p := place{mod.name, mod.buildID, s}
		offset, known := m.offsets[p]
		if !known {
			offset = m.next
			m.next += s.size
			m.offsets[p] = offset
		}
		if !known && !listed {
			m.listed = append(m.listed, mod)
			listed = true
		}
		end := s.start + s.size
		m.code = slices.DeleteFunc(m.code, func(c code) bool { return c.start < end && s.start < c.end })
		m.code = append(m.code, code{s.start, end, offset})
	}
	slices.SortFunc(m.code, func(a, b code) int { return cmp.Compare(a.start, b.start) })
}

// append appends the lines of the modules listed[from:].
func (m *modules) append(dst []byte, from int) []byte {
	for id, mod := range m.listed[from:] {
		id += from
		dst = fmt.Appendf(dst, "{{{module:%d:%s:elf:%s}}}\n", id, escapeName(mod.name), mod.buildID)
		for _, s := range mod.segments {
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

func flagsOf(f elf.ProgFlag) string {
	s := ""
	for i, flag := range []elf.ProgFlag{elf.PF_R, elf.PF_W, elf.PF_X} {
		if f&flag != 0 {
			s += "rwx"[i : i+1]
		}
	}
	return s
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
