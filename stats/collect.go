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
// or 64 bits, see [codec.DecodeWord].
func NewCollector(word int) *Collector {
	if word != 32 && word != 64 {
		panic("stats: the word must be 32 or 64 bits")
	}
	return &Collector{word: word}
}

// Records returns the number of allocations added.
func (c *Collector) Records() uint64 { return c.records }

// Add adds an allocation: its decoded stack, its blob (nil if it was not recorded as a blob),
// and its text in the log (nil if it has none). It does not retain them.
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
	p, regular := c.findPath(s, blob, size)
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
	if regular {
		class.regular++
		return
	}
	for _, f := range c.fieldsOf(blob) {
		c.irregular.add(f)
	}
}

// EachAddress calls do with every address of every distinct call path, as recorded. If
// lossy is true, only the low 31 bits of pc are known.
func (c *Collector) EachAddress(do func(pc uint64, lossy bool)) {
	var s codec.Stack
	for n := range c.paths.len() {
		p := c.paths.path(n)
		c.paths.decode(&s, p)
		for i, pc := range s.PCs {
			do(pc, p.lossy>>i&1 == 1)
		}
	}
}

// findPath returns the path of s, and adds it if it is new. regular reports whether
// blob consists of the recorded bits of the path, a size of size bits, padding and
// length, and nothing else.
func (c *Collector) findPath(s *codec.Stack, blob []byte, size int) (p *path, regular bool) {
	hash := hashOf(s.PCs)
	for at, ok := c.paths.index.first(hash); ok; at, ok = c.paths.index.next(hash, at) {
		p := c.paths.at(at)
		if blob != nil && p.recorded && p.regular(c.paths.bitsOf(p), blob, size) {
			return p, true // the same bits: the same addresses
		}
		if c.paths.equal(p, s.PCs) {
			if blob != nil && !p.recorded {
				c.record(p, blob)
			}
			return p, blob != nil && p.regular(c.paths.bitsOf(p), blob, size)
		}
	}
	p = c.paths.add(hash)
	p.lossy = s.Marks.Lossy
	if blob != nil {
		c.record(p, blob)
		return p, p.regular(c.paths.bitsOf(p), blob, size)
	}
	c.paths.encode(p, s.PCs)
	return p, false
}

// record stores a decoded blob as the recorded form of path p.
func (c *Collector) record(p *path, blob []byte) {
	for _, f := range c.fieldsOf(blob) {
		if f.Kind == codec.FieldSizeCount {
			p.recorded = true
			c.paths.keep(p, blob, f.Off, c.word)
			return
		}
	}
}

// words are the word sizes of targets, in bits.
var words = [2]int{32, 64}

// rawBytes returns the size in bytes of an uncompressed stack: one word per address and
// one for the size.
func rawBytes(depth, word int) int { return word / 8 * (depth + 1) }

// fieldsOf returns every field of a valid blob.
func (c *Collector) fieldsOf(blob []byte) []codec.Field {
	c.fields, _ = codec.AppendFieldsWord(c.fields[:0], blob, c.word)
	return c.fields
}

func significant(v uint64) int { return bits.Len64(v | 1) }

// hashOf returns a 32-bit hash of a call path.
func hashOf(pcs []uint64) uint32 {
	h := uint64(len(pcs)) + 0x9e3779b97f4a7c15
	for _, pc := range pcs {
		hi, lo := bits.Mul64(h^pc, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	return uint32(h ^ h>>32)
}

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
