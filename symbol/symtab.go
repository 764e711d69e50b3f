package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// symbolTable is the functions of a symbol table.
type symbolTable struct {
	functions []function // by address, the preferred one of each address
	strings   []byte
	sets      []setMark // by address; empty if the table has no marks
	dynamic   bool      // the dynamic symbol table, which omits most functions
	mini      error     // why .gnu_debugdata was not read

	names  map[uint32]string // names that were looked up, by offset
	budget *dwarf.Budget     // for names: many can share one long string
}

// function is a symbol with code.
type function struct {
	addr, size uint64
	name, file uint32 // in the string table; file of a local one, 0 if not known
	global     bool
	index      uint32 // in the symbol table
}

// rank is the largest for the function that names an address that several have.
func (f *function) rank() (n int) {
	if f.size != 0 {
		n = 2
	}
	if f.global {
		n++
	}
	return n
}

// setMark is the instruction set of the code from an address on.
type setMark struct {
	addr  uint64
	thumb bool
}

// maxName is the length to which names are cut, in bytes. The longest known names of C++
// programs have about 10,000.
const maxName = 1 << 15

// text returns a string of the table, or "" if the budget for names is exceeded.
func (t *symbolTable) text(off uint32) string {
	s, ok := t.names[off]
	if !ok {
		if b := stringAt(t.strings, uint64(off)); t.budget.Alloc(int64(len(b)) + nameBytes) {
			s = cutName(b)
		}
		if t.names == nil {
			t.names = map[uint32]string{}
		}
		t.names[off] = s
	}
	return s
}

// nameBytes is the memory per name in bytes, in addition to the name itself.
const nameBytes = 64

// why returns why names of the table are missing, "" if they are not.
func (t *symbolTable) why() string {
	if t.mini != nil {
		return "section .gnu_debugdata cannot be read: " + t.mini.Error()
	}
	if t.budget == nil || t.budget.Left() > 0 {
		return ""
	}
	return "the names of its symbols take more memory than those of a file of its size should"
}

func cutName(b []byte) string { return string(b[:min(len(b), maxName)]) }

// symtab returns the functions of the file.
func (f *File) symtab() *symbolTable {
	if f.symbols == nil {
		t := f.readSymbols()
		if f.symbols == nil { // otherwise the file became shorter
			f.symbols = t
		}
	}
	return f.symbols
}

// readSymbols reads the symbol table, or the dynamic symbol table if the file is stripped.
func (f *File) readSymbols() (t *symbolTable) {
	t = &symbolTable{budget: dwarf.NewBudget(int64(len(f.image)))}
	defer f.faulted(debug.SetPanicOnFault(true), nil)
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		t.dynamic = kind == elf.SHT_DYNSYM
		if f.readTable(t, kind); len(t.functions) > 0 {
			break
		}
	}
	if t.dynamic {
		f.addMini(t)
	}
	slices.SortFunc(t.functions, func(a, b function) int {
		if a.addr != b.addr {
			return cmp.Compare(a.addr, b.addr)
		}
		return cmp.Or(b.rank()-a.rank(), cmp.Compare(a.index, b.index))
	})
	t.functions = slices.CompactFunc(t.functions, func(a, b function) bool { return a.addr == b.addr })
	slices.SortStableFunc(t.sets, func(a, b setMark) int { return cmp.Compare(a.addr, b.addr) })
	return t
}

// table returns the bytes of the only section of this kind, and of its string section.
func (f *File) table(kind elf.SectionType) (symbols, strings []byte) {
	i := slices.IndexFunc(f.sections, func(s *elf.Section) bool { return s.Type == kind })
	if i < 0 || int(f.sections[i].Link) >= len(f.sections) {
		return nil, nil
	}
	s := f.sections[i]
	names := f.sections[s.Link]
	return f.bytesAt(s.Offset, s.FileSize), f.bytesAt(names.Offset, names.FileSize)
}

// readTable reads the one section of this kind.
func (f *File) readTable(t *symbolTable, kind elf.SectionType) {
	var symbols []byte
	symbols, t.strings = f.table(kind)
	size, file := f.symbolBytes(), uint32(0)
	var marks, odd []setMark // by $t and $a, and by functions
	for ; len(symbols) >= size; symbols = symbols[size:] {
		sym := f.symbol(symbols)
		kind := elf.ST_TYPE(sym.info)
		if kind == elf.STT_FILE {
			file = sym.name
		}
		if !f.isCode(&sym) {
			continue
		}
		if name := stringAt(t.strings, uint64(sym.name)); kind == elf.STT_NOTYPE && len(name) > 1 && name[0] == '$' {
			if len(name) == 2 || name[2] == '.' { // $a, $t, $d and $x mark kinds of code
				if name[1] == 't' || name[1] == 'a' {
					marks = append(marks, setMark{sym.addr, name[1] == 't'})
				}
			}
			continue
		} else if len(name) == 0 || len(name) > 1 && name[0] == '.' && name[1] == 'L' {
			continue
		}
		if kind != elf.STT_NOTYPE {
			odd = append(odd, setMark{f.arch.Strip(sym.addr), sym.addr&f.arch.TagBits != 0})
			sym.addr = f.arch.Strip(sym.addr)
		}
		fn := function{addr: sym.addr, size: sym.size, name: sym.name, file: file, index: uint32(len(t.functions))}
		if elf.ST_BIND(sym.info) != elf.STB_LOCAL {
			fn.file, fn.global = 0, true
		}
		t.functions = append(t.functions, fn)
	}
	if f.arch.TagBits != 0 {
		if t.sets = marks; len(marks) == 0 {
			t.sets = odd
		}
	}
}

