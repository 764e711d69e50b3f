package core

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"sort"
)

// AddFile adds a file that contains its own addresses: a core file of Linux, gdb or
// qemu's dump-guest-memory, a crash dump that package crash reads, Intel HEX or Motorola
// S-records. The file may be compressed with gzip, zstd or xz.
func (m *Image) AddFile(path string) error {
	s, err := openSource(path, m)
	if err != nil {
		return err
	}
	return m.addSource(s)
}

func (m *Image) addSource(s *source) error {
	path := s.name
	switch b := bytes.TrimLeft(s.data[:min(len(s.data), 256)], " \t\r\n"); {
	case bytes.HasPrefix(b, []byte(elf.ELFMAG)):
		return m.addCore(s)
	case len(b) > 0 && b[0] == ':':
		return m.addRecords(s, &intelHex)
	case len(b) > 1 && b[0] == 'S' && b[1] >= '0' && b[1] <= '9':
		return m.addRecords(s, &sRecords)
	case bytes.HasPrefix(b, []byte("KDUMP   ")), bytes.HasPrefix(b, []byte("makedumpfile")):
		return fmt.Errorf("%s: a kdump file, expected ELF: dump-guest-memory without -z, -l, -s", path)
	}
	return m.addDump(s)
}

// AddRAM adds raw memory at an address, decompressed if it is compressed.
func (m *Image) AddRAM(addr uint64, path string) error {
	s, err := openSource(path, m)
	if err != nil {
		return err
	}
	m.add(Segment{Addr: addr, Data: s.data, Write: true, src: s})
	return nil
}

func (m *Image) addCore(s *source) error {
	h, err := readHeader(s.data, s.name, &m.notes)
	if err != nil {
		return err
	}
	if h.kind != elf.ET_CORE {
		return fmt.Errorf("%s: ELF of type %v, expected a core file; executables are given with -e", s.name, h.kind)
	}
	if err := m.agree(s.name, h); err != nil {
		return err
	}
	left, dropped := len(s.data), 0 // bytes of notes; no two segments should share bytes
	for _, p := range h.progs {
		if p.kind != elf.PT_NOTE {
			continue
		}
		b := part(s.data, p.off, p.filesz)
		if uint64(len(b)) < p.filesz {
			m.notes.add("%s: cut: %d of %d bytes of notes are there", s.name, len(b), p.filesz)
		}
		if len(b) > left {
			dropped++
			continue
		}
		left -= len(b)
		m.readNotes(s, b)
	}
	if dropped > 0 {
		m.notes.add("%s: notes share bytes of the file: %s left out", s.name, segments(dropped))
	}
	m.Guest = m.Guest || physical(h)
	dropShared(h, s, &m.notes)
	loads, have, want := 0, uint64(0), uint64(0)
	for _, p := range h.progs {
		if p.kind != elf.PT_LOAD {
			continue
		}
		loads++
		addr := p.vaddr
		if m.Guest && addr == 0 {
			addr = p.paddr
		}
		data := part(s.data, p.off, min(p.filesz, p.memsz))
		have, want = have+uint64(len(data)), want+min(p.filesz, p.memsz)
		if want < p.filesz { // impossible sizes: the sum overflowed
			want = ^uint64(0)
		}
		write, exec := p.flags&elf.PF_W != 0, p.flags&elf.PF_X != 0
		if m.Guest {
			write, exec = true, false // the headers of a guest do not give permissions
		}
		m.add(Segment{Addr: addr, Data: data, Write: write, Exec: exec, src: s, off: int64(p.off & (1<<62 - 1))})
		m.addMap(Map{Start: addr, End: addr + p.memsz, Write: write, Exec: exec, empty: p.filesz == 0})
	}
	if loads == 0 && h.cut {
		return fmt.Errorf("%s: cut: the file ends in its program headers, after %d bytes", s.name, len(s.data))
	}
	if loads == 0 {
		return fmt.Errorf("%s: a core file without memory (no PT_LOAD)", s.name)
	}
	if have < want {
		m.notes.add("%s: cut: %d of %d bytes of memory are there", s.name, have, want)
	}
	m.joinMaps()
	return nil
}

