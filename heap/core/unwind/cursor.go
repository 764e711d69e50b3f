package unwind

import (
	"bytes"
	"encoding/binary"
)

// cursor reads numbers from b. Past the end of b, it sets bad and returns 0.
type cursor struct {
	b     []byte
	off   int
	order binary.ByteOrder
	bad   bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b)-c.off {
		c.bad = true
		c.off = len(c.b)
		return nil
	}
	c.off += n
	return c.b[c.off-n : c.off]
}

// uint reads a number of 1, 2, 4 or 8 bytes.
func (c *cursor) uint(size int) uint64 {
	b := c.take(size)
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(c.order.Uint16(b))
	case 4:
		return uint64(c.order.Uint32(b))
	case 8:
		return c.order.Uint64(b)
	}
	return 0
}

func (c *cursor) u8() uint8   { return uint8(c.uint(1)) }
func (c *cursor) u16() uint16 { return uint16(c.uint(2)) }
func (c *cursor) u32() uint32 { return uint32(c.uint(4)) }
func (c *cursor) u64() uint64 { return c.uint(8) }

// maxLEB is the most bytes of a LEB128 number. 64 bits take 10 bytes; assemblers may
// add padding.
const maxLEB = 16

func (c *cursor) uleb() (v uint64) {
	for shift := 0; shift < 7*maxLEB; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 || c.bad {
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) sleb() (v int64) {
	for shift := 0; shift < 7*maxLEB; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		if b&0x80 == 0 || c.bad {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) cstring() []byte {
	s, _, ok := bytes.Cut(c.b[c.off:], []byte{0})
	if c.off += len(s) + 1; !ok {
		c.off, c.bad = len(c.b), true
		return nil
	}
	return s
}
