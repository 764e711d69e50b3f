package symbol

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strings"
)

// function is a symbol with code, from the symbol table.
type function struct {
	addr, size uint64
	name, file string // file of a local one, "" if not known
	global     bool
	dynamic    bool // from a table that leaves out most functions
}

// readSymbols lists the functions of the symbol table, sorted by address; of
// several at one address the first is the one to name it by.
func (f *File) readSymbols() (list []function) {
	defer func() {
		if recover() != nil {
			list = nil
		}
	}()
	for _, table := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		if list = f.readTable(table); len(list) > 0 {
			break
		}
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		switch {
		case a.addr != b.addr:
			return a.addr < b.addr
		case (a.size != 0) != (b.size != 0):
			return a.size != 0
		}
		return a.global && !b.global
	})
	return slices.CompactFunc(list, func(a, b function) bool { return a.addr == b.addr })
}

func (f *File) readTable(kind elf.SectionType) (list []function) {
	for _, s := range f.sections {
		if s.Type != kind || int(s.Link) >= len(f.sections) {
			continue
		}
		names := f.sections[s.Link]
		strs, symbols := f.bytesAt(names.Offset, names.FileSize), f.bytesAt(s.Offset, s.FileSize)
		c, file := f.order.at(symbols, 0), ""
		for c.off < len(symbols) {
			sym := f.symbol(&c)
			if c.bad {
				break
			}
			if elf.ST_TYPE(sym.info) == elf.STT_FILE {
				file = string(stringAt(strs, uint64(sym.name)))
			}
			if name, ok := f.isFunction(&sym, strs); ok {
				fn := function{addr: sym.addr, size: sym.size, name: name, file: file,
					dynamic: kind == elf.SHT_DYNSYM}
				if elf.ST_BIND(sym.info) != elf.STB_LOCAL {
					fn.file, fn.global = "", true
				}
				list = append(list, fn)
			}
		}
	}
	return list
}

// rawSymbol is an entry of a symbol table.
type rawSymbol struct {
	name       uint32
	info       uint8
	section    uint16
	addr, size uint64
}

func (f *File) symbol(c *cursor) (s rawSymbol) {
	s.name = c.u32()
	if f.Word == 32 {
		s.addr, s.size = uint64(c.u32()), uint64(c.u32())
		s.info = c.u8()
		c.skip(1)
		s.section = c.u16()
		return s
	}
	s.info = c.u8()
	c.skip(1)
	s.section = c.u16()
	s.addr, s.size = c.u64(), c.u64()
	return s
}

// isFunction says whether the symbol names code, takes the Thumb or MIPS16 bit
// from its address, and returns its name.
func (f *File) isFunction(s *rawSymbol, strs []byte) (string, bool) {
	kind := elf.ST_TYPE(s.info)
	const ifunc = 10
	if kind != elf.STT_FUNC && kind != elf.STT_NOTYPE && kind != ifunc ||
		s.section == uint16(elf.SHN_UNDEF) || s.section >= uint16(elf.SHN_LORESERVE) {
		return "", false
	}
	if kind != elf.STT_NOTYPE {
		s.addr = f.codeAddr(s.addr)
	}
	if int(s.section) < len(f.sections) && f.sections[s.section].Flags&elf.SHF_EXECINSTR == 0 {
		return "", false
	}
	name := string(stringAt(strs, uint64(s.name)))
	if name == "" || name[0] == '$' && kind == elf.STT_NOTYPE || strings.HasPrefix(name, ".L") {
		return "", false // $a, $t, $d and $x mark kinds of code
	}
	return name, true
}

// codeAddr takes off the bit that says in which instruction set the code at an
// address is: Thumb, MIPS16, microMIPS.
func (f *File) codeAddr(addr uint64) uint64 {
	if f.Machine == elf.EM_ARM || f.Machine == elf.EM_MIPS {
		return addr &^ 1
	}
	return addr
}

// symbolAt finds the function that the symbol table has for an address: one that
// covers it, else the last before it.
func (f *File) symbolAt(addr uint64) (function, bool) {
	list := f.symtab()
	last := sort.Search(len(list), func(i int) bool { return list[i].addr > addr }) - 1
	for i := last; i >= 0 && i > last-16; i-- {
		if s := list[i]; s.size > addr-s.addr {
			return s, true
		}
	}
	if last < 0 || list[last].dynamic && list[last].size != 0 || !f.together(list[last].addr, addr) {
		return function{}, false
	}
	return list[last], true
}

// symbolOf is the name of the function that begins at an address, "" if the
// symbol table has none.
func (f *File) symbolOf(addr uint64) string {
	list := f.symtab()
	i, ok := slices.BinarySearchFunc(list, addr, func(s function, a uint64) int { return cmp.Compare(s.addr, a) })
	if !ok {
		return ""
	}
	return list[i].name
}

// together says whether two addresses are in one section or, where a file has no
// sections, in one segment.
func (f *File) together(a, b uint64) bool {
	return slices.ContainsFunc(f.text, func(s segment) bool { return s.holds(a) && s.holds(b) })
}
