package stats

import (
	"math"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
)

// Collector collects the records of a dump. The zero Collector is not usable; see
// [NewCollector].
type Collector struct {
	word  int // word size at which blobs are decoded; 64 if that of the encoder is not known
	paths pathTable

	records     uint64
	blobs       uint64 // number of records that are blobs
	payload     uint64 // saturates
	payloadOver bool   // payload is saturated
	frames      uint64
	depths      counts
	lens        counts    // of recorded blobs, in bytes
	worse       [2]uint64 // recorded blobs longer than the raw stack of 32- and 64-bit words
	fields      []codec.Field
}

// NewCollector returns an empty collector for records that were decoded at a word of 32
// or 64 bits, see [codec.Decoder].
func NewCollector(word int) *Collector {
	if word != 32 && word != 64 {
		panic("stats: the word must be 32 or 64 bits")
	}
	return &Collector{word: word, paths: pathTable{index: map[uint64]int32{}}}
}

// Records returns the number of allocations added.
func (c *Collector) Records() uint64 { return c.records }

// Add adds an allocation: its decoded stack, and its blob, nil if it was not recorded as a blob. It does
// not retain them. A blob that cannot be decoded at the word of the Collector counts by its length.
func (c *Collector) Add(s *codec.Stack, blob []byte) {
	p := c.paths.find(s)
	if blob != nil && !p.recorded {
		c.record(p, blob)
	}
	if p.length == 0 {
		c.paths.encode(p, s.PCs)
	}
	class := c.paths.sizeOf(p, significant(s.Size))
	class.count++
	c.records++
	c.payloadOver = c.payloadOver || c.payload > math.MaxUint64-s.Size
	c.payload = satAdd(c.payload, s.Size)
	c.frames += uint64(len(s.PCs))
	c.depths.add(len(s.PCs), 1)
	if blob == nil {
		return
	}
	class.blobs++
	c.blobs++
	c.lens.add(len(blob), 1)
	for i, word := range words {
		if len(blob) > rawBytes(len(s.PCs), word) {
			c.worse[i]++
		}
	}
}

// record stores a blob as the recorded form of path p, if it can be decoded.
func (c *Collector) record(p *path, blob []byte) {
	var err error
	if c.fields, err = (codec.Decoder{Word: c.word}).AppendFields(c.fields[:0], blob); err != nil {
		return
	}
	for _, f := range c.fields {
		if f.Kind == "size count" {
			c.paths.keep(p, blob, c.word)
			p.end, p.recorded = uint16(f.Off), true
			return
		}
	}
}

// words are the word sizes of targets, in bits.
var words = [2]int{32, 64}

// rawBytes returns the size in bytes of an uncompressed stack: one word per address and
// one for the size.
func rawBytes(depth, word int) int { return word / 8 * (depth + 1) }

// fieldsOf returns every field of a blob that can be decoded. The result is valid until the next call.
func (c *Collector) fieldsOf(blob []byte, word int) []codec.Field {
	var err error
	if c.fields, err = (codec.Decoder{Word: word}).AppendFields(c.fields[:0], blob); err != nil {
		panic("stats: a blob that cannot be decoded: " + err.Error())
	}
	return c.fields
}

func significant(v uint64) int { return bits.Len64(v | 1) }

// sizeBits returns the number of bits in a blob that a size of n significant bits
// takes: count, value, and their spill bits. (BT-SIZE-1)
func sizeBits(n int) int { return 6 + 1 + n + 1 }
