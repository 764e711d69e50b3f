package dwarf

import (
	"bytes"
	"encoding/binary"
)

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

func (c *cursor) u16() uint16 {
	b := c.take(2)
	if b == nil {
		return 0
	}
	if c.big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (c *cursor) u24() uint32 {
	b := c.take(3)
	if b == nil {
		return 0
	}
	if c.big {
		return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	}
	return uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
}

func (c *cursor) u32() uint32 {
	b := c.take(4)
	if b == nil {
		return 0
	}
	if c.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *cursor) u64() uint64 {
	b := c.take(8)
	if b == nil {
		return 0
	}
	if c.big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// uint reads an integer of 1, 2, 4 or 8 bytes.
func (c *cursor) uint(size int) uint64 {
	switch size {
	case 1:
		return uint64(c.u8())
	case 2:
		return uint64(c.u16())
	case 4:
		return uint64(c.u32())
	case 8:
		return c.u64()
	}
	c.fail()
	return 0
}

// offset reads a section offset, 8 bytes in 64-bit DWARF.
func (c *cursor) offset(dwarf64 bool) uint64 {
	if dwarf64 {
		return c.u64()
	}
	return uint64(c.u32())
}

// length reads an initial length and reports whether 64-bit DWARF follows.
func (c *cursor) length() (n uint64, dwarf64 bool) {
	n = uint64(c.u32())
	if n == 0xffffffff {
		return c.u64(), true
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
