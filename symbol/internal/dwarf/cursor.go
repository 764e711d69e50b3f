package dwarf

import (
	"bytes"
	"cmp"
	"fmt"
)

// cursor reads a section from front to back. Once a read fails, err is set and all reads
// return zero, so callers check err once per entry.
type cursor struct {
	d       *Data // for its byte order and budget
	section Section
	b       []byte // the section, or its first part
	ready   int    // how many bytes of b are inflated
	off     int
	err     error // the first error
}

// at returns a cursor at an offset of a section.
func (d *Data) at(s Section, off uint64) cursor { return d.within(s, off, d.Sections[s].size) }

// within returns a cursor at an offset of a section, which ends at another.
func (d *Data) within(s Section, off, end uint64) cursor {
	content := &d.Sections[s]
	content.begin(d.Budget)
	c := cursor{d: d, section: s, b: content.b[:min(end, uint64(len(content.b)))]}
	c.ready = min(content.ready, len(c.b))
	if content.b == nil && content.err != nil {
		c.err = fmt.Errorf("%s: %w", s, content.err)
	}
	c.skip(off)
	return c
}

// fail sets err to a message with the offset, unless it is set.
func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s %#x: %s", c.section, c.off, fmt.Sprintf(format, args...))
	}
	c.off = len(c.b)
}

// spend uses steps and bytes of the budget.
func (c *cursor) spend(steps int, bytes int64) {
	if b := c.d.Budget; !b.Step(steps) || !b.Alloc(bytes) {
		c.err, c.off = ErrBudget, len(c.b)
	}
}

// need reports whether n more bytes remain, and inflates them.
func (c *cursor) need(n uint64) bool {
	if n > uint64(len(c.b)-c.off) {
		c.fail("data ends early")
		return false
	}
	if end := c.off + int(n); end > c.ready {
		content := &c.d.Sections[c.section]
		content.inflate(end)
		if c.ready = min(content.ready, len(c.b)); end > c.ready {
			c.fail("%v", content.err)
			return false
		}
	}
	return true
}

// take returns the next n bytes, or nil if fewer remain.
func (c *cursor) take(n uint64) []byte {
	if !c.need(n) {
		return nil
	}
	c.off += int(n)
	return c.b[c.off-int(n) : c.off]
}

func (c *cursor) skip(n uint64) {
	if n > uint64(len(c.b)-c.off) {
		c.fail("data ends early")
		return
	}
	c.off += int(n)
}

// continueAt moves to the offset of another cursor of the same data, unless a read of either failed.
func (c *cursor) continueAt(o cursor) {
	c.off = o.off
	if c.err = cmp.Or(c.err, o.err); c.err != nil {
		c.off = len(c.b)
	}
}

func (c *cursor) u8() uint8 {
	if c.off >= c.ready && !c.need(1) {
		return 0
	}
	c.off++
	return c.b[c.off-1]
}

// uint reads an integer of size bytes, 0 to 8.
func (c *cursor) uint(size int) (v uint64) {
	b := c.take(uint64(size))
	if c.d.BigEndian {
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

// length reads an initial length and returns the size of offsets after it: 4, or 8 in
// 64-bit DWARF.
func (c *cursor) length() (n uint64, offsetSize int) {
	n = c.uint(4)
	if n == 0xffffffff {
		return c.uint(8), 8
	}
	if n >= 0xfffffff0 {
		c.fail("the length %#x is reserved", n)
	}
	return n, 4
}

// maxLEB is the most bytes of a LEB128 number. 64 bits take 10 bytes; assemblers may add
// padding.
const maxLEB = 16

// leb reads a LEB128 number and returns its bits and their sign: all bits above them, if
// the highest one is set.
func (c *cursor) leb() (v, sign uint64) {
	for shift := uint(0); shift < 7*maxLEB; shift += 7 {
		b := c.u8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, -uint64(b>>6) << (shift + 7)
		}
	}
	c.fail("a number has more than %d bytes", maxLEB)
	return 0, 0
}

func (c *cursor) uleb() uint64 {
	v, _ := c.leb()
	return v
}

func (c *cursor) sleb() int64 {
	v, sign := c.leb()
	return int64(v | sign)
}

// skipString moves past a string and its zero. It uses a step per 64 bytes.
func (c *cursor) skipString() {
	if !c.need(1) {
		return
	}
	n := bytes.IndexByte(c.b[c.off:c.ready], 0)
	for n < 0 && c.ready < len(c.b) && c.need(min(uint64(len(c.b)-c.off), 2*uint64(c.ready-c.off))) {
		n = bytes.IndexByte(c.b[c.off:c.ready], 0)
	}
	if n < 0 {
		n = len(c.b) - c.off
	}
	c.spend(n/64, 0)
	c.skip(uint64(n) + 1)
}

// maxString is the length to which strings are cut, in bytes. The longest names of C++
// programs have about 10,000.
const maxString = 1 << 15

// stringAt returns the zero-terminated string at an offset of a section, or nil if there is
// none.
func (d *Data) stringAt(s Section, off uint64) []byte {
	c := d.at(s, off)
	end := min(uint64(len(c.b)), uint64(c.off)+maxString)
	c.need(end - uint64(c.off))
	if end = min(end, uint64(c.ready)); off >= end {
		return nil
	}
	b := c.b[off:end]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		return b[:n]
	}
	if len(b) == maxString {
		return b
	}
	return nil
}
