package stats

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// sampleLimit is how much text of records is kept to try gzip and zstd on, in bytes.
const sampleLimit = 8 << 20

// usage counts bits by what they are for: by the kind of their field, and two
// more.
type usage [int(codec.FieldText) + 2]uint64

const (
	useSpill   = int(codec.FieldText)     // in place of text, which no bit is of
	usePadding = int(codec.FieldText) + 1 // what of the user bits only fills a byte
)

func (u *usage) add(f codec.Field) {
	n := uint64(f.Width)
	switch {
	case f.Kind == codec.FieldUser && f.Width < 8 && f.Value == 0:
		u[usePadding] += n
	case f.Kind == codec.FieldUser || f.Kind == codec.FieldLength:
		u[f.Kind] += n
	default:
		u[f.Kind] += n
		u[useSpill]++
	}
}

func (u *usage) addTimes(v *usage, times uint64) {
	for i, n := range v {
		u[i] += n * times
	}
}

// path is a call path: its addresses as recorded, and what was allocated there.
type path struct {
	n     int   // place among all paths
	next  *path // another whose addresses have the same hash
	pcs   []uint64
	hurt  uint32  // frames of which the low 31 bits alone are true
	width []uint8 // bits of each frame's literal, or of the one it is a delta from; nil before a blob was seen
	count uint64
	bytes uint64
	sizes []sized

	// Of the path's first blob, everything before the size. Others are alike, or are
	// counted one by one.
	prefix     []byte
	prefixBits int
	uses       usage
}

// sized counts the allocations of a path whose size has bits significant bits.
type sized struct {
	bits    int
	count   uint64 // all
	blobs   uint64 // of these, recorded as blobs
	regular uint64 // of these, with the path's prefix and no more than padding after the size
}

// Collector gathers a dump. The zero Collector is not ready; see [NewCollector].
type Collector struct {
	paths map[uint64]*path // by hash of addresses
	order []*path          // as they came

	records  uint64
	blobs    uint64 // of records, those recorded as blobs
	payload  uint64
	frames   uint64
	depths   counts
	lens     counts    // of recorded blobs, in bytes
	worse    [2]uint64 // recorded blobs longer than the raw stack of 32- and 64-bit words
	size     [65]sizeClass
	odd      usage // of blobs that are not regular
	oddBlobs uint64
	fields   []codec.Field

	text       []byte // of the first records, a line each
	textBytes  uint64 // of all
	textIsHere bool   // there was text
}

// sizeClass is the allocations whose size has so many significant bits.
type sizeClass struct{ count, bytes uint64 }

// NewCollector returns an empty collector.
func NewCollector() *Collector { return &Collector{paths: map[uint64]*path{}} }

// Records is how many allocations were added.
func (c *Collector) Records() uint64 { return c.records }

// Add takes in an allocation: its stack as decoded, the blob it was recorded as
// (nil if it was not), and its text in the log (nil if it has none). All stay the
// caller's.
func (c *Collector) Add(s *codec.Stack, blob, text []byte) {
	p := c.path(s.PCs, s.Marks.Lossy)
	n := significant(s.Size)
	p.count++
	p.bytes = satAdd(p.bytes, s.Size)
	class := p.sizeOf(n)
	class.count++
	c.records++
	c.payload = satAdd(c.payload, s.Size)
	c.frames += uint64(len(s.PCs))
	c.depths.add(len(s.PCs), 1)
	c.size[n].count++
	c.size[n].bytes = satAdd(c.size[n].bytes, s.Size)
	if text != nil {
		c.textIsHere = true
		c.textBytes += uint64(len(text)) + 1
		if len(c.text) < sampleLimit {
			c.text = append(append(c.text, text...), '\n')
		}
	}
	if blob == nil {
		return
	}
	c.blobs++
	c.lens.add(len(blob), 1)
	for i, word := range words {
		if len(blob) > rawBytes(len(s.PCs), word) {
			c.worse[i]++
		}
	}
	class.blobs++
	if p.width == nil {
		p.learn(c.fieldsOf(blob), blob)
	}
	if p.regular(blob, n) {
		class.regular++
		return
	}
	c.oddBlobs++
	for _, f := range c.fieldsOf(blob) {
		c.odd.add(f)
	}
}