// rawSymbol is an entry of a symbol table.
type rawSymbol struct {
	name       uint32
	info       uint8
	section    uint16
	addr, size uint64
}

func (f *File) symbolBytes() int {
	if f.Word == 32 {
		return elf.Sym32Size
	}
	return elf.Sym64Size
}

// symbol reads an entry of symbolBytes bytes.
func (f *File) symbol(b []byte) rawSymbol {
	o := f.order
	if f.Word == 32 {
		return rawSymbol{name: o.Uint32(b), addr: uint64(o.Uint32(b[4:])), size: uint64(o.Uint32(b[8:])),
			info: b[12], section: o.Uint16(b[14:])}
	}
	return rawSymbol{name: o.Uint32(b), info: b[4], section: o.Uint16(b[6:]), addr: o.Uint64(b[8:]), size: o.Uint64(b[16:])}
}

// isCode reports whether the symbol may name code.
func (f *File) isCode(s *rawSymbol) bool {
	kind := elf.ST_TYPE(s.info)
	if kind != elf.STT_FUNC && kind != elf.STT_NOTYPE && kind != elf.STT_GNU_IFUNC ||
		s.section == uint16(elf.SHN_UNDEF) || s.section >= uint16(elf.SHN_LORESERVE) {
		return false
	}
	return int(s.section) >= len(f.sections) || f.sections[s.section].Flags&elf.SHF_EXECINSTR != 0
}

// thumbAt reports whether the code at an address is Thumb. known is false if the symbol table
// has no mark before the address.
func (f *File) thumbAt(addr uint64) (thumb, known bool) {
	sets := f.symtab().sets
	i := sort.Search(len(sets), func(i int) bool { return sets[i].addr > addr }) - 1
	if i < 0 {
		return false, false
	}
	return sets[i].thumb, true
}

// symbolAt returns the function that covers an address, else the last function before it in
// the same section.
func (f *File) symbolAt(addr uint64) (name, file string, ok bool) {
	t := f.symtab()
	list := t.functions
	last := sort.Search(len(list), func(i int) bool { return list[i].addr > addr }) - 1
	for i := last; i >= 0 && i > last-16; i-- {
		if s := &list[i]; s.size > addr-s.addr {
			name = t.text(s.name)
			return name, t.text(s.file), name != ""
		}
	}
	if last < 0 || t.dynamic && list[last].size != 0 || !f.sameSection(list[last].addr, addr) {
		return "", "", false
	}
	name = t.text(list[last].name)
	return name, t.text(list[last].file), name != ""
}

// symbolOf returns the name of the function that begins at an address, or "".
func (f *File) symbolOf(addr uint64) string {
	t := f.symtab()
	i, ok := slices.BinarySearchFunc(t.functions, addr, func(s function, a uint64) int { return cmp.Compare(s.addr, a) })
	if !ok {
		return ""
	}
	return t.text(t.functions[i].name)
}

// sameSection reports whether two addresses are in the same executable section, or in the
// same segment if the file has no sections.
func (f *File) sameSection(a, b uint64) bool {
	return slices.ContainsFunc(f.text, func(s segment) bool { return s.holds(a) && s.holds(b) })
}

// Variable is a variable of the symbol table.
type Variable struct {
	Name       string
	Addr, Size uint64 // size in bytes, 0 if the table does not give it
}

// Variables returns the variables of the symbol table that have one of the names, or all if no name
// is given, in table order. Names are without what link-time optimization adds. A stripped file has only the dynamic symbol table. ok is false if there is no
// table.
func (f *File) Variables(names ...string) (list []Variable, ok bool) {
	defer f.faulted(debug.SetPanicOnFault(true), nil)
	symbols, strings := f.table(elf.SHT_SYMTAB)
	if len(symbols) == 0 {
		symbols, strings = f.table(elf.SHT_DYNSYM)
	}
	ok = len(symbols) > 0
	for size := f.symbolBytes(); len(symbols) >= size; symbols = symbols[size:] {
		sym := f.symbol(symbols)
		if kind := elf.ST_TYPE(sym.info); kind != elf.STT_OBJECT && kind != elf.STT_NOTYPE ||
			sym.section == uint16(elf.SHN_UNDEF) || sym.section >= uint16(elf.SHN_LORESERVE) {
			continue
		}
		name := sourceName(stringAt(strings, uint64(sym.name)))
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return n == string(name) }) {
			list = append(list, Variable{string(name), sym.addr, sym.size})
		}
	}
	return list, ok
}

// sourceName returns the name of a variable without what link-time optimization adds: x.lto_priv.0 (gcc),
// x.llvm.123 (clang).
func sourceName(name []byte) []byte {
	for _, suffix := range []string{".lto_priv.", ".llvm."} {
		if i := bytes.LastIndex(name, []byte(suffix)); i > 0 && digits(name[i+len(suffix):]) {
			return name[:i]
		}
	}
	return name
}

// digits reports whether there are digits, and nothing else.
func digits(text []byte) bool {
	return len(text) > 0 && !bytes.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// Function is a function of the symbol table.
type Function struct {
	Name       string // linkage name, as the file has it
	Addr, Size uint64 // size in bytes, 0 if the table does not give it
	Thumb      bool
}

// Functions returns the functions of the symbol table, by address, one for each address.
func (f *File) Functions() []Function {
	defer f.faulted(debug.SetPanicOnFault(true), nil)
	t := f.symtab()
	list := make([]Function, len(t.functions))
	for i, s := range t.functions {
		thumb, _ := f.thumbAt(s.addr)
		list[i] = Function{Name: t.text(s.name), Addr: s.addr, Size: s.size, Thumb: thumb && f.Machine == elf.EM_ARM}
	}
	return list
}
