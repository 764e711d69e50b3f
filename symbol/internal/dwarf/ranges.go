package dwarf

import "fmt"

type addrRange struct{ low, high uint64 }

// rangeBytes is the memory per range in bytes, including the growth of slices.
const rangeBytes = 48

// appendRanges appends the addresses of an entry: its DW_AT_ranges, or low and
// high PC.
func (u *unit) appendRanges(dst []addrRange, low, high, ranges value) ([]addrRange, error) {
	if ranges.form != 0 {
		if u.version >= 5 {
			return u.readRnglists(dst, ranges)
		}
		return u.readRanges(dst, ranges.u)
	}
	if low.form == 0 || high.form == 0 {
		return dst, nil
	}
	r := addrRange{low: u.address(low)}
	if r.high = u.address(high); !high.isAddress() {
		r.high = r.low + high.u
	}
	return append(dst, r), nil
}

// readRanges reads .debug_ranges: pairs, relative to a base. (DWARF 4, 2.17.3)
func (u *unit) readRanges(dst []addrRange, off uint64) ([]addrRange, error) {
	c := u.d.at(u.d.Ranges, off)
	base := u.low
	baseMark := ^uint64(0) >> (64 - 8*u.addrSize)
	for {
		if !u.d.Budget.Step(1) {
			return dst, ErrBudget
		}
		low, high := c.uint(u.addrSize), c.uint(u.addrSize)
		switch {
		case c.bad:
			return dst, fmt.Errorf(".debug_ranges %#x: list without an end", off)
		case low == 0 && high == 0:
			return dst, nil
		case low == baseMark:
			base = high
		case low < high:
			if !u.d.Budget.Alloc(rangeBytes) {
				return dst, ErrBudget
			}
			dst = append(dst, addrRange{base + low, base + high})
		}
	}
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
	off := v.u
	if v.form == formRnglistx {
		if v.u > uint64(len(u.d.RngLists)) {
			return dst, fmt.Errorf(".debug_rnglists: index %d beyond its end", v.u)
		}
		c := u.d.at(u.d.RngLists, u.rngBase+v.u*uint64(u.offsetSize()))
		off = u.rngBase + c.offset(u.dwarf64)
		if c.bad {
			return dst, fmt.Errorf(".debug_rnglists: index %d beyond its end", v.u)
		}
	}
	c := u.d.at(u.d.RngLists, off)
	base := u.low
	addrx := func() uint64 { return u.address(value{form: formAddrx, u: c.uleb()}) }
	for {
		if !u.d.Budget.Step(1) {
			return dst, ErrBudget
		}
		kind := c.u8()
		var r addrRange
		switch kind {
		case rleEnd:
			if c.bad {
				return dst, fmt.Errorf(".debug_rnglists %#x: list without an end", off)
			}
			return dst, nil
		case rleBaseAddrx:
			base = addrx()
		case rleStartxEndx:
			r.low = addrx()
			r.high = addrx()
		case rleStartxLength:
			r.low = addrx()
			r.high = r.low + c.uleb()
		case rleOffsetPair:
			r.low = base + c.uleb()
			r.high = base + c.uleb()
		case rleBase:
			base = c.uint(u.addrSize)
		case rleStartEnd:
			r.low = c.uint(u.addrSize)
			r.high = c.uint(u.addrSize)
		case rleStartLength:
			r.low = c.uint(u.addrSize)
			r.high = r.low + c.uleb()
		default:
			return dst, fmt.Errorf(".debug_rnglists %#x: entry of kind %d, expected 0 to 7", c.off-1, kind)
		}
		if r.low < r.high {
			if !u.d.Budget.Alloc(rangeBytes) {
				return dst, ErrBudget
			}
			dst = append(dst, r)
		}
	}
}
