package dwarf

import (
	std "debug/dwarf"
	"fmt"
)

// Attributes that debug/dwarf does not name.
const (
	attrMIPSLinkage std.Attr = 0x2007
	attrGNUDwoName  std.Attr = 0x2130
	attrGNUAddrBase std.Attr = 0x2133
)

// abbrev is an abbreviation: the tag of an entry, and the names and forms of its attributes.
type abbrev struct {
	tag      std.Tag
	children bool
	code     bool // entries may describe code: their attributes are read
	size     int  // of all attributes in bytes, -1 if it varies
	attrs    []attrSpec
}

type attrSpec struct {
	attr     std.Attr
	form     uint32
	implicit int64 // value of formImplicitConst
}

// Memory per abbrev and per attribute in bytes, including the growth of slices.
const (
	abbrevBytes = 96
	attrBytes   = 32
)

// abbrevTable maps codes to abbreviations. Codes are nearly always consecutive from 1.
type abbrevTable struct {
	dense []abbrev // by code-1
	rest  map[uint64]*abbrev
}

func (t *abbrevTable) get(code uint64) *abbrev {
	if code-1 < uint64(len(t.dense)) {
		return &t.dense[code-1]
	}
	return t.rest[code]
}

// abbrevKey distinguishes tables whose entries have different sizes.
type abbrevKey struct {
	off      uint64
	version  uint16
	addrSize int
	dwarf64  bool
}

// table reads the unit's abbreviations. (DWARF 5, 7.5.3)
func (u *unit) table() (*abbrevTable, error) {
	key := abbrevKey{u.abbrevOff, u.version, u.addrSize, u.dwarf64}
	if t := u.d.abbrevs[key]; t != nil {
		return t, nil
	}
	t := &abbrevTable{}
	c := u.d.at(u.d.Abbrev, u.abbrevOff)
	for {
		code := c.uleb()
		if code == 0 || c.bad {
			break
		}
		ab := u.readAbbrev(&c, true)
		if !u.d.Budget.Alloc(int64(abbrevBytes + attrBytes*len(ab.attrs))) {
			return nil, ErrBudget
		}
		if code == uint64(len(t.dense))+1 {
			t.dense = append(t.dense, ab)
			continue
		}
		if t.rest == nil {
			t.rest = map[uint64]*abbrev{}
		}
		t.rest[code] = &ab
	}
	if u.d.Budget.exceeded() {
		return nil, ErrBudget
	}
	if c.bad {
		return nil, fmt.Errorf(".debug_abbrev %#x: table without an end", u.abbrevOff)
	}
	u.d.abbrevs[key] = t
	return t, nil
}

// abbrevOf returns the abbreviation of one code, without reading the rest of the table.
func (u *unit) abbrevOf(code uint64) (*abbrev, error) {
	c := u.d.at(u.d.Abbrev, u.abbrevOff)
	for !c.bad && u.d.Budget.Step(1) {
		got := c.uleb()
		if got == 0 {
			break
		}
		if got != code {
			u.readAbbrev(&c, false)
		} else if ab := u.readAbbrev(&c, true); !c.bad {
			return &ab, nil
		}
	}
	if u.d.Budget.exceeded() {
		return nil, ErrBudget
	}
	return nil, fmt.Errorf(".debug_info %#x: abbreviation %d is not in the table at %#x",
		u.die, code, u.abbrevOff)
}

func (u *unit) readAbbrev(c *cursor, keep bool) (ab abbrev) {
	ab.tag, ab.children = std.Tag(c.uleb()), c.u8() != 0
	ab.code = ab.tag == std.TagSubprogram || ab.tag == std.TagInlinedSubroutine
	for !c.bad && u.d.Budget.Step(1) {
		a := attrSpec{attr: std.Attr(c.uleb()), form: uint32(c.uleb())}
		if a.form == formImplicitConst {
			a.implicit = c.sleb()
		}
		if a.attr == 0 && a.form == 0 {
			break
		}
		if n := u.formSize(a.form); n < 0 {
			ab.size = -1
		} else if ab.size >= 0 {
			ab.size += n
		}
		if keep {
			ab.attrs = append(ab.attrs, a)
		}
	}
	return ab
}
