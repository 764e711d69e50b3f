package stats

import (
	"math"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
)

// sampleLimit is the number of bytes of record text that are kept to measure gzip and zstd.
const sampleLimit = 8 << 20

// Collector collects the records of a dump. The zero Collector is not usable; see
// [NewCollector].
type Collector struct {
	word  int // word size at which blobs are decoded; 64 if that of the encoder is not known
	paths pathTable

	records     uint64
	blobs       uint64 // number of records that are blobs
	payload     uint64 // saturates
	payloadOver bool   // payload is saturated
	deep        uint64 // allocations of more frames than lws captures
	frames      uint64
	depths      counts
	lens        counts    // of recorded blobs, in bytes
	worse       [2]uint64 // recorded blobs longer than the raw stack of 32- and 64-bit words
	irregular   usage     // of blobs that are not regular
	fields      []codec.Field

	text      []byte // of the first records, one per line
	textBytes uint64 // of all records
	hasText   bool
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

// Add adds an allocation: its decoded stack, its blob (nil if it was not recorded as a blob),
// and its text in the log (nil if it has none). It does not retain them. Of a blob that cannot
// be decoded at the word of the Collector, only the fields before the fault count.
func (c *Collector) Add(s *codec.Stack, blob, text []byte) { c.add(s, blob, text, 1) }

// AddPath adds n allocations of one call path, each of s.Size bytes, from a record of call
// paths. It uses the innermost 31 frames, the most that lws captures.
func (c *Collector) AddPath(s *codec.Stack, n uint64) {
	const most = codec.MaxDepth - 1
	if len(s.PCs) > most {
		c.deep += n
		s = &codec.Stack{PCs: s.PCs[:most], Size: s.Size}
	}
	if n > 0 {
		c.add(s, nil, nil, n)
	}
}

// add adds n equal allocations; n is 1 if blob or text is not nil.
func (c *Collector) add(s *codec.Stack, blob, text []byte, n uint64) {
	size := significant(s.Size)
	p := c.paths.find(s)
	if blob != nil && !p.recorded {
		c.record(p, blob)
	}
	if p.length == 0 {
		c.paths.encode(p, s.PCs)
	}
	class := c.paths.sizeOf(p, size)
	hi, bytes := bits.Mul64(s.Size, n)
	if hi != 0 {
		bytes = math.MaxUint64
	}
	class.count += n
	class.bytes = satAdd(class.bytes, bytes)
	c.records += n
	c.payloadOver = c.payloadOver || hi != 0 || c.payload > math.MaxUint64-bytes
	c.payload = satAdd(c.payload, bytes)
	c.frames += uint64(len(s.PCs)) * n
	c.depths.add(len(s.PCs), n)
	if text != nil {
		c.hasText = true
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
	if c.paths.regular(p, blob, size) {
		class.regular++
		return
	}
	c.fields, _ = codec.Decoder{Word: c.word}.AppendFields(c.fields[:0], blob)
	for _, f := range c.fields {
		c.irregular.add(f)
	}
}

// record stores a blob as the recorded form of path p, if it can be decoded.
func (c *Collector) record(p *path, blob []byte) {
	var err error
	if c.fields, err = (codec.Decoder{Word: c.word}).AppendFields(c.fields[:0], blob); err != nil {
		return
	}
	for _, f := range c.fields {
		if f.Kind == codec.FieldSizeCount {
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

// usage counts bits by the kind of their field, with two more kinds.
type usage [int(codec.FieldText) + 2]uint64

const (
	useSpill   = int(codec.FieldText)     // in place of FieldText, which is not a bit field
	usePadding = int(codec.FieldText) + 1 // user bits that only fill the last byte
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
