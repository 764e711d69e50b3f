package dwarf

import (
	"cmp"
	"fmt"
)

// A program built with -gsplit-dwarf has skeleton units, with their addresses and lines. Their functions are in split units:
// of files of their own (.dwo), or all of them in a package (.dwp). (DWARF 5, 7.3)

// SplitFile is a .dwo or .dwp file: its path, safe to print, and its sections.
type SplitFile struct {
	Path string
	Sections
}

// Split returns why functions of a unit that was looked up are missing: its split unit could not be read. It returns nil if none
// are missing, otherwise the first error.
func (d *Data) Split() error { return d.split }

// withScopes returns the unit that has the functions of u: its split unit if it is a skeleton, else u.
func (u *unit) withScopes() *unit {
	dwo := u.root[atDwoName]
	if dwo.class == 0 || u.skeleton != nil || u.d.OpenSplit == nil {
		return u
	}
	if u.split == nil {
		u.split = u
		err := u.d.OpenSplit(string(u.text(u.root[atCompDir])), string(u.text(dwo)), u.readSplit)
		if err != nil && u.d.split == nil {
			u.d.split = err
		}
	}
	return u.split
}

// readSplit sets the split unit of a skeleton to the one in a file. It returns an error if that is not there.
func (u *unit) readSplit(f SplitFile) (err error) {
	o := u.d.Options
	o.OpenSplit, o.Alt = nil, nil
	x := New(f.Sections, o)
	if !f.Sections[CUIndex].Empty() {
		if x, err = x.contribution(u.dwoID()); err != nil {
			return err
		}
	}
	for _, kept := range []Section{Addr, Ranges} { // what the linker relocates stays in the program
		b, err := u.d.Sections[kept].All(u.d.Budget)
		if err != nil {
			return err
		}
		x.Sections[kept] = Plain(b)
	}
	x.file = f.Path
	other := false
	for x.readUnit() {
		w := x.units[len(x.units)-1]
		if w.skeleton = u; w.kind == unitSplitType {
			continue
		}
		if w.readRoot(); w.err == nil && w.dwoID() == u.dwoID() {
			u.split = w
			return nil
		}
		other = true
	}
	if err = x.next.err; err == nil && other {
		err = fmt.Errorf("of another build: it has no unit with the id %#x", u.dwoID())
	}
	return cmp.Or(err, fmt.Errorf("no unit in it, expected the id %#x", u.dwoID()))
}

// dwoID returns what a skeleton and its split unit have in common: in DWARF 5 in the header, before in an attribute.
func (u *unit) dwoID() uint64 { return cmp.Or(u.id, u.root[atDwoID].u) }

// packed are the sections by their numbers in an index, DW_SECT_*, as far as they are read. (DWARF 5, 7.3.5.3)
var packed = map[uint64]Section{1: Info, 3: Abbrev, 6: StrOffsets, 8: RngLists}

// contribution returns the part of a package that belongs to one unit, by the hash table, of which all slots are read, and the tables of offsets and of
// sizes in .debug_cu_index. (DWARF 5, 7.3.5.3)
func (d *Data) contribution(id uint64) (*Data, error) {
	c := d.at(CUIndex, 0)
	version := c.uint(4) & 0xffff // 2 has 32 bits
	columns, units, slots := c.uint(4), c.uint(4), c.uint(4)
	if version != 2 && version != 5 {
		c.fail("index of version %d, expected 2 or 5", version)
	}
	row, ids, rows := uint64(0), c, c
	rows.skip(8 * slots)
	for n := uint64(0); n < slots && ids.err == nil && rows.err == nil; n++ {
		if found, at := ids.uint(8), rows.uint(4); found == id && at != 0 {
			row = at
		}
	}
	c.spend(int(min(slots, 1<<30)), 0)
	c.err = cmp.Or(c.err, ids.err, rows.err)
	if c.err == nil && (row == 0 || row > units) {
		return nil, fmt.Errorf("no unit with the id %#x", id)
	}
	x := New(d.Sections, d.Options)
	c.skip(12 * slots)
	offset, size := c, c
	offset.skip(4 * columns * row)
	size.skip(4 * columns * (units + row))
	for range columns {
		s, read := packed[c.uint(4)]
		from, n := offset.uint(4), size.uint(4)
		c.err = cmp.Or(c.err, offset.err, size.err)
		if c.err != nil {
			break
		}
		if !read || s == RngLists && version == 2 { // there, macros
			continue
		}
		b, err := d.Sections[s].All(d.Budget)
		if err != nil {
			return nil, err
		}
		if from+n > uint64(len(b)) {
			c.fail("%d bytes at %#x of %s, which has %d", n, from, s, len(b))
			break
		}
		x.Sections[s] = Plain(b[from : from+n])
	}
	x.next = x.at(Info, 0)
	return x, c.err
}
