package alloc

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// The number of places that all searches in one image may try: probesPerWord for each of its words,
// and minProbes to maxProbes.
const (
	probesPerWord = 16
	minProbes     = 1 << 16
	maxProbes     = 1 << 27
)

func probes(m *core.Image) int {
	bytes := uint64(0)
	for i := range m.Segments() {
		bytes += uint64(len(m.Segments()[i].Data))
	}
	return int(min(minProbes+bytes/uint64(m.PointerSize())*probesPerWord, maxProbes))
}

// The number of intact headers in a row that end a search for the next one. Headers that are only
// a size need more.
const (
	confirm     = 3
	confirmSize = 12
)

// chain is a range of memory that is full of chunks: each begins with a header that has its size.
type chain struct {
	f          *finder
	h          *Heap
	start, end uint64
	align      uint64 // of chunks, relative to start
	least      uint64 // size of a chunk
	confirm    int
	field      uint64 // offset of the size in a header
	overlap    uint64 // bytes of the next header that belong to a used block
	// read reads the header of a chunk. why is not empty if the header cannot be one. If the chunk has a size then,
	// only the copy of the size behind the block is wrong.
	read func(addr uint64) (c chunk, why string)
	// strict is used in searches for the next intact header; walk sets it to read if it is nil.
	strict func(addr uint64) (c chunk, why string)
	// last reports whether the chain may end at an address before end; nil if it may not.
	last func(addr uint64) bool
	wary int // blocks behind damage that are still doubtful: the place where headers are intact again may be random
}

// doubtful is the number of blocks before and behind an overwritten header that are doubtful: their headers may be bytes
// of other blocks.
const doubtful = 2

// chunk is a header with the memory that belongs to it.
type chunk struct {
	size  uint64 // to the next header, with this header
	block Block
	// alone reports whether no header can be where the next one should be: either this header was overwritten, or
	// the next one.
	alone bool
	// odd is what else contradicts the header, "" if nothing: at address oddAt, in the header behind the block or in a
	// list of free blocks.
	odd   string
	oddAt uint64
	link  bool // oddAt is that of a link in a list of free blocks
}

// walk appends the blocks of the chain to the heap, in order of addresses. Where a header is not
// intact, it goes on at the next place from which the headers are. It returns the end of the
// chain: c.end if the chain is complete.
func (c *chain) walk() uint64 {
	if c.strict == nil {
		c.strict = c.read
	}
	for at := c.start; at < c.end; {
		if c.f.blocks == 0 {
			return at
		}
		x, why := c.read(at)
		if why == "" && x.size > c.end-at {
			why = fmt.Sprintf("a size of %#x, expected up to %#x", x.size, c.end-at)
		}
		if why == "" && x.alone {
			if next, ok := c.resync(at); ok && next < at+x.size && c.crosses(next, at+x.size) {
				why = fmt.Sprintf("the header leads to %#x, where no header is", at+x.size)
			}
		}
		if why == "" {
			c.accept(at, &x)
			at += x.size
			continue
		}
		if _, known := c.f.m.Uint(at, 1); !known || c.last != nil && c.last(at) {
			return at
		}
		if x.size > 0 && x.size <= c.end-at && c.intact(at+x.size) {
			c.damaged(at, at+x.size, why)
			c.h.Blocks[len(c.h.Blocks)-1].State = x.block.State
			at += x.size
			continue
		}
		next, ok := c.resync(at)
		if !ok {
			return at
		}
		c.damaged(at, next, why)
		at = next
	}
	return c.end
}

// accept adds the block of a chunk whose header is intact, and what contradicts it.
func (c *chain) accept(at uint64, x *chunk) {
	c.add(x.block)
	n := len(c.h.Blocks) - 1
	if c.wary > 0 {
		c.wary--
		c.h.Blocks[n].doubt()
	}
	if x.odd == "" {
		return
	}
	d := Damage{Addr: x.oddAt, Part: core.DamagedNode, What: x.odd, Before: n, Block: n}
	switch {
	case x.link:
		d.Part, d.Block = core.DamagedFreed, -1
	case x.oddAt < at+x.size:
		d.Before--
	default: // the next header: it may be no header
		c.wary = doubtful
	}
	c.h.doubt(d, n)
}

// parts is walk for chunks in parts, with memory of others between them. Each part but the last ends with some bytes of
// end marks. The parts are memory of the heap, from base on, and up to limit, which is behind the last chunk.
func (c *chain) parts(base, limit, marks uint64, atMarks func(addr uint64) bool) uint64 {
	last, end := c.last, c.end
	defer func() { c.last = last }()
	c.last = atMarks
	for {
		reached := c.walk()
		if reached == end {
			c.h.own(base, limit-base)
			return end
		}
		c.h.own(base, reached+marks-base)
		next := end
		if atMarks(reached) {
			next, _ = c.resync(reached)
		}
		if next >= end || next <= reached {
			return reached
		}
		c.start, base = next, next
	}
}

func (c *chain) add(b Block) {
	c.f.blocks--
	c.f.m.Passed(min(b.Size, pageSize))
	if n := len(c.h.Blocks); n == cap(c.h.Blocks) && n >= 1<<16 && b.Addr > c.start { // large heaps: about as many as will come
		more := float64(n) * float64(c.end-b.Addr) / float64(b.Addr-c.start)
		c.h.Blocks = slices.Grow(c.h.Blocks, int(min(1.05*more, core.MaxBlocks))+1<<12)
	}
	c.h.Blocks = append(c.h.Blocks, b)
}

// damaged adds a damaged header, and a block that ends at the next intact header.
func (c *chain) damaged(at, next uint64, why string) {
	before := len(c.h.Blocks) - 1
	header := min(c.header(), next-at)
	b := Block{Addr: at + header, Size: next + c.overlap - at - header, Header: uint16(header), Trust: Damaged}
	c.add(b)
	c.h.Damage = append(c.h.Damage, Damage{Addr: at + c.field, Part: core.DamagedNode, What: why, Before: before, Block: len(c.h.Blocks) - 1, Lost: next - at})
	for i := max(0, before+1-doubtful); i <= before; i++ {
		c.h.Blocks[i].doubt()
	}
	c.wary = doubtful
}

// header returns the size of the headers: that of the last block, if there is one.
func (c *chain) header() uint64 {
	if n := len(c.h.Blocks); n > 0 {
		return c.h.Blocks[n-1].header()
	}
	return 2 * c.f.ptr
}

// resync returns the first place after a damaged header from which the headers are intact up to
// the end of the chain, or at least the next few.
func (c *chain) resync(at uint64) (next uint64, ok bool) {
	for p := at + up(c.least, c.align); p < c.end; p += c.align {
		if c.f.budget <= 0 {
			return 0, false
		}
		if c.intact(p) {
			return p, true
		}
	}
	return c.end, true // the damaged chunk is the last
}

// crosses reports whether headers from p on lead past an address, where no header is.
func (c *chain) crosses(p, addr uint64) bool {
	for p < addr {
		c.f.budget--
		x, why := c.strict(p)
		if why != "" || x.size > c.end-p {
			return false
		}
		p += x.size
	}
	return p > addr
}

// intact reports whether the headers from p on are.
func (c *chain) intact(p uint64) bool {
	n := 0
	for ; n < c.confirm && p < c.end; n++ {
		c.f.budget--
		x, why := c.strict(p)
		if why != "" || x.odd != "" || x.size > c.end-p {
			return false
		}
		p += x.size
	}
	return n > 0
}