func segments(n int) string {
	if n == 1 {
		return "1 segment is"
	}
	return fmt.Sprintf("%d segments are", n)
}

// maxShared and sharedPerByte limit the number of bytes that segments of a core file share with
// earlier segments, to maxShared plus sharedPerByte times the size of the file, because each
// segment is searched separately. Segments in core files of Linux and gdb share no bytes, but
// qemu's dump-guest-memory -p writes a segment for each address at which memory is mapped.
const (
	maxShared     = 16 << 20
	sharedPerByte = 4
)

// dropShared drops the segments beyond this limit.
func dropShared(h *header, s *source, notes *notes) {
	var order []int // of segments, by offset
	for i, p := range h.progs {
		if p.kind == elf.PT_LOAD && p.filesz > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(h.progs[a].off, h.progs[b].off) })
	end, dropped := uint64(0), 0
	left := maxShared + sharedPerByte*uint64(len(s.data))
	for _, i := range order {
		p := &h.progs[i]
		size := min(p.filesz, p.memsz, ^uint64(0)-p.off)
		both := min(size, end-min(end, p.off))
		if both > left {
			p.filesz = 0
			dropped++
			continue
		}
		left -= both
		end = max(end, p.off+size)
	}
	if dropped > 0 {
		notes.add("%s: segments share bytes of the file: %d of %d are left out", s.name, dropped, len(order))
	}
}

// physical reports whether program headers describe the physical memory of a guest:
// qemu then sets no permissions.
func physical(h *header) bool {
	loads := 0
	for _, p := range h.progs {
		if p.kind == elf.PT_LOAD {
			if loads++; p.flags != 0 {
				return false
			}
		}
	}
	return loads > 0
}

func (m *Image) addMap(r Map) {
	if r.Start < r.End && len(m.Maps) < maxPieces {
		m.Maps = append(m.Maps, r)
	}
}

func byStart(a, b Map) int { return cmp.Compare(a.Start, b.Start) }

// apart sorts maps and removes overlaps: each address belongs to the first map that
// holds it.
func (m *Image) apart(list []Map) []Map {
	slices.SortStableFunc(list, byStart)
	out, end := list[:0], uint64(0)
	for _, r := range list {
		if n := end - min(end, r.Start); n > 0 {
			r.Start, r.Offset = r.Start+n, r.Offset+n
			if r.Start >= r.End {
				continue
			}
		}
		end = r.End
		out = append(out, r)
	}
	if len(out) < len(list) {
		m.notes.add("%d maps lie in others: left out", len(list)-len(out))
	}
	return out
}

// joinMaps sets the file of each map from the notes, and adds maps that are only in the notes.
func (m *Image) joinMaps() {
	m.Maps, m.files = m.apart(m.Maps), m.apart(m.files)
	var absent []Map
	for _, f := range m.files {
		if m.MapAt(f.Start) == nil {
			f.absent = true
			if next := sort.Search(len(m.Maps), func(i int) bool { return m.Maps[i].Start > f.Start }); next < len(m.Maps) {
				f.End = min(f.End, m.Maps[next].Start)
			}
			absent = append(absent, f)
		}
	}
	for i := range m.Maps {
		r := &m.Maps[i]
		at := sort.Search(len(m.files), func(i int) bool { return m.files[i].Start > r.Start }) - 1
		if at >= 0 && r.Start < m.files[at].End {
			f := m.files[at]
			r.File, r.Offset = f.File, f.Offset+r.Start-f.Start
		}
	}
	m.Maps = append(m.Maps, absent...)
	slices.SortStableFunc(m.Maps, byStart)
}

// MapAt returns the map that holds an address, nil if there is none.
func (m *Image) MapAt(addr uint64) *Map {
	i := sort.Search(len(m.Maps), func(i int) bool { return m.Maps[i].Start > addr }) - 1
	if i >= 0 && addr < m.Maps[i].End {
		return &m.Maps[i]
	}
	return nil
}