// words are the widths in bits that a target's word can have.
var words = [2]int{32, 64}

// rawBytes is what a stack takes without compression: its addresses and the size, a
// word each.
func rawBytes(depth, word int) int { return word / 8 * (depth + 1) }

// fieldsOf is every field of a blob that has been decoded.
func (c *Collector) fieldsOf(blob []byte) []codec.Field {
	c.fields, _ = codec.AppendFields(c.fields[:0], blob)
	return c.fields
}

func significant(v uint64) int { return bits.Len64(v | 1) }

// path finds the entry of a call path, or makes it.
func (c *Collector) path(pcs []uint64, hurt uint32) *path {
	h := hashOf(pcs)
	first := c.paths[h]
	for p := first; p != nil; p = p.next {
		if slices.Equal(p.pcs, pcs) {
			return p
		}
	}
	p := &path{n: len(c.order), next: first, pcs: slices.Clone(pcs), hurt: hurt}
	c.paths[h] = p
	c.order = append(c.order, p)
	return p
}

// hashOf spreads call paths; which are the same is for others to tell.
func hashOf(pcs []uint64) uint64 {
	h := uint64(len(pcs)) + 0x9e3779b97f4a7c15
	for _, pc := range pcs {
		hi, lo := bits.Mul64(h^pc, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	return h
}

func (p *path) sizeOf(n int) *sized {
	for i := range p.sizes {
		if p.sizes[i].bits == n {
			return &p.sizes[i]
		}
	}
	p.sizes = append(p.sizes, sized{bits: n})
	return &p.sizes[len(p.sizes)-1]
}

// learn takes from a first blob what all blobs of the path should have.
func (p *path) learn(fields []codec.Field, blob []byte) {
	p.width = make([]uint8, len(p.pcs))
	back := 0
	for _, f := range fields {
		switch f.Kind {
		case codec.FieldBack:
			back = int(f.Value) + 1
		case codec.FieldLiteral:
			p.width[f.Frame] = uint8(f.Width)
		case codec.FieldDelta:
			p.width[f.Frame] = p.width[f.Frame-back]
		case codec.FieldSizeCount:
			p.prefixBits = f.Off
			p.prefix = bytes.Clone(blob[:f.Off/8+1])
			return
		}
		p.uses.add(f)
	}
}

// regular says whether a blob is the path's prefix, a size of n bits, padding, and
// length, and nothing else.
func (p *path) regular(blob []byte, n int) bool {
	whole, rest := p.prefixBits/8, p.prefixBits%8
	if len(blob) != codec.BlobLen(p.prefixBits+sizeBits(n)) || !bytes.Equal(blob[:whole], p.prefix[:whole]) ||
		(blob[whole]^p.prefix[whole])>>(8-rest) != 0 {
		return false
	}
	at := uint(blob[whole])<<8 | uint(blob[whole+1])
	return int((at<<rest>>10)&63) == n&63 && zeroFill(blob, p.prefixBits+sizeBits(n))
}

// zeroFill says whether the bits of blob from bit pos to its length are all 0.
func zeroFill(blob []byte, pos int) bool {
	return pos%8 == 0 || blob[pos/8]<<(pos%8) == 0
}

// sizeBits is what the size takes of a blob if it has n significant bits: count,
// value, and their spill bits.
func sizeBits(n int) int { return 6 + 1 + n + 1 }

// eachSize goes through all allocations, by path and width of size.
func (c *Collector) eachSize(do func(p *path, s sized)) {
	for _, p := range c.order {
		for _, s := range p.sizes {
			do(p, s)
		}
	}
}
