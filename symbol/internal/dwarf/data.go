// Package dwarf finds functions, lines and inlined calls for addresses in DWARF
// debug information of versions 2 to 5.
package dwarf

import (
	std "debug/dwarf"
	"fmt"
	"sort"
)

// Sections holds the contents of a file's sections. A missing section is nil.
type Sections struct {
	Info, Abbrev, Line, Str, LineStr   []byte
	Ranges, RngLists, Addr, StrOffsets []byte
}

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
	order
	Sections
	Options

	units   []*unit // by offset in Info
	index   spans   // by index in units
	abbrevs map[abbrevKey]*abbrevTable
	tables  map[uint64]*lineTable // by offset in Line
	names   map[uint64]*string    // by offset of the entry in Info

	splitUnits int // units whose functions are in other files
	splitName  string
}

// Split returns how many units have their functions in other files, which are not read,
// and the name of the first such file. (DWARF 5, 7.3.2)
func (d *Data) Split() (units int, name string) { return d.splitUnits, d.splitName }

// unit is one compilation unit of Info.
type unit struct {
	d         *Data
	off, end  uint64 // of the unit in Info
	die       uint64 // of its root entry
	version   uint16
	addrSize  int
	dwarf64   bool
	abbrevOff uint64

	name, dir          value
	low                uint64
	lineOff            uint64
	hasLines           bool
	strBase, addrBase  uint64
	rngBase            uint64
	language           uint64
	scopes             *scopes // nil until needed
	lines              *lineTable
	linesErr, scopeErr error
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
	d := &Data{order: order(o.BigEndian), Sections: s, Options: o, abbrevs: map[abbrevKey]*abbrevTable{},
		tables: map[uint64]*lineTable{}, names: map[uint64]*string{}}
	return d, d.readUnits()
}

// Kinds of units, DW_UT_*. (DWARF 5, 7.5.1)
const (
	unitCompile      = 1
	unitType         = 2
	unitPartial      = 3
	unitSkeleton     = 4
	unitSplitCompile = 5
	unitSplitType    = 6
)

const unitBytes = 256 // memory per unit

// readUnits reads the header of every unit. (DWARF 5, 7.5.1)
func (d *Data) readUnits() error {
	for off := uint64(0); off < uint64(len(d.Info)); {
		c := d.at(d.Info, off)
		n, dwarf64 := c.length()
		u := &unit{d: d, off: off, end: uint64(c.off) + n, dwarf64: dwarf64}
		if c.bad || u.end > uint64(len(d.Info)) || u.end <= off {
			return fmt.Errorf(".debug_info %#x: unit of %d bytes, %d are there", off, n, len(d.Info)-c.off)
		}
		u.version = uint16(c.uint(2))
		if u.version < 2 || u.version > 5 {
			return fmt.Errorf(".debug_info %#x: DWARF version %d, expected 2 to 5", off, u.version)
		}
		kind := uint8(unitCompile)
		if u.version >= 5 {
			kind, u.addrSize = c.u8(), int(c.u8())
			u.abbrevOff = c.offset(dwarf64)
		} else {
			u.abbrevOff, u.addrSize = c.offset(dwarf64), int(c.u8())
		}
		switch kind {
		case unitType, unitSplitType:
			c.skip(8)
			c.offset(dwarf64)
		case unitSkeleton, unitSplitCompile:
			c.skip(8)
		}
		if u.addrSize != 2 && u.addrSize != 4 && u.addrSize != 8 {
			return fmt.Errorf(".debug_info %#x: addresses of %d bytes, expected 2, 4 or 8", off, u.addrSize)
		}
		u.die = uint64(c.off)
		if u.die > u.end {
			return fmt.Errorf(".debug_info %#x: unit of %d bytes is too short for its header", off, n)
		}
		if !d.Budget.Alloc(unitBytes) || !d.Budget.Step(10) {
			return ErrBudget
		}
		d.units = append(d.units, u)
		off = u.end
	}
	return nil
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
		for _, r := range list {
			if d.loaded(r) {
				claims = append(claims, ownedRange{r, int32(i)})
			}
		}
	}
	d.index = layOut(claims)
	return nil
}

func (d *Data) loaded(r addrRange) bool { return r.low < r.high && d.Loaded(r.low, r.high) }

// readRoot reads the attributes of a unit's root and returns its ranges.
func (u *unit) readRoot() ([]addrRange, error) {
	d := u.d
	c := d.at(d.Info[:u.end], u.die)
	code := c.uleb()
	if code == 0 {
		return nil, nil
	}
	ab, err := u.abbrevOf(code)
	if err != nil {
		return nil, err
	}
	if ab.tag != std.TagCompileUnit && ab.tag != std.TagPartialUnit && ab.tag != std.TagSkeletonUnit {
		return nil, nil
	}
	if u.version >= 5 { // unless a base is given, the first table
		u.strBase, u.addrBase, u.rngBase = 8, 8, 12
		if u.dwarf64 {
			u.strBase, u.addrBase, u.rngBase = 16, 16, 20
		}
	}
	var low, high, ranges value
	for _, a := range ab.attrs {
		switch v := u.value(&c, a); a.attr {
		case std.AttrName:
			u.name = v
		case std.AttrCompDir:
			u.dir = v
		case std.AttrStmtList:
			u.lineOff, u.hasLines = v.u, true
		case std.AttrLowpc:
			low = v
		case std.AttrHighpc:
			high = v
		case std.AttrRanges:
			ranges = v
		case std.AttrLanguage:
			u.language = v.u
		case std.AttrStrOffsetsBase:
			u.strBase = v.u
		case std.AttrAddrBase, attrGNUAddrBase:
			u.addrBase = v.u
		case std.AttrRnglistsBase:
			u.rngBase = v.u
		case std.AttrDwoName, attrGNUDwoName:
			if d.splitUnits++; d.splitUnits == 1 {
				d.splitName = string(u.text(v))
			}
		}
	}
	if c.bad {
		return nil, fmt.Errorf(".debug_info %#x: root entry ends beyond its unit", u.die)
	}
	if low.form != 0 {
		u.low = u.address(low)
	}
	list, err := u.appendRanges(nil, low, high, ranges)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && ab.children && ab.tag == std.TagCompileUnit {
		// The unit has no ranges: use the ranges of its functions.
		s, err := u.loadScopes()
		if err != nil {
			return nil, err
		}
		list = s.claimed()
	}
	return list, nil
}

// unitFor finds the unit that claims an address.
func (d *Data) unitFor(pc uint64) *unit {
	if i := d.index.find(pc); i >= 0 {
		return d.units[i]
	}
	return nil
}

// isCPlusPlus reports whether the unit is C++, by DW_LANG_*. (DWARF 5, 7.12)
func (u *unit) isCPlusPlus() bool {
	switch u.language {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a:
		return true
	}
	return false
}
