package dwarf

// class is the meaning of an attribute's value.
type class uint8

const (
	classNumber   class = 1 + iota
	classBlock          // a number of bytes, which are skipped
	classString         // offset of a string in a section
	classStrIndex       // index in .debug_str_offsets
	classAltStr         // offset in .debug_str of the file shared by dwz
	classAddr
	classAddrIndex // index in .debug_addr
	classRngIndex  // index in .debug_rnglists
	classUnitRef   // offset of an entry in the unit
	classRef       // offset of an entry in .debug_info
	classAltRef    // offset in .debug_info of the file shared by dwz
)

// Sizes of values that are not a number of bytes.
const (
	sizeUnknown = -1 - iota
	sizeAddr    // of an address
	sizeOffset  // of an offset in a section
	sizeRefAddr // of an address in DWARF 2, else of an offset
	sizeULEB
	sizeSLEB
	sizeString
	sizeIndirect // a form and a value of that form
)

// form is how a value is stored, and what it means.
type form struct {
	size    int
	class   class
	section Section // of strings
}

const formImplicitConst = 0x21

// forms are the forms of DW_FORM_*. (DWARF 5, 7.5.6)
var forms = map[uint64]form{
	0x01:              {size: sizeAddr, class: classAddr},
	0x03:              {size: 2, class: classBlock},
	0x04:              {size: 4, class: classBlock},
	0x05:              {size: 2, class: classNumber},
	0x06:              {size: 4, class: classNumber},
	0x07:              {size: 8, class: classNumber},
	0x08:              {size: sizeString, class: classString},
	0x09:              {size: sizeULEB, class: classBlock},
	0x0a:              {size: 1, class: classBlock},
	0x0b:              {size: 1, class: classNumber},
	0x0c:              {size: 1, class: classNumber}, // flag
	0x0d:              {size: sizeSLEB, class: classNumber},
	0x0e:              {size: sizeOffset, class: classString, section: Str},
	0x0f:              {size: sizeULEB, class: classNumber},
	0x10:              {size: sizeRefAddr, class: classRef},
	0x11:              {size: 1, class: classUnitRef},
	0x12:              {size: 2, class: classUnitRef},
	0x13:              {size: 4, class: classUnitRef},
	0x14:              {size: 8, class: classUnitRef},
	0x15:              {size: sizeULEB, class: classUnitRef},
	0x16:              {size: sizeIndirect},
	0x17:              {size: sizeOffset, class: classNumber}, // sec_offset
	0x18:              {size: sizeULEB, class: classBlock},    // exprloc
	0x19:              {size: 0, class: classNumber},          // flag_present
	0x1a:              {size: sizeULEB, class: classStrIndex},
	0x1b:              {size: sizeULEB, class: classAddrIndex},
	0x1c:              {size: 4, class: classAltRef},
	0x1d:              {size: sizeOffset, class: classAltStr},
	0x1e:              {size: 16, class: classNumber}, // data16
	0x1f:              {size: sizeOffset, class: classString, section: LineStr},
	0x20:              {size: 8, class: classNumber}, // ref_sig8
	formImplicitConst: {size: 0, class: classNumber},
	0x22:              {size: sizeULEB, class: classNumber}, // loclistx
	0x23:              {size: sizeULEB, class: classRngIndex},
	0x24:              {size: 8, class: classAltRef},
	0x25:              {size: 1, class: classStrIndex},
	0x26:              {size: 2, class: classStrIndex},
	0x27:              {size: 3, class: classStrIndex},
	0x28:              {size: 4, class: classStrIndex},
	0x29:              {size: 1, class: classAddrIndex},
	0x2a:              {size: 2, class: classAddrIndex},
	0x2b:              {size: 3, class: classAddrIndex},
	0x2c:              {size: 4, class: classAddrIndex},
	0x1f01:            {size: sizeULEB, class: classAddrIndex}, // GNU_addr_index
	0x1f02:            {size: sizeULEB, class: classStrIndex},  // GNU_str_index
	0x1f20:            {size: sizeOffset, class: classAltRef},  // GNU_ref_alt
	0x1f21:            {size: sizeOffset, class: classAltStr},  // GNU_strp_alt
}

// form returns a form with the sizes of the unit.
func (u *unit) form(number uint64) form {
	f, ok := forms[number]
	switch {
	case !ok:
		f.size = sizeUnknown
	case f.size == sizeAddr, f.size == sizeRefAddr && u.version == 2:
		f.size = u.addrSize
	case f.size == sizeOffset, f.size == sizeRefAddr:
		f.size = u.offsetSize
	}
	return f
}

// value is the unresolved value of an attribute: a number, an index or an offset, depending
// on the class. The zero value means that the attribute is absent.
type value struct {
	class   class
	section Section // of strings
	u       uint64
}

// fixed reports whether all values of the form have the same size.
func (f form) fixed() bool { return f.size >= 0 && f.class != classBlock }

// value reads an attribute's value.
func (u *unit) value(c *cursor, a attrSpec) value {
	if a.attr == atIgnored && a.fixed() {
		c.skip(uint64(a.size))
		return value{}
	}
	if a.size == sizeIndirect {
		a.form = u.form(c.uleb())
	}
	v := value{class: a.class, section: a.section}
	switch a.size {
	case 0:
		v.u = a.implicit
	case sizeULEB:
		v.u = c.uleb()
	case sizeSLEB:
		v.u = uint64(c.sleb())
	case sizeString:
		v.section, v.u = c.section, uint64(c.off)
		c.skipString()
	case sizeUnknown, sizeIndirect:
		c.fail("attribute of an unknown form")
	default:
		v.u = c.uint(a.size)
	}
	switch v.class {
	case classBlock:
		c.skip(v.u)
	case classUnitRef:
		v.class, v.u = classRef, v.u+u.off
	}
	return v
}

// indexed reads an item of size bytes from a table by its index. It returns 0 if there is
// none.
func (d *Data) indexed(table Section, base, index uint64, size int) uint64 {
	if index > d.Sections[table].size {
		return 0
	}
	c := d.at(table, base+index*uint64(size))
	return c.uint(size)
}

// text resolves a string value.
func (u *unit) text(v value) []byte {
	switch d := u.d; v.class {
	case classString:
		return d.stringAt(v.section, v.u)
	case classStrIndex:
		return d.stringAt(Str, d.indexed(StrOffsets, u.root[atStrBase].u, v.u, u.offsetSize))
	case classAltStr:
		if d.Alt != nil {
			return d.Alt.stringAt(Str, v.u)
		}
	}
	return nil
}

// address resolves an address value.
func (u *unit) address(v value) uint64 {
	if v.class == classAddrIndex {
		return u.d.indexed(Addr, u.root[atAddrBase].u, v.u, u.addrSize)
	}
	return v.u
}
