package core

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Absent is writable memory of the program that the image lacks.
type Absent struct {
	Map
	Name string // of the section, or what it is
}

// Absent returns the writable memory of the program that the image lacks: maps of the process that the core file omits
// or that are cut, also of files that are mapped read-only, and writable sections of the program's files.
func (m *Image) Absent(from Roots) (list []Absent) {
	word := uint64(m.PointerSize())
	var known []span
	for i := range m.Segments() {
		if s := &m.Segments()[i]; !s.ELF {
			known = append(known, span{s.Addr, max(s.End(), s.End()-1)})
		}
	}
	known = normal(known)
	add := func(r Map, name string) {
		for _, s := range subtract([]span{{r.Start, r.End}}, known) {
			if s.end-s.start >= word {
				known = normal(append(known, s))
				r.Start, r.End = s.start, s.end
				list = append(list, Absent{r, name})
			}
		}
	}
	programs := m.programs()
	for _, r := range m.Maps {
		if !r.Write && (programs[r.File] || !ofData(r.File) || len(m.About) > 0) || r.Write && r.empty && r.holdsOnly(from.Data) {
			continue
		}
		name := "a mapping that the core file omits"
		if r.File != "" {
			name = "a mapping of " + r.File
		}
		add(r, name)
	}
	for _, s := range from.Sections {
		if m.MapAt(s.Start) == nil {
			add(s.Map, s.Name)
		}
	}
	for i := range m.Threads {
		if sp := m.Threads[i].SP; sp != 0 && len(m.Maps) == 0 && m.Find(sp) == nil {
			add(Map{Start: sp, End: addSize(sp, unknownStack)}, "a stack")
		}
	}
	if top := m.firstStack(); top != 0 && len(m.Threads) == 0 {
		add(Map{Start: top - unknownStack, End: top}, "the stack")
	}
	slices.SortFunc(list, func(a, b Absent) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// programs returns the mapped files that are ELF files.
func (m *Image) programs() map[string]bool {
	list := map[string]bool{}
	for _, r := range m.Maps {
		head, _ := m.Bytes(r.Start, 4)
		list[r.File] = list[r.File] || r.Exec || string(head) == elf.ELFMAG
	}
	return list
}

// ofData reports whether a file may be one that programs write, by its directory: what is mapped read-only may be written
// by write(2), too.
func ofData(path string) bool {
	return path != "" && !slices.ContainsFunc([]string{"/usr/", "/lib", "/etc/", "/var/cache/", "/nix/", "/snap/", "/proc/", "/sys/"},
		func(dir string) bool { return strings.HasPrefix(path, dir) })
}

// holdsOnly reports whether pages of memory are those of data of the program's files. If a core file has none of their bytes, the
// program has not written there: what Linux omits for other reasons was mapped by the program.
func (r *Map) holdsOnly(data []Map) bool {
	const page = 4096
	return slices.ContainsFunc(data, func(d Map) bool { return r.Start >= d.Start&^(page-1) && r.End <= (d.End+page-1)&^(page-1) })
}

// unknownStack is the number of bytes of a stack of unknown size.
const unknownStack = 4 << 10

// firstStack returns the end of the stack with which a Cortex-M starts, from its vector table, which begins the program: the
// end, and the address of Thumb code. It returns 0 if there is none, or if the image has the last word of the stack.
func (m *Image) firstStack() uint64 {
	if m.Machine != elf.EM_ARM || len(m.Maps) > 0 {
		return 0
	}
	for i := range m.Segments() {
		s := &m.Segments()[i]
		if !s.ELF {
			continue
		}
		top, _ := m.Pointer(s.Addr)
		start, _ := m.Pointer(s.Addr + 4)
		code := m.Find(start - 1)
		if top%8 != 0 || top < unknownStack || start&1 == 0 || code == nil || !code.Exec || m.Find(top-4) != nil {
			return 0
		}
		return top
	}
	return 0
}

// WritableSections returns the writable sections of an ELF file with their names, or the segments if it has no
// sections. It omits tables that startup code only reads, which firmware has in flash.
func (m *Image) WritableSections(path string, bias uint64) (list []Absent, err error) {
	defer func() {
		if r := recover(); r != nil { // a panic of debug/elf
			list, err = nil, fmt.Errorf("%s: malformed sections: %v", path, r)
		}
	}()
	ranges, err := m.WritableRanges(path, bias)
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(path)
	if err != nil || len(f.Sections) == 0 {
		for _, r := range ranges {
			list = append(list, Absent{r, "a segment of " + path})
		}
		return list, nil
	}
	defer f.Close()
	for _, s := range f.Sections {
		start := m.wrap(s.Addr + bias)
		written := s.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE|elf.SHF_TLS) == elf.SHF_ALLOC|elf.SHF_WRITE &&
			(s.Type == elf.SHT_PROGBITS || s.Type == elf.SHT_NOBITS) && !slices.ContainsFunc(readOnly, func(p string) bool { return strings.HasPrefix(s.Name, p) })
		if written && slices.ContainsFunc(ranges, func(r Map) bool { return start >= r.Start && start < r.End }) {
			list = append(list, Absent{Map{Start: start, End: start + s.Size, Write: true, File: path}, s.Name})
		}
	}
	return list, nil
}

// readOnly are the beginnings of the names of sections that are writable only for the linker.
var readOnly = []string{".eh_frame", ".gcc_except_table", ".ctors", ".dtors", ".jcr", ".got", ".tm_clone_table", ".data.rel.ro"}
