package core

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/internal/elffile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Module is an executable file that the process had mapped.
type Module struct {
	Path string
	// BuildID is in hexadecimal, "" if the file's header is not in the image.
	BuildID string
	// Bias is the address in memory minus the address in the file, modulo 2^Word.
	Bias uint64
	// Known reports whether the ELF header of the module was in the image, so that Bias
	// is certain.
	Known  bool
	Maps   []Map // by address
	header bool  // it begins with an ELF header
}

// Modules returns the mapped executable files, by address: files that begin with an ELF
// header, or whose mappings are executable. The list is empty if the image has no memory map;
// RAM has none.
func (m *Image) Modules() []Module {
	return slices.DeleteFunc(m.Mapped(), func(d Module) bool {
		return !d.header && !slices.ContainsFunc(d.Maps, func(r Map) bool { return r.Exec })
	})
}

// Mapped returns all mapped files, by address: executable files whose header is not in the image are
// among them.
func (m *Image) Mapped() []Module {
	var list []Module
	at := map[string]int{}
	for _, r := range m.Maps {
		if r.File == "" {
			continue
		}
		i, ok := at[r.File]
		if !ok {
			i = len(list)
			at[r.File] = i
			list = append(list, Module{Path: r.File})
		}
		list[i].Maps = append(list[i].Maps, r)
	}
	for i := range list {
		list[i].header = m.readModule(&list[i])
	}
	return list
}

// maxModuleProgs limits the number of program headers of an executable file. Usually there
// are a dozen.
const maxModuleProgs = 1 << 10

// readModule reads the ELF header of a module from memory, or its build ID from the dump. It reports whether the module has one of
// them.
func (m *Image) readModule(d *Module) bool {
	// Without an ELF header, assume that addresses in the first segment are offsets: in others they
	// may be some pages more.
	d.Bias = d.Maps[0].Start - d.Maps[0].Offset
	for _, r := range d.Maps {
		if r.Offset != 0 {
			continue
		}
		s := m.Find(r.Start)
		if s == nil {
			continue
		}
		data := s.Data[r.Start-s.Addr:]
		data = data[:min(uint64(len(data)), r.End-r.Start)]
		var ignored notes // the image has only the beginning of the file
		h, err := readHeader(data, d.Path, &ignored)
		if err != nil || h.word != m.Word || h.kind != elf.ET_EXEC && h.kind != elf.ET_DYN || len(h.progs) > maxModuleProgs {
			continue
		}
		for _, p := range h.progs {
			if p.kind == elf.PT_LOAD && p.off == 0 {
				d.Bias, d.Known = m.wrap(r.Start-p.vaddr), true
			}
		}
		for i := range d.Maps {
			x := &d.Maps[i]
			for _, p := range h.progs {
				if x.absent && p.kind == elf.PT_LOAD && x.Offset >= p.off&^0xfff && x.Offset < p.off+p.filesz {
					x.Exec = p.flags&elf.PF_X != 0
				}
			}
		}
		d.BuildID = buildID(data, h)
		return true
	}
	d.Bias = m.wrap(d.Bias)
	d.BuildID = d.Maps[0].buildID
	return d.BuildID != ""
}

// wrap returns an address modulo 2^Word.
func (m *Image) wrap(addr uint64) uint64 {
	if m.Word == 32 {
		return uint64(uint32(addr))
	}
	return addr
}

// maxModuleNotes limits the number of bytes of notes of an executable file that are searched,
// because many modules may share the same bytes.
const maxModuleNotes = 64 << 10

// buildID returns the build-id note of an ELF file; data is the beginning of the file.
func buildID(data []byte, h *header) string {
	left := maxModuleNotes
	for _, p := range h.progs {
		if p.kind != elf.PT_NOTE {
			continue
		}
		b := part(data, p.off, p.filesz)
		b = b[:min(len(b), left)]
		left -= len(b)
		if id := elffile.BuildID(b, h.order); id != "" {
			return id
		}
	}
	return ""
}

// Symbol is a variable of a program.
type Symbol struct {
	Name string
	File string // ELF file with the symbol
	Addr uint64 // in memory
	Size uint64 // in bytes, 0 if not known
}

// Variables returns the variables of an ELF file with one of these names, or all if no name is given. bias is the
// address in memory minus the address in the file.
func (m *Image) Variables(path string, bias uint64, names ...string) (found []Symbol, err error) {
	f, err := symbol.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, ok := f.Variables(names...)
	if !ok {
		return nil, fmt.Errorf("%s has no symbols", path)
	}
	for _, v := range list {
		found = append(found, Symbol{v.Name, path, m.wrap(v.Addr + bias), v.Size})
	}
	slices.SortStableFunc(found, func(a, b Symbol) int {
		return cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name))
	})
	return found, nil
}

// readHeaderOf reads the header of an ELF file and calls use with it.
func readHeaderOf(path string, notes *notes, use func(data []byte, h *header) error) error {
	var m Image
	defer m.Close()
	return m.Guard(func() error {
		s, err := openSource(path, &m)
		if err != nil {
			return err
		}
		h, err := readHeader(s.data, path, notes)
		if err != nil {
			return err
		}
		return use(s.data, h)
	})
}

// WritableRanges returns the memory ranges of the data and bss of an ELF file.
func (m *Image) WritableRanges(path string, bias uint64) (list []Map, err error) {
	var ignored notes
	err = readHeaderOf(path, &ignored, func(_ []byte, h *header) error {
		for _, p := range h.progs {
			if start := m.wrap(p.vaddr + bias); p.kind == elf.PT_LOAD && p.flags&elf.PF_W != 0 && start+p.memsz > start {
				list = append(list, Map{Start: start, End: start + p.memsz, Write: true, File: path})
			}
		}
		return nil
	})
	return list, err
}

// Describe sets word, byte order and machine from an ELF file if they are not known
// yet. It returns an error if the file cannot belong to this image.
func (m *Image) Describe(path string) error {
	return readHeaderOf(path, &m.notes, func(_ []byte, h *header) error { return m.agree(path, h) })
}

// ELFInfo holds properties of an ELF file.
type ELFInfo struct {
	BuildID string // hexadecimal, "" if there is none
	PIE     bool   // position-independent
	Entry   uint64 // start address of the program
	Low     uint64 // address of its first segment
}

// ReadELF reads the header of an executable file.
func ReadELF(path string) (info ELFInfo, err error) {
	var ignored notes
	err = readHeaderOf(path, &ignored, func(data []byte, h *header) error {
		info = ELFInfo{BuildID: buildID(data, h), PIE: h.kind == elf.ET_DYN, Entry: h.entry, Low: ^uint64(0)}
		for _, p := range h.progs {
			if p.kind == elf.PT_LOAD {
				info.Low = min(info.Low, p.vaddr)
			}
		}
		if info.Low == ^uint64(0) {
			return fmt.Errorf("%s: an ELF file without memory (no PT_LOAD)", path)
		}
		return nil
	})
	return info, err
}
