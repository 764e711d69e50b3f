package core

import "encoding/binary"

// cursor reads numbers from a table that may be truncated. It sets bad at the end of
// the table.
type cursor struct {
	b     []byte
	off   int
	word  int // bits
	order binary.ByteOrder
	bad   bool
}

// uint reads an unsigned number of 1, 2, 4 or 8 bytes. It returns 0 past the end.
func (c *cursor) uint(size int) uint64 {
	if c.off < 0 || c.off > len(c.b)-size {
		c.bad = true
		return 0
	}
	p := c.b[c.off:][:size]
	c.off += size
	return uintOf(p, c.order)
}

func (c *cursor) u16() uint64 { return c.uint(2) }
func (c *cursor) u32() uint64 { return c.uint(4) }
func (c *cursor) ptr() uint64 { return c.uint(c.word / 8) }

// bytes returns the next n bytes, or nil past the end.
func (c *cursor) bytes(n uint64) []byte {
	if c.off < 0 || n > uint64(len(c.b)-c.off) {
		c.bad = true
		return nil
	}
	p := c.b[c.off:][:n]
	c.off += int(n)
	return p
}

func (c *cursor) left() int { return len(c.b) - c.off }
