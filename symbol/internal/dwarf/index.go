package dwarf

import "cmp"

// index maps addresses to units.
type index struct {
	spans spans    // by index in units
	units []uint64 // their offsets in Info
	err   error    // what ended the reading of the index, if anything
}

// find returns the unit that claims an address, nil if none does.
func (x *index) find(d *Data, pc uint64) *unit {
	i := x.spans.find(pc)
	if i < 0 {
		return nil
	}
	if u := d.unitAt(x.units[i]); u != nil && u.off == x.units[i] {
		return u
	}
	return nil
}

// unitOf returns the unit that claims an address, nil if none does. The error is what ended the
// search.
func (d *Data) unitOf(pc uint64) (*unit, error) {
	if d.listed == nil {
		d.listed = d.readARanges()
	}
	if u := d.listed.find(d, pc); u != nil {
		return u, nil
	}
	if d.all == nil {
		d.all = d.readRoots()
	}
	return d.all.find(d, pc), d.all.err
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

// readARanges reads .debug_aranges, up to an error: of addresses that it lacks, the units
// themselves are asked. (DWARF 5, 6.1.2)
func (d *Data) readARanges() *index {
	x := &index{}
	var claims []ownedRange
	for c := d.at(ARanges, 0); c.off < len(c.b); {
		set := c
		n, offsetSize := set.length()
		start := c.off
		c.continueAt(set)
		c.skip(n)
		version, unit, size := set.uint(2), set.uint(offsetSize), int(set.u8())
		if set.u8() != 0 || version != 2 || size != 4 && size != 8 || c.err != nil || set.err != nil {
			break
		}
		if rest := (set.off - start) % (2 * size); rest != 0 {
			set.skip(uint64(2*size - rest))
		}
		for set.off < c.off && set.err == nil {
			low, length := set.uint(size), set.uint(size)
			set.spend(1, rangeBytes)
			claims = d.claim(claims, []addrRange{{low, low + length}}, len(x.units))
		}
		x.units = append(x.units, unit)
	}
	x.spans = layOut(claims)
	return x
}

// readRoots reads the addresses that the root entries of all units claim.
func (d *Data) readRoots() *index {
	for d.readUnit() {
	}
	x := &index{err: d.next.err}
	var claims []ownedRange
	for i, u := range d.units {
		u.readRoot()
		x.units, x.err = append(x.units, u.off), cmp.Or(x.err, u.err)
		claims = d.claim(claims, u.ranges, i)
	}
	x.spans = layOut(claims)
	return x
}
