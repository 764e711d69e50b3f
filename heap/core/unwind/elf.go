package unwind

import (
	"debug/elf"
	"slices"
	"sort"
)

// readSymbols collects the starts of functions.
func (o *Object) readSymbols(e *elf.File) {
	o.symbols = o.readTable(e, elf.SHT_SYMTAB) > 0
	o.readTable(e, elf.SHT_DYNSYM)
	if o.entry != 0 && o.inText(o.arch.addr(o.entry)) {
		o.starts = append(o.starts, o.arch.addr(o.entry))
	}
	slices.Sort(o.starts)
	o.starts = slices.Compact(o.starts)
}

// readTable reads a symbol table and returns the number of its symbols. It does not
// read names: debug/elf would copy each, however many symbols share a long name.
func (o *Object) readTable(e *elf.File, kind elf.SectionType) (n int) {
	s := e.SectionByType(kind)
	if s == nil || s.Size > maxSection || s.Flags&elf.SHF_COMPRESSED != 0 {
		return 0
	}
	b, err := s.Data()
	if err != nil {
		return 0
	}
	size := elf.Sym32Size
	if o.Class == elf.ELFCLASS64 {
		size = elf.Sym64Size
	}
	order := o.Order
	for at := size; at+size <= len(b); at += size { // skip the null symbol
		sym := b[at : at+size]
		n++
		value, info, section := uint64(order.Uint32(sym[4:])), sym[12], order.Uint16(sym[14:])
		if o.Class == elf.ELFCLASS64 {
			value, info, section = order.Uint64(sym[8:]), sym[4], order.Uint16(sym[6:])
		}
		value = o.arch.addr(value)
		if kind := elf.ST_TYPE(info); (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) &&
			elf.SectionIndex(section) != elf.SHN_UNDEF && o.inText(value) {
			o.starts = append(o.starts, value)
		}
	}
	return n
}

// startOf returns the start of the function that contains addr, and its end, which is the
// start of the next function or the end of the code.
func (o *Object) startOf(addr uint64) (start, end uint64, ok bool) {
	i := sort.Search(len(o.starts), func(i int) bool { return o.starts[i] > addr })
	if i == 0 {
		return 0, 0, false
	}
	start, end = o.starts[i-1], ^uint64(0)
	if i < len(o.starts) {
		end = o.starts[i]
	}
	for _, t := range o.text {
		if t.holds(addr) {
			return start, min(end, t.high), t.holds(start)
		}
	}
	return 0, 0, false
}

// Start returns the address in the file at which the function with the code at an address begins, as far as symbols and calls tell.
func (o *Object) Start(addr uint64) (start uint64, ok bool) {
	o.findStarts()
	start, _, ok = o.startOf(addr)
	return start, ok
}

// isStart reports whether a function begins at addr.
func (o *Object) isStart(addr uint64) bool {
	_, ok := slices.BinarySearch(o.starts, addr)
	return ok
}

// begins reports whether a function begins at addr, by the symbols or the unwind tables.
func (o *Object) begins(addr uint64) bool {
	eh, debug := o.eh.find(addr), o.debug.find(addr)
	return o.isStart(addr) || eh != nil && eh.low == addr || debug != nil && debug.low == addr
}
