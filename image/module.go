package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
)

// Module is an executable file that the process had mapped.
type Module struct {
	Path string
	// BuildID is in hexadecimal, "" if the image does not have the file's header.
	BuildID string
	// Bias is the address of the module in memory less that in its file, modulo
	// 2^Word.
	Bias uint64
	// Known reports that the module's ELF header was in the image: Bias is right.
	Known bool
	Maps  []Map // by address
}

// Modules lists the executable files that were mapped: those whose beginning is an
// ELF header, or that have code. They come in the order of their addresses. It is
// empty where the image does not tell, as RAM does not.
func (m *Image) Modules() []Module {
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
	list = slices.DeleteFunc(list, func(d Module) bool {
		return !m.readModule(&d) && !slices.ContainsFunc(d.Maps, func(r Map) bool { return r.Exec })
	})
	for i := range list {
		m.readModule(&list[i])
	}
	return list
}

// readModule reads the ELF header that a module has in memory.
func (m *Image) readModule(d *Module) bool {
	for _, r := range d.Maps {
		d.Bias = r.Start - r.Offset // where nothing else is known: addresses are offsets
		if r.Offset != 0 {
			continue
		}
		s := m.Find(r.Start)
		if s == nil {
			continue
		}
		data := s.Data[r.Start-s.Addr:]
		data = data[:min(uint64(len(data)), r.End-r.Start)]
		var ignored notes // of the file's end, which is not here
		h, err := readHeader(data, d.Path, &ignored)
		if err != nil || h.word != m.Word || h.kind != elf.ET_EXEC && h.kind != elf.ET_DYN {
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
	return false
}

// wrap takes an address modulo 2^Word.
func (m *Image) wrap(addr uint64) uint64 {
	if m.Word == 32 {
		return uint64(uint32(addr))
	}
	return addr
}

// buildID reads the note of an ELF file of which data is the beginning.
func buildID(data []byte, h *header) string {
	for _, p := range h.progs {
		if p.kind != elf.PT_NOTE {
			continue
		}
		c := &cursor{b: part(data, p.off, p.filesz), word: h.word, order: h.order}
		for c.left() >= 12 {
			namesz, descsz, kind := c.u32(), c.u32(), c.u32()
			name := c.bytes(namesz)
			c.bytes(-namesz & 3)
			desc := c.bytes(descsz)
			if c.bad {
				break
			}
			c.bytes(min(-descsz&3, uint64(c.left())))
			if kind == ntBuildID && bytes.Equal(name, []byte("GNU\x00")) && len(desc) <= 64 {
				return hex.EncodeToString(desc)
			}
		}
	}
	return ""
}

// Symbol is a variable of a program.
type Symbol struct {
	Name string
	File string // of the ELF file that has it
	Addr uint64 // in memory
	Size uint64 // bytes, 0 if not told
}

// maxSymbolFile bounds the ELF files whose symbols are read, in bytes.
const maxSymbolFile = 4 << 30

// Variables returns the variables of an ELF file that have one of these names.
// bias is what its addresses differ from those in memory.
func (m *Image) Variables(path string, bias uint64, names ...string) (found []Symbol, err error) {
	defer func() {
		if r := recover(); r != nil { // of debug/elf, on a file that nobody tried yet
			found, err = nil, fmt.Errorf("%s: symbols cannot be read: %v", path, r)
		}
	}()
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > maxSymbolFile {
		return nil, fmt.Errorf("%s: not a file, or too large", path)
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil || len(syms) == 0 {
		syms, err = f.DynamicSymbols()
		if err != nil {
			return nil, fmt.Errorf("%s has no symbols", path)
		}
	}
	for _, s := range syms {
		if t := elf.ST_TYPE(s.Info); (t == elf.STT_OBJECT || t == elf.STT_NOTYPE) && s.Section != elf.SHN_UNDEF &&
			s.Section < elf.SHN_LORESERVE && slices.Contains(names, s.Name) {
			found = append(found, Symbol{s.Name, path, m.wrap(s.Value + bias), s.Size})
		}
	}
	slices.SortStableFunc(found, func(a, b Symbol) int {
		return cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name))
	})
	return found, nil
}

// WritableRanges returns where an ELF file has its data and bss: [start, end) in
// memory.
func (m *Image) WritableRanges(path string, bias uint64) ([]Map, error) {
	s, err := openSource(path, &Image{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	var ignored notes
	h, err := readHeader(s.data, path, &ignored)
	if err != nil {
		return nil, err
	}
	var list []Map
	for _, p := range h.progs {
		if start := m.wrap(p.vaddr + bias); p.kind == elf.PT_LOAD && p.flags&elf.PF_W != 0 && start+p.memsz > start {
			list = append(list, Map{Start: start, End: start + p.memsz, Write: true, File: path})
		}
	}
	return list, nil
}

// Describe sets word, byte order and machine from an ELF file, where they are not known
// yet. The error says that the file cannot be of this image.
func (m *Image) Describe(path string) error {
	s, err := openSource(path, &Image{})
	if err != nil {
		return err
	}
	defer s.close()
	h, err := readHeader(s.data, path, &m.notes)
	if err != nil {
		return err
	}
	return m.agree(path, h)
}

// ELFInfo holds properties of an ELF file.
type ELFInfo struct {
	BuildID string // hexadecimal, "" if there is none
	PIE     bool   // may be loaded anywhere
	Entry   uint64 // where the program starts
	Low     uint64 // address of its first segment
}

// ReadELF reads the header of an executable file.
func ReadELF(path string) (info ELFInfo, err error) {
	s, err := openSource(path, &Image{})
	if err != nil {
		return info, err
	}
	defer s.close()
	var ignored notes
	h, err := readHeader(s.data, path, &ignored)
	if err != nil {
		return info, err
	}
	info = ELFInfo{BuildID: buildID(s.data, h), PIE: h.kind == elf.ET_DYN, Entry: h.entry, Low: ^uint64(0)}
	for _, p := range h.progs {
		if p.kind == elf.PT_LOAD {
			info.Low = min(info.Low, p.vaddr)
		}
	}
	if info.Low == ^uint64(0) {
		return info, fmt.Errorf("%s: an ELF file without memory (no PT_LOAD)", path)
	}
	return info, nil
}
