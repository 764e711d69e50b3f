package dwarf

import (
	"cmp"
	std "debug/dwarf"
	"slices"
)

// attr is an attribute that this package reads.
type attr uint8

const (
	atIgnored attr = iota
	atName
	atLinkage
	atOrigin // the entry that the names are in: an abstract origin or a declaration
	atLow
	atHigh
	atRanges
	atCallFile
	atCallLine
	atCompDir
	atLines
	atLanguage
	atStrBase
	atAddrBase
	atRngBase
	atDwoName
	atDwoID
	atDirIndex // in line tables
	numAttrs
)

var attrs = map[std.Attr]attr{
	std.AttrName:           atName,
	std.AttrLinkageName:    atLinkage,
	0x2007:                 atLinkage, // DW_AT_MIPS_linkage_name
	std.AttrAbstractOrigin: atOrigin,
	std.AttrSpecification:  atOrigin,
	std.AttrLowpc:          atLow,
	std.AttrHighpc:         atHigh,
	std.AttrRanges:         atRanges,
	std.AttrCallFile:       atCallFile,
	std.AttrCallLine:       atCallLine,
	std.AttrCompDir:        atCompDir,
	std.AttrStmtList:       atLines,
	std.AttrLanguage:       atLanguage,
	std.AttrStrOffsetsBase: atStrBase,
	std.AttrAddrBase:       atAddrBase,
	0x2133:                 atAddrBase, // DW_AT_GNU_addr_base
	std.AttrRnglistsBase:   atRngBase,
	0x2132:                 atRngBase, // DW_AT_GNU_ranges_base
	std.AttrDwoName:        atDwoName,
	0x2130:                 atDwoName, // DW_AT_GNU_dwo_name
	0x2131:                 atDwoID,   // DW_AT_GNU_dwo_id
}

// abbrev is an abbreviation: the tag of an entry, and its attributes.
type abbrev struct {
	code     uint64
	tag      std.Tag
	children bool
	attrs    []attrSpec
}

// attrSpec is an attribute and its form, or several attributes that are skipped together.
type attrSpec struct {
	attr attr
	form
	implicit uint64 // value of DW_FORM_implicit_const
}

// entry is the values of an entry's attributes. The one of atIgnored has no meaning.
type entry [numAttrs]value

// Memory per abbrev and per attribute in bytes, including the growth of slices.
const (
	abbrevBytes = 96
	attrBytes   = 64
)

// abbrevTable is abbreviations by code. Codes are nearly always consecutive from 1.
type abbrevTable []abbrev

func (t abbrevTable) get(code uint64) *abbrev {
	if i := code - 1; i < uint64(len(t)) && t[i].code == code {
		return &t[i]
	}
	i, ok := slices.BinarySearchFunc(t, code, func(a abbrev, code uint64) int { return cmp.Compare(a.code, code) })
	if !ok {
		return nil
	}
	return &t[i]
}

// abbrevKey distinguishes tables whose forms have different sizes.
type abbrevKey struct {
	off                  uint64
	version              uint16
	addrSize, offsetSize int
}

// table reads the unit's abbreviations. (DWARF 5, 7.5.3)
func (u *unit) table() (abbrevTable, error) {
	key := abbrevKey{u.abbrevOff, u.version, u.addrSize, u.offsetSize}
	t, ok := u.d.abbrevs[key]
	if ok {
		return t, nil
	}
	c := u.d.at(Abbrev, u.abbrevOff)
	for ab := (abbrev{}); u.readAbbrev(&c, &ab); {
		c.spend(0, int64(abbrevBytes+attrBytes*len(ab.attrs)))
		kept := ab
		kept.attrs = slices.Clone(ab.attrs)
		t = append(t, kept)
	}
	if c.err != nil {
		return nil, c.err
	}
	slices.SortStableFunc(t, func(a, b abbrev) int { return cmp.Compare(a.code, b.code) })
	u.d.abbrevs[key] = t
	return t, nil
}

// abbrevOf returns the abbreviation of one code, without reading the rest of the table.
func (u *unit) abbrevOf(code uint64) (ab abbrev, err error) {
	c := u.d.at(Abbrev, u.abbrevOff)
	for u.readAbbrev(&c, &ab) {
		if ab.code == code {
			return ab, nil
		}
	}
	if c.err == nil {
		c.fail("abbreviation %d is not in the table at %#x", code, u.abbrevOff)
	}
	return ab, c.err
}

// readAbbrev reads an abbreviation to ab, which it reuses. It returns false at the end of
// the table and on an error.
func (u *unit) readAbbrev(c *cursor, ab *abbrev) bool {
	*ab = abbrev{code: c.uleb(), attrs: ab.attrs[:0]}
	if ab.code == 0 {
		return false
	}
	ab.tag, ab.children = std.Tag(c.uleb()), c.u8() != 0
	for c.err == nil {
		c.spend(1, 0)
		name, number := std.Attr(c.uleb()), c.uleb()
		if name == 0 && number == 0 {
			break
		}
		a := attrSpec{form: u.form(number)}
		if number == formImplicitConst {
			a.implicit = uint64(c.sleb())
		}
		switch ab.tag { // other entries are only skipped
		case std.TagCompileUnit, std.TagPartialUnit, std.TagSkeletonUnit, std.TagSubprogram, std.TagInlinedSubroutine:
			a.attr = attrs[name]
		}
		if n := len(ab.attrs); n > 0 && a.skippedWith(ab.attrs[n-1]) {
			ab.attrs[n-1].size += a.size
			continue
		}
		ab.attrs = append(ab.attrs, a)
	}
	return c.err == nil
}

// skippedWith reports whether two attributes can be skipped together.
func (a attrSpec) skippedWith(b attrSpec) bool {
	return a.attr == atIgnored && b.attr == atIgnored && a.fixed() && b.fixed()
}

// readEntry reads the attributes of an entry.
func (u *unit) readEntry(c *cursor, specs []attrSpec, e *entry) {
	c.spend(1+len(specs), 0)
	for _, a := range specs {
		e[a.attr] = u.value(c, a)
	}
}
