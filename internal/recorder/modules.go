//go:build linux

package recorder

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// unitBits is the width of a code offset in call paths. Code beyond is written as its
// address.
const unitBits = 27

// modules is the map of a process, as the recording has it.
type modules struct {
	text     string // of /proc/PID/maps, as read last
	files    map[fileKey]module
	segments []segment   // mapped now, by start
	code     []codeRange // the executable ones of them, by start

	// Executable segments are laid end to end in the order in which they are first written,
	// and keep their offsets until the next boot, also when their module is gone.
	offsets map[segmentKey]uint64
	next    uint64 // the offset of the next
}

type fileKey struct {
	device string
	inode  uint64
	path   string
}

// module is a mapped file. Its image is nil if it is not an ELF file that can be read.
type module struct {
	id    int
	image *image
}

// segment is what one mmap line says.
type segment struct {
	mapping
	module   module
	relative uint64
}

// segmentKey is by what a reader takes a segment for one that it was told before.
type segmentKey struct {
	name, buildID         string
	start, size, relative uint64
}

func (s *segment) key() segmentKey {
	return segmentKey{s.path, s.module.image.buildID, s.start, s.end - s.start, s.relative}
}

type codeRange struct{ start, end, offset uint64 }

// offset returns the offset of an address in the code of the boot. ok is false if the
// address is in no module, or too far.
func (m *modules) offset(addr uint64) (x uint64, ok bool) {
	lo, hi := 0, len(m.code)
	for lo < hi {
		if mid := (lo + hi) / 2; m.code[mid].end <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(m.code) || addr < m.code[lo].start {
		return 0, false
	}
	x = m.code[lo].offset + addr - m.code[lo].start
	return x, x < 1<<unitBits
}

// readMaps returns the text of a process's map, "" if the process is gone.
func readMaps(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return ""
	}
	return string(text)
}

// update takes a new map of a process. It appends the lines that tell the change to dst:
// a ~h#load with the modules that are new, or a ~h#map with all if some are gone. changed
// reports whether an address may now mean something else.
func (m *modules) update(dst []byte, pid int, text string, micros uint64) (_ []byte, changed bool) {
	if text == "" || text == m.text {
		return dst, false
	}
	first := m.text == ""
	m.text = text
	now := m.read(pid, parseMaps(text))
	if slices.Equal(now, m.segments) {
		return dst, false
	}
	before := map[segment]bool{}
	for _, s := range m.segments {
		before[s] = true
	}
	kept := 0
	for _, s := range now {
		if before[s] {
			kept++
		}
	}
	if all := first || kept < len(before); all {
		dst = fmt.Appendf(dst, "~h#map t=%d\n{{{reset}}}\n", micros)
		clear(before)
	} else {
		dst = fmt.Appendf(dst, "~h#load t=%d\n", micros)
	}
	m.segments = now
	m.code = m.code[:0]
	told := map[int]bool{}
	for s := range before {
		told[s.module.id] = true
	}
	for _, s := range now {
		if !before[s] {
			dst = s.append(dst, told)
		}
		if !s.executable() {
			continue
		}
		offset, known := m.offsets[s.key()]
		if !known {
			offset = m.next
			m.next += s.end - s.start
			m.offsets[s.key()] = offset
		}
		m.code = append(m.code, codeRange{s.start, s.end, offset})
	}
	return dst, true
}

// read returns the segments of modules among mappings, by start.
func (m *modules) read(pid int, list []mapping) []segment {
	if m.files == nil {
		m.files, m.offsets = map[fileKey]module{}, map[segmentKey]uint64{}
	}
	code := map[fileKey]bool{} // files of which something is executable
	for _, p := range list {
		if p.executable() && (strings.HasPrefix(p.path, "/") || p.path == "[vdso]") {
			code[p.key()] = true
		}
	}
	var found []segment
	for _, p := range list {
		if !code[p.key()] {
			continue
		}
		f := m.module(pid, p)
		if f.image == nil {
			continue
		}
		if relative, ok := f.image.relative(p); ok {
			found = append(found, segment{p, f, relative})
		}
	}
	slices.SortFunc(found, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	return found
}

func (p *mapping) key() fileKey { return fileKey{p.device, p.inode, p.path} }

// module returns the file of a mapping. A file that could not be read is tried once.
func (m *modules) module(pid int, p mapping) module {
	f, ok := m.files[p.key()]
	if ok {
		return f
	}
	f.id = len(m.files)
	if p.path == "[vdso]" {
		f.image, _ = readVDSO(pid, p)
	} else if file, err := openMapped(pid, p); err == nil {
		f.image, _ = readImage(file)
		file.Close()
	}
	m.files[p.key()] = f
	return f
}

// append appends the line of a segment, and before it that of its module unless told.
func (s *segment) append(dst []byte, told map[int]bool) []byte {
	if !told[s.module.id] {
		told[s.module.id] = true
		dst = fmt.Appendf(dst, "{{{module:%d:%s:elf:%s}}}\n", s.module.id, escapeName(s.path), s.module.image.buildID)
	}
	return fmt.Appendf(dst, "{{{mmap:%#x:%#x:load:%d:%s:%#x}}}\n", s.start, s.end-s.start, s.module.id, s.flags, s.relative)
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
