package symbol

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// dwarf is the debug information of a file. At first only unit headers and root
// entries are read; a unit's scopes and lines when an address first needs them.
type dwarf struct {
	order
	file *File

	info, abbrev, line, str, lineStr []byte
	ranges, rnglists, addrs, strOffs []byte

	alt     *dwarf  // what dwz shared between files, nil if nothing
	units   []*unit // by offset in info
	index   []unitRange
	abbrevs map[abbrevKey]*abbrevTable
	tables  map[uint64]*lineTable // by offset in line
	names   map[uint64]*string    // by offset of the entry in info
}

// unitRange says which unit an address belongs to. Ranges are sorted by low.
type unitRange struct {
	low, high uint64
	reach     uint64 // highest high so far, to know when to stop looking back
	unit      *unit
}

// unit is one compilation unit of info.
type unit struct {
	d         *dwarf
	off, end  uint64 // of the unit in info
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

// readDwarf reads what there is of debug information in f; nil if there is none.
func readDwarf(f *File) (d *dwarf, err error) {
	d = &dwarf{order: f.order, file: f, abbrevs: map[abbrevKey]*abbrevTable{},
		tables: map[uint64]*lineTable{}, names: map[uint64]*string{}}
	for _, s := range []struct {
		name string
		to   *[]byte
	}{
		{".debug_info", &d.info}, {".debug_abbrev", &d.abbrev}, {".debug_line", &d.line},
		{".debug_str", &d.str}, {".debug_line_str", &d.lineStr}, {".debug_ranges", &d.ranges},
		{".debug_rnglists", &d.rnglists}, {".debug_addr", &d.addrs},
		{".debug_str_offsets", &d.strOffs},
	} {
		if *s.to, err = f.section(s.name); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if len(d.info) == 0 || len(d.abbrev) == 0 {
		return nil, nil
	}
	if err := d.readUnits(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	if err := d.openAlt(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	if err := d.readRoots(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return d, nil
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

// readUnits reads the header of every unit. (DWARF 5, 7.5.1)
func (d *dwarf) readUnits() error {
	for off := uint64(0); off < uint64(len(d.info)); {
		c := d.at(d.info, off)
		n, dwarf64 := c.length()
		u := &unit{d: d, off: off, end: uint64(c.off) + n, dwarf64: dwarf64}
		if c.bad || u.end > uint64(len(d.info)) || u.end <= off {
			return fmt.Errorf(".debug_info %#x: unit of %d bytes, %d are there", off, n, len(d.info)-c.off)
		}
		u.version = c.u16()
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
			return fmt.Errorf(".debug_info %#x: unit of %d bytes has no room for its header", off, n)
		}
		d.units = append(d.units, u)
		off = u.end
	}
	return nil
}

// unitAt is the unit that holds an offset of info.
func (d *dwarf) unitAt(off uint64) *unit {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].end > off })
	if i < len(d.units) && d.units[i].die <= off {
		return d.units[i]
	}
	return nil
}

// readRoots reads each unit's root entry and indexes the addresses it claims.
func (d *dwarf) readRoots() error {
	for _, u := range d.units {
		list, err := u.readRoot()
		if err != nil {
			return err
		}
		for _, r := range list {
			if d.file.isLoaded(r) {
				d.index = append(d.index, unitRange{low: r.low, high: r.high, unit: u})
			}
		}
	}
	slices.SortStableFunc(d.index, func(a, b unitRange) int { return cmp.Compare(a.low, b.low) })
	reach := uint64(0)
	for i := range d.index {
		reach = max(reach, d.index[i].high)
		d.index[i].reach = reach
	}
	return nil
}

// isLoaded says whether a range lies in loaded parts; what linkers drop they
// leave at 0, or at some other place that is not.
func (f *File) isLoaded(r addrRange) bool {
	if r.low >= r.high {
		return false
	}
	return len(f.loads) == 0 || slices.ContainsFunc(f.loads,
		func(s segment) bool { return s.holds(r.low) && r.high <= s.end })
}

// readRoot reads the attributes of a unit's root and returns its ranges.
func (u *unit) readRoot() ([]addrRange, error) {
	d := u.d
	c := d.at(d.info[:u.end], u.die)
	code := c.uleb()
	if code == 0 {
		return nil, nil
	}
	ab, err := u.abbrevOf(code)
	if err != nil {
		return nil, err
	}
	if ab.tag != tagCompileUnit && ab.tag != tagPartialUnit && ab.tag != tagSkeletonUnit {
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
		case attrName:
			u.name = v
		case attrCompDir:
			u.dir = v
		case attrStmtList:
			u.lineOff, u.hasLines = v.u, true
		case attrLowPC:
			low = v
		case attrHighPC:
			high = v
		case attrRanges:
			ranges = v
		case attrLanguage:
			u.language = v.u
		case attrStrOffsetsBase:
			u.strBase = v.u
		case attrAddrBase, attrGNUAddrBase:
			u.addrBase = v.u
		case attrRnglistsBase:
			u.rngBase = v.u
		}
	}
	if c.bad {
		return nil, fmt.Errorf(".debug_info %#x: root entry ends beyond its unit", u.die)
	}
	if low.form != 0 {
		u.low = u.address(low)
	}
	list, err := u.pcRanges(low, high, ranges)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && ab.children && ab.tag == tagCompileUnit {
		// It does not say; its functions do.
		s, err := u.loadScopes()
		if err != nil {
			return nil, err
		}
		list = s.claimed()
	}
	return list, nil
}

// unitFor finds the unit that claims an address: of several the narrowest.
func (d *dwarf) unitFor(pc uint64) *unit {
	i := sort.Search(len(d.index), func(i int) bool { return d.index[i].low > pc }) - 1
	var best *unitRange
	for ; i >= 0 && d.index[i].reach > pc; i-- {
		r := &d.index[i]
		if pc < r.high && (best == nil || r.high-r.low < best.high-best.low) {
			best = r
		}
	}
	if best == nil {
		return nil
	}
	return best.unit
}

// isCPlusPlus says whether the unit is C++, by DW_LANG_*. (DWARF 5, 7.12)
func (u *unit) isCPlusPlus() bool {
	switch u.language {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a:
		return true
	}
	return false
}
