package dwarf

type addrRange struct{ low, high uint64 }

// rangeBytes is the memory per range in bytes, including the growth of slices.
const rangeBytes = 48

// appendRanges appends the addresses of an entry: its DW_AT_ranges, or low and
// high PC.
func (u *unit) appendRanges(dst []addrRange, e *entry) ([]addrRange, error) {
	low, high := e[atLow], e[atHigh]
	switch {
	case e[atRanges].class != 0 && u.version >= 5:
		return u.readRnglists(dst, e[atRanges])
	case e[atRanges].class != 0:
		off := e[atRanges].u
		if u.skeleton != nil {
			off += u.skeleton.root[atRngBase].u
		}
		return u.readRanges(dst, off)
	case low.class == 0 || high.class == 0:
		return dst, nil
	}
	r := addrRange{u.address(low), u.address(high)}
	if high.class == classNumber { // a length
		r.high += r.low
	}
	return append(dst, r), nil
}

// readRanges reads .debug_ranges: pairs, relative to a base. (DWARF 4, 2.17.3)
func (u *unit) readRanges(dst []addrRange, off uint64) ([]addrRange, error) {
	c := u.d.at(Ranges, off)
	base := u.address(u.root[atLow])
	baseMark := ^uint64(0) >> (64 - 8*u.addrSize)
	for c.err == nil {
		low, high := c.uint(u.addrSize), c.uint(u.addrSize)
		switch {
		case low == 0 && high == 0:
			return dst, c.err
		case low == baseMark:
			base = high
		default:
			dst = c.addRange(dst, base+low, base+high)
		}
	}
	return dst, c.err
}

// addRange appends a range, unless it is empty.
func (c *cursor) addRange(dst []addrRange, low, high uint64) []addrRange {
	if low >= high {
		c.spend(1, 0)
		return dst
	}
	c.spend(1, rangeBytes)
	return append(dst, addrRange{low, high})
}

// Kinds of range list entries, DW_RLE_*. (DWARF 5, 7.25)
const (
	rleEnd          = 0
	rleBaseAddrx    = 1
	rleStartxEndx   = 2
	rleStartxLength = 3
	rleOffsetPair   = 4
	rleBase         = 5
	rleStartEnd     = 6
	rleStartLength  = 7
)

// readRnglists reads .debug_rnglists. (DWARF 5, 2.17.3)
func (u *unit) readRnglists(dst []addrRange, v value) ([]addrRange, error) {
	c := u.d.at(RngLists, v.u)
	if v.class == classRngIndex {
		base := u.root[atRngBase].u
		off := u.d.indexed(RngLists, base, v.u, u.offsetSize)
		if c = u.d.at(RngLists, base+off); off == 0 {
			c.fail("list %d is not in the table", v.u)
		}
	}
	base := u.address(u.root[atLow])
	addr := func() uint64 { return c.uint(u.addrSize) }
	addrx := func() uint64 { return u.address(value{class: classAddrIndex, u: c.uleb()}) }
	for c.err == nil {
		var low, high uint64
		switch kind := c.u8(); kind {
		case rleEnd:
			return dst, c.err
		case rleBaseAddrx:
			base = addrx()
		case rleStartxEndx:
			low = addrx()
			high = addrx()
		case rleStartxLength:
			low = addrx()
			high = low + c.uleb()
		case rleOffsetPair:
			low = base + c.uleb()
			high = base + c.uleb()
		case rleBase:
			base = addr()
		case rleStartEnd:
			low = addr()
			high = addr()
		case rleStartLength:
			low = addr()
			high = low + c.uleb()
		default:
			c.fail("range of kind %d, expected 0 to 7", kind)
		}
		dst = c.addRange(dst, low, high)
	}
	return dst, c.err
}
