// Package dwarf finds functions, lines and inlined calls for addresses in DWARF
// debug information of versions 2 to 5.
package dwarf

import (
	"cmp"
	std "debug/dwarf"
	"sort"
)

// Section is a section of a file.
type Section uint8

const (
	Info Section = iota
	Abbrev
	Line
	Str
	LineStr
	Ranges
	RngLists
	Addr
	StrOffsets
	ARanges
	CUIndex
	numSections
)

// String returns the name of the section in ELF files.
func (s Section) String() string {
	return [...]string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str",
		".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".debug_aranges", ".debug_cu_index"}[s]
}

// Sections holds the contents of a file's sections. A missing section is the zero Content.
type Sections [numSections]Content

// Options describes the file that holds the sections.
type Options struct {
	BigEndian bool
	// Loaded reports whether [low, high) is in loaded parts of the file. Linkers leave
	// the debug information of removed code at address 0 or another address that is
	// not loaded.
	Loaded func(low, high uint64) bool
	// Symbol returns the symbol of the function that begins at addr, "" if there
	// is none.
	Symbol func(addr uint64) string
	// Alt is the debug information that dwz moved to a shared file, nil if none.
	Alt *Data
	// OpenSplit opens files for the split unit that a skeleton names by its directory and
	// file, and calls read with each until that returns no error.
	OpenSplit func(dir, name string, read func(SplitFile) error) error
	Budget    *Budget
}

// Data is the debug information of a file. It is read when an address needs it: a compressed
// section up to what is needed; of a unit, its root entry, scopes and lines. If .debug_aranges
// has the address, no other unit is read.
type Data struct {
	Sections
	Options

	units   []*unit // by offset in Info, as far as they are known
	next    cursor  // at the header of the unit after them
	listed  *index  // by .debug_aranges, nil until needed
	all     *index  // by the units themselves, nil until needed
	abbrevs map[abbrevKey]abbrevTable
	names   map[uint64]funcName // by offset of the entry in Info
	split   error
	file    string // of split units
}

// New returns the debug information in sections. It reads nothing yet.
func New(s Sections, o Options) *Data {
	d := &Data{Sections: s, Options: o, abbrevs: map[abbrevKey]abbrevTable{}, names: map[uint64]funcName{}}
	d.next = d.at(Info, 0)
	return d
}

// unit is one compilation unit of Info.
type unit struct {
	d                    *Data
	off, end             uint64 // of the unit in Info
	die                  uint64 // of its root entry
	version              uint16
	kind                 uint8  // unitSkeleton and so on, 0 before DWARF 5
	id                   uint64 // of a skeleton and its split unit in DWARF 5
	addrSize, offsetSize int
	abbrevOff            uint64

	read   bool // root, ranges and err are set
	root   entry
	ranges []addrRange
	err    error   // of the root entry
	scopes *scopes // nil until needed
	lines  *lineTable

	skeleton *unit // of a split unit
	split    *unit // of a skeleton: see withScopes
}

// Kinds of units, DW_UT_*. (DWARF 5, 7.5.1)
const (
	unitType         = 2
	unitSkeleton     = 4
	unitSplitCompile = 5
	unitSplitType    = 6
)

const unitBytes = 768 // memory per unit

// readUnit reads the header of the next unit. It returns false at the end and on an error.
// (DWARF 5, 7.5.1)
func (d *Data) readUnit() bool {
	c := &d.next
	if c.err != nil || c.off >= len(c.b) {
		return false
	}
	c.spend(10, unitBytes)
	u := &unit{d: d, off: uint64(c.off)}
	n := uint64(0)
	n, u.offsetSize = c.length()
	header := *c
	c.skip(n)
	u.end = uint64(c.off)
	u.version = uint16(header.uint(2))
	if u.version < 2 || u.version > 5 {
		header.fail("DWARF version %d, expected 2 to 5", u.version)
	}
	if u.version < 5 {
		u.abbrevOff, u.addrSize = header.uint(u.offsetSize), int(header.u8())
	} else {
		u.kind = header.u8()
		u.addrSize, u.abbrevOff = int(header.u8()), header.uint(u.offsetSize)
		switch u.kind {
		case unitType, unitSplitType:
			header.skip(8 + uint64(u.offsetSize))
		case unitSkeleton, unitSplitCompile:
			u.id = header.uint(8)
		}
	}
	if u.addrSize != 2 && u.addrSize != 4 && u.addrSize != 8 {
		header.fail("addresses of %d bytes, expected 2, 4 or 8", u.addrSize)
	}
	u.die = uint64(header.off)
	if u.die > u.end {
		header.fail("a unit of %d bytes is too short for its header", n)
	}
	if c.err = cmp.Or(c.err, header.err); c.err == nil {
		d.units = append(d.units, u)
	}
	return c.err == nil
}

// unitAt returns the unit that holds an offset of Info, nil if there is none.
func (d *Data) unitAt(off uint64) *unit {
	for off >= uint64(d.next.off) && d.readUnit() {
	}
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].end > off })
	if i < len(d.units) && d.units[i].off <= off {
		return d.units[i]
	}
	return nil
}

// readRoot reads a unit's root entry and the ranges in it, once.
func (u *unit) readRoot() {
	if u.read {
		return
	}
	u.read = true
	c := u.d.within(Info, u.die, u.end)
	code := c.uleb()
	if u.err = c.err; code == 0 {
		return
	}
	ab, err := u.abbrevOf(code)
	if u.err = err; err != nil || ab.tag != std.TagCompileUnit && ab.tag != std.TagPartialUnit && ab.tag != std.TagSkeletonUnit {
		return
	}
	if u.version >= 5 { // unless a base is given, the first table, after a header
		header := uint64(2 * u.offsetSize)
		u.root[atStrBase].u, u.root[atAddrBase].u, u.root[atRngBase].u = header, header, header+4
	}
	if u.readEntry(&c, ab.attrs, &u.root); c.err != nil {
		u.err = c.err
		return
	}
	if s := u.skeleton; s != nil { // which has its addresses
		u.root[atLow], u.root[atAddrBase] = s.root[atLow], s.root[atAddrBase]
		return
	}
	u.ranges, u.err = u.appendRanges(nil, &u.root)
	if u.err == nil && len(u.ranges) == 0 && ab.children && ab.tag == std.TagCompileUnit {
		// The unit has no ranges: use the ranges of its functions.
		s := u.loadScopes()
		u.ranges, u.err = s.spans.owned(), s.err
	}
}

// isCPlusPlus reports whether the unit is C++, by DW_LANG_*. (DWARF 5, 7.12)
func (u *unit) isCPlusPlus() bool {
	switch u.root[atLanguage].u {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a:
		return true
	}
	return false
}
