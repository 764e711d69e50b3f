package core

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// header holds the ELF header and the program headers of a file.
type header struct {
	word    int
	order   binary.ByteOrder
	machine elf.Machine
	kind    elf.Type
	entry   uint64
	progs   []prog
	cut     bool // the file ends in the program headers
}

type prog struct {
	kind          elf.ProgType
	flags         elf.ProgFlag
	off           uint64
	vaddr, paddr  uint64
	filesz, memsz uint64
}

// maxProgs limits the number of program headers that are read.
const maxProgs = 1 << 20

// readHeader reads the ELF header and the program headers. It does not use debug/elf, which
// needs complete files with section headers; core files have none.
func readHeader(data []byte, name string, notes *notes) (*header, error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return nil, fmt.Errorf("%s: not an ELF file", name)
	}
	if len(data) < 20 {
		return nil, fmt.Errorf("%s: ELF header is cut: %d bytes", name, len(data))
	}
	h := &header{word: 32, order: binary.LittleEndian}
	switch elf.Class(data[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
	case elf.ELFCLASS64:
		h.word = 64
	default:
		return nil, fmt.Errorf("%s: ELF class %d, expected 1 (32 bits) or 2 (64 bits)", name, data[elf.EI_CLASS])
	}
	switch elf.Data(data[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
	case elf.ELFDATA2MSB:
		h.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("%s: ELF byte order %d, expected 1 or 2", name, data[elf.EI_DATA])
	}
	c := &cursor{b: data, off: elf.EI_NIDENT, word: h.word, order: h.order}
	h.kind, h.machine = elf.Type(c.u16()), elf.Machine(c.u16())
	c.u32() // version
	h.entry = c.ptr()
	phoff, shoff := c.ptr(), c.ptr()
	c.u32() // flags
	c.u16() // size of this header
	phentsize, phnum := c.u16(), c.u16()
	shentsize := c.u16()
	if c.bad {
		return nil, fmt.Errorf("%s: ELF header is cut: %d bytes", name, len(data))
	}
	if phnum == 0xffff && shoff != 0 && shentsize != 0 { // PN_XNUM: the number is in section 0
		info := shoff + 28
		if h.word == 64 {
			info = shoff + 44
		}
		if x := (&cursor{b: data, off: offset(info), order: h.order}); shoff < uint64(len(data)) {
			if n := x.u32(); !x.bad {
				phnum = n
			}
		}
	}
	want := uint64(32)
	if h.word == 64 {
		want = 56
	}
	if phnum > 0 && phentsize < want {
		return nil, fmt.Errorf("%s: program headers of %d bytes, expected %d", name, phentsize, want)
	}
	if phnum > maxProgs {
		notes.add("%s: %d program headers: %d are read", name, phnum, maxProgs)
		phnum = maxProgs
	}
	for i := range phnum {
		at := phoff + i*phentsize
		if phoff > uint64(len(data)) || at > uint64(len(data)) {
			notes.add("%s: file ends after %d of %d program headers", name, i, phnum)
			h.cut = true
			break
		}
		c := &cursor{b: data, off: int(at), word: h.word, order: h.order}
		p := readProg(c)
		if c.bad {
			notes.add("%s: file ends after %d of %d program headers", name, i, phnum)
			h.cut = true
			break
		}
		h.progs = append(h.progs, p)
	}
	return h, nil
}

func readProg(c *cursor) (p prog) {
	p.kind = elf.ProgType(c.u32())
	if c.word == 64 {
		p.flags = elf.ProgFlag(c.u32())
	}
	p.off, p.vaddr, p.paddr = c.ptr(), c.ptr(), c.ptr()
	p.filesz, p.memsz = c.ptr(), c.ptr()
	if c.word == 32 {
		p.flags = elf.ProgFlag(c.u32())
	}
	return p
}

// offset returns n as an index, -1 if n is too large for one.
func offset(n uint64) int {
	if n > 1<<62 || uint64(int(n)) != n {
		return -1
	}
	return int(n)
}

// part returns the part of a range that is within the file.
func part(data []byte, off, size uint64) []byte {
	if off >= uint64(len(data)) {
		return nil
	}
	return data[off:][:min(size, uint64(len(data))-off)]
}

// agree checks that a file matches the class, byte order and machine of the image. It sets
// the properties that are not known yet.
func (m *Image) agree(name string, h *header) error {
	if m.Word == 0 {
		m.Word = h.word
	}
	if m.Order == nil {
		m.Order = h.order
	}
	if m.Machine == elf.EM_NONE {
		m.Machine = h.machine
	}
	if m.Word != h.word || m.Order != h.order || h.machine != elf.EM_NONE && m.Machine != h.machine {
		return fmt.Errorf("%s is for %s, the image is of %s", name,
			machineName(h.word, h.order, h.machine), machineName(m.Word, m.Order, m.Machine))
	}
	return nil
}

func machineName(word int, order binary.ByteOrder, machine elf.Machine) string {
	end := "little-endian"
	if order == binary.BigEndian {
		end = "big-endian"
	}
	return fmt.Sprintf("%v (%d bits, %s)", machine, word, end)
}

// AddELF adds the read-only parts of an executable file: code and constants, which core files
// and RAM omit. bias is the address in memory minus the address in the file. AddELF sets
// class, byte order and machine of the image, or returns an error if earlier files set others.
func (m *Image) AddELF(path string, bias uint64) error {
	s, err := openSource(path, m)
	if err != nil {
		return err
	}
	h, err := readHeader(s.data, path, &m.notes)
	if err != nil {
		return err
	}
	if err := m.agree(path, h); err != nil {
		return err
	}
	for _, p := range h.progs {
		if p.kind != elf.PT_LOAD || p.flags&elf.PF_W != 0 {
			continue
		}
		addr := p.vaddr + bias
		if m.Word == 32 {
			addr = uint64(uint32(addr))
		}
		m.add(Segment{Addr: addr, Data: part(s.data, p.off, min(p.filesz, p.memsz)), Exec: p.flags&elf.PF_X != 0,
			ELF: true, src: s, off: int64(p.off)})
	}
	return nil
}
