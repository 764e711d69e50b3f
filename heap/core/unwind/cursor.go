package unwind

import "encoding/binary"

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

func (c *cursor) u8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return c.order.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return c.order.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return c.order.Uint64(b)
	}
	return 0
}

// addr reads a number of size bytes, 2, 4 or 8.
func (c *cursor) addr(size int) uint64 {
	switch size {
	case 1:
		return uint64(c.u8())
	case 2:
		return uint64(c.u16())
	case 4:
		return uint64(c.u32())
	}
	return c.u64()
}

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
	for i := c.off; i < len(c.b); i++ {
		if c.b[i] == 0 {
			s := c.b[c.off:i]
			c.off = i + 1
			return s
		}
	}
	c.bad = true
	c.off = len(c.b)
	return nil
}
