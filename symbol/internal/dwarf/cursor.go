package dwarf

import "bytes"

// cursor reads a section from front to back. A read past the end returns zero and sets bad,
// so callers check bad once per entry.
type cursor struct {
	b   []byte
	off int
	big bool // byte order
	bad bool
}

// at returns a cursor at offset off of section b. The cursor is bad if off is past the end.
func (o order) at(b []byte, off uint64) cursor {
	if off > uint64(len(b)) {
		return cursor{bad: true, big: bool(o)}
	}
	return cursor{b: b, off: int(off), big: bool(o)}
}

// order is the byte order of a file, true for big-endian.
type order bool

func (c *cursor) fail() { c.bad, c.off = true, len(c.b) }

// take returns the next n bytes, or nil if fewer remain.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b)-c.off {
		c.fail()
		return nil
	}
	c.off += n
	return c.b[c.off-n : c.off]
}

func (c *cursor) skip(n uint64) {
	if n > uint64(len(c.b)-c.off) {
		c.fail()
		return
	}
	c.off += int(n)
}

func (c *cursor) u8() uint8 {
	if c.off >= len(c.b) {
		c.fail()
		return 0
	}
	c.off++
	return c.b[c.off-1]
}

// uint reads an integer of size bytes, 1 to 8.
func (c *cursor) uint(size int) (v uint64) {
	if size < 1 || size > 8 {
		c.fail()
		return 0
	}
	b := c.take(size)
	if c.big {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// offset reads a section offset, 8 bytes in 64-bit DWARF.
func (c *cursor) offset(dwarf64 bool) uint64 {
	if dwarf64 {
		return c.uint(8)
	}
	return c.uint(4)
}

// length reads an initial length and reports whether 64-bit DWARF follows.
func (c *cursor) length() (n uint64, dwarf64 bool) {
	n = c.uint(4)
	if n == 0xffffffff {
		return c.uint(8), true
	}
	if n >= 0xfffffff0 { // reserved
		c.fail()
	}
	return n, false
}

// maxLEB is the most bytes of a LEB128 number. 64 bits take 10 bytes; assemblers may add
// padding.
const maxLEB = 16

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); shift < 7*maxLEB; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return v
		}
	}
	c.fail()
	return 0
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); shift < 7*maxLEB; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		if b < 0x80 {
			if shift += 7; shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
	c.fail()
	return 0
}

// skipString moves past a string and its zero.
func (c *cursor) skipString() {
	n := bytes.IndexByte(c.b[c.off:], 0)
	if n < 0 {
		c.fail()
		return
	}
	c.off += n + 1
}

// str reads a zero-terminated string.
func (c *cursor) str() []byte {
	start := c.off
	c.skipString()
	if c.bad {
		return nil
	}
	return c.b[start : c.off-1]
}

// maxString is the length to which strings are cut, in bytes. The longest names of C++
// programs have about 10,000.
const maxString = 1 << 15

// stringAt returns the zero-terminated string at an offset of a section, or nil if there is
// none.
func stringAt(b []byte, off uint64) []byte {
	if off >= uint64(len(b)) {
		return nil
	}
	b = b[off:]
	b = b[:min(len(b), maxString)]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		return b[:n]
	}
	if len(b) == maxString {
		return b
	}
	return nil
}
