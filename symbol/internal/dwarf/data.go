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
	numSections
)

// String returns the name of the section in ELF files.
func (s Section) String() string {
	return [...]string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str",
		".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"}[s]
}

// Sections holds the contents of a file's sections. A missing section is nil.
type Sections [numSections][]byte

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
	Alt    *Data
	Budget *Budget
}

// Data is the debug information of a file. New reads only unit headers and root entries.
// Lookup reads the scopes and lines of a unit when an address first needs them.
type Data struct {
	Sections
	Options

	units   []*unit // by offset in Info
	index   spans   // by index in units
	abbrevs map[abbrevKey]abbrevTable
	names   map[uint64]funcName // by offset of the entry in Info

	splitUnits int // units whose functions are in other files
	splitName  string
}

// Split returns how many units have their functions in other files, which are not read,
// and the name of the first such file. (DWARF 5, 7.3.2)
func (d *Data) Split() (units int, name string) { return d.splitUnits, d.splitName }

// unit is one compilation unit of Info.
type unit struct {
	d                    *Data
	off, end             uint64 // of the unit in Info
	die                  uint64 // of its root entry
	version              uint16
	addrSize, offsetSize int
	abbrevOff            uint64

	root   entry
	scopes *scopes // nil until needed
	lines  *lineTable
}

// New reads unit headers and root entries. The error names a malformed header or entry, or is
// ErrBudget.
func New(s Sections, o Options) (*Data, error) {
	d, err := NewAlt(s, o)
	if err != nil {
		return nil, err
	}
	if err := d.readRoots(); err != nil {
		return nil, err
	}
	return d, nil
}

// NewAlt reads only unit headers, which suffice for names that other files refer to.
func NewAlt(s Sections, o Options) (*Data, error) {
	d := &Data{Sections: s, Options: o, abbrevs: map[abbrevKey]abbrevTable{}, names: map[uint64]funcName{}}
	return d, d.readUnits()
}

// Kinds of units, DW_UT_*. (DWARF 5, 7.5.1)
const (
	unitType         = 2
	unitSkeleton     = 4
	unitSplitCompile = 5
	unitSplitType    = 6
)

const unitBytes = 768 // memory per unit

// readUnits reads the header of every unit. (DWARF 5, 7.5.1)
func (d *Data) readUnits() error {
	c := d.at(Info, 0)
	for c.off < len(c.b) {
		c.spend(10, unitBytes)
		u := &unit{d: d, off: uint64(c.off)}
		n := uint64(0)
		n, u.offsetSize = c.length()
		header := c
		c.skip(n)
		u.end = uint64(c.off)
		u.version = uint16(header.uint(2))
		if u.version < 2 || u.version > 5 {
			header.fail("DWARF version %d, expected 2 to 5", u.version)
		}
		if u.version < 5 {
			u.abbrevOff, u.addrSize = header.uint(u.offsetSize), int(header.u8())
		} else {
			kind := header.u8()
			u.addrSize, u.abbrevOff = int(header.u8()), header.uint(u.offsetSize)
			switch kind {
			case unitType, unitSplitType:
				header.skip(8 + uint64(u.offsetSize))
			case unitSkeleton, unitSplitCompile:
				header.skip(8)
			}
		}
		if u.addrSize != 2 && u.addrSize != 4 && u.addrSize != 8 {
			header.fail("addresses of %d bytes, expected 2, 4 or 8", u.addrSize)
		}
		u.die = uint64(header.off)
		if u.die > u.end {
			header.fail("a unit of %d bytes is too short for its header", n)
		}
		if err := cmp.Or(c.err, header.err); err != nil {
			return err
		}
		d.units = append(d.units, u)
	}
	return c.err
}

// unitAt returns the unit that holds an offset of Info.
func (d *Data) unitAt(off uint64) *unit {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].end > off })
	if i < len(d.units) && d.units[i].die <= off {
		return d.units[i]
	}
	return nil
}

// readRoots reads each unit's root entry and indexes the addresses it claims.
func (d *Data) readRoots() error {
	var claims []ownedRange
	for i, u := range d.units {
		list, err := u.readRoot()
		if err != nil {
			return err
		}
		claims = d.claim(claims, list, i)
	}
	d.index = layOut(claims)
	return nil
}

// claim appends the loaded ranges of list, which belong to owner.
func (d *Data) claim(dst []ownedRange, list []addrRange, owner int) []ownedRange {
	for _, r := range list {
		if r.low < r.high && d.Loaded(r.low, r.high) {
			dst = append(dst, ownedRange{r, int32(owner)})
		}
	}
	return dst
}

// readRoot reads a unit's root entry and returns the ranges of the unit.
func (u *unit) readRoot() ([]addrRange, error) {
	c := u.d.at(Info, u.die)
	c.b = c.b[:u.end]
	code := c.uleb()
	if code == 0 {
		return nil, c.err
	}
	ab, err := u.abbrevOf(code)
	if err != nil {
		return nil, err
	}
	if ab.tag != std.TagCompileUnit && ab.tag != std.TagPartialUnit && ab.tag != std.TagSkeletonUnit {
		return nil, nil
	}
	if u.version >= 5 { // unless a base is given, the first table, after a header
		header := uint64(2 * u.offsetSize)
		u.root[atStrBase].u, u.root[atAddrBase].u, u.root[atRngBase].u = header, header, header+4
	}
	if u.readEntry(&c, ab.attrs, &u.root); c.err != nil {
		return nil, c.err
	}
	if name := u.root[atDwoName]; name.class != 0 {
		if u.d.splitUnits++; u.d.splitUnits == 1 {
			u.d.splitName = string(u.text(name))
		}
	}
	list, err := u.appendRanges(nil, &u.root)
	if err == nil && len(list) == 0 && ab.children && ab.tag == std.TagCompileUnit {
		// The unit has no ranges: use the ranges of its functions.
		s := u.loadScopes()
		return s.spans.owned(), s.err
	}
	return list, err
}

// isCPlusPlus reports whether the unit is C++, by DW_LANG_*. (DWARF 5, 7.12)
func (u *unit) isCPlusPlus() bool {
	switch u.root[atLanguage].u {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a:
		return true
	}
	return false
}
