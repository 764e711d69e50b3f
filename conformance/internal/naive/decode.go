package naive

import (
	"slices"

	"github.com/lwsbt/lwsbt/conformance"
)

// bitReader reads fields with the bug of a mutant.
type bitReader struct {
	impl
	data []byte
	pos  int // bit
	at   int // bit at which the last field begins
	end  int // bit at which the fields end
	word int
	pcs  []uint64
	size uint64

	spills []int // positions of spill bits
}

// bit returns the bit at a position. It is 0 past the end of data; some bugs read there.
func (r *bitReader) bit(at int) uint64 {
	if at >= 8*len(r.data) {
		return 0
	}
	if r.has("bits-lsb-first") {
		return uint64(r.data[at/8]) >> (at % 8) & 1
	}
	return uint64(r.data[at/8]) >> (7 - at%8) & 1
}

type fieldSort int

const (
	depthField fieldSort = iota
	headField
	valueField
)

// field reads width bits and the spill bit. (BT-FIELD-1)
func (r *bitReader) field(width int, sort fieldSort) (uint64, error) {
	spill := 1
	if r.has("no-spill") || r.has("no-spill-after-values") && sort == valueField ||
		r.has("no-spill-after-depth") && sort == depthField {
		spill = 0
	}
	r.at = r.pos
	need := width + spill
	if r.has("spill-ends-behind") {
		need = width
	}
	if r.pos+need > r.end && !r.has("truncated-as-zeros") {
		return 0, errTruncated
	}
	var v uint64
	for i := range width {
		bit := r.bit(r.pos + i)
		if r.has("value-lsb-first") && sort == valueField {
			v |= bit << i
		} else {
			v = v<<1 | bit
		}
	}
	r.spills = append(r.spills, r.pos+width)
	r.pos += width + spill
	if spill == 1 && r.bit(r.pos-1) == 1 {
		switch {
		case r.has("spill-must-be-0"):
			return 0, errTruncated
		case r.has("spill-sets-bit-31") && sort == valueField:
			v |= 1 << 31
		}
	}
	return v, nil
}

// value reads a count and a value. (BT-COUNT-1, BT-COUNT-2, BT-COUNT-3, BT-COUNT-4)
func (r *bitReader) value() (uint64, error) {
	count, err := r.count()
	if err != nil {
		return 0, err
	}
	v, err := r.field(count, valueField)
	switch {
	case err != nil:
		return 0, err
	case r.has("count-must-be-least") && count > 1 && v>>(count-1) == 0:
		return 0, errCount
	case r.has("value-32-bits"):
		v &= 1<<32 - 1
	case r.has("value-signed") && v>>31&1 == 1 && r.word == 64:
		v |= 1<<64 - 1<<31
	case r.has("lossy-repaired") && count > 32 && v>>31&1 == 1:
		if high := v >> 32; high == 0 || high == v&(1<<(count-32)-1) {
			v &= 1<<31 - 1
		}
	}
	return v, nil
}

func (r *bitReader) count() (int, error) {
	c, err := r.field(6, headField)
	if err != nil {
		return 0, err
	}
	count := int(c)
	switch {
	case r.has("count-less-one"):
		count++
	case count == 0 && r.has("count-0-refused"):
		return 0, errCount
	case count == 0 && !r.has("count-0-is-0"):
		count = 64
	}
	limit := 64
	if r.word == 32 && !r.has("count-33-at-word-32") || r.has("count-at-most-32") {
		limit = 32
	}
	if r.word == 32 && r.has("count-32-refused") {
		limit = 31
	}
	if count > limit {
		return 0, errCount
	}
	return count, nil
}

// frame reads a literal or a delta. (BT-ITEM-1)
func (r *bitReader) frame() error {
	kind, err := r.field(1, headField)
	if err != nil {
		return err
	}
	if r.has("kind-inverted") {
		kind = 1 - kind
	}
	if kind == 0 {
		v, err := r.value()
		r.pcs = append(r.pcs, v)
		return err
	}
	if len(r.pcs) == 0 && !r.has("delta-first-from-0") {
		if r.has("delta-first-checked-late") && r.end-r.pos < 6 {
			return errTruncated
		}
		return errDeltaFirst
	}
	return r.delta()
}

// delta reads the rest of a delta. (BT-DELTA-1, BT-DELTA-2, BT-DELTA-3, BT-DELTA-4, BT-DELTA-5, BT-DELTA-6)
func (r *bitReader) delta() error {
	widths := []int{3, 1}
	if r.has("sign-before-back") {
		widths = []int{1, 3}
	}
	first, err := r.field(widths[0], headField)
	if err != nil {
		return err
	}
	back, sign := first, first
	var base uint64
	if !r.has("sign-before-back") {
		if base, err = r.base(int(back)); err != nil {
			if r.has("back-checked-late") && r.end-r.pos < 2 {
				return errTruncated
			}
			return err
		}
	}
	second, err := r.field(widths[1], headField)
	if err != nil {
		return err
	}
	if r.has("sign-before-back") {
		if base, err = r.base(int(second)); err != nil {
			return err
		}
	} else {
		sign = second
	}
	d, err := r.value()
	if err != nil {
		return err
	}
	v, err := r.sum(base, d, sign)
	r.pcs = append(r.pcs, v)
	return err
}

func (r *bitReader) base(back int) (uint64, error) {
	n := len(r.pcs)
	at := n - 1 - back
	switch {
	case n == 0: // delta-first-from-0
		return 0, nil
	case r.has("back-off-by-one"):
		at--
	case r.has("back-ignored"):
		at = n - 1
	case r.has("back-from-frame-0"):
		at = back
	}
	switch {
	case back == 7 && r.has("back-at-most-7"), at == 0 && r.has("frame-0-no-base"), at >= n:
		return 0, errBack
	case at < 0 && r.has("back-clamped"):
		return r.pcs[0], nil
	case at < 0 && r.has("back-before-is-0"):
		return 0, nil
	case at < 0:
		return 0, errBack
	}
	return r.pcs[at], nil
}

func (r *bitReader) sum(base, d, sign uint64) (uint64, error) {
	subtract := sign == 1
	switch {
	case r.has("sign-flipped"):
		subtract = !subtract
	case r.has("sign-ignored"):
		subtract = false
	}
	v := base + d
	wraps := v < base
	if subtract {
		v = base - d
		wraps = d > base
		if wraps && r.has("delta-stops-at-0") {
			v = 0
		}
	}
	narrow := r.word == 32 && !r.has("delta-wraps-at-64") || r.has("delta-wraps-at-32")
	if r.has("delta-must-not-wrap") && (wraps || r.word == 32 && v>>32 != 0) {
		return 0, errBack
	}
	if narrow {
		v &= 1<<32 - 1
	}
	return v, nil
}

// read reads depth frames and the size.
func (b impl) read(data []byte, end, depth, word int) (r *bitReader, err error) {
	r = &bitReader{impl: b, data: data, end: end, word: word}
	if _, err := r.field(5, depthField); err != nil {
		return r, err
	}
	if r.has("size-first") {
		if r.size, err = r.value(); err != nil {
			return r, err
		}
	}
	for range depth {
		before := len(r.pcs)
		if err := r.frame(); err != nil {
			r.pcs = r.pcs[:before]
			return r, err
		}
	}
	switch {
	case r.has("size-first"):
	case r.has("size-missing-is-0") && r.end-r.pos < 8:
	default:
		if r.size, err = r.value(); err != nil {
			return r, err
		}
	}
	if r.has("size-32-bits") {
		r.size &= 1<<32 - 1
	}
	left := r.end - r.pos
	for i := 0; left < 8 && i < left && r.has("padding-must-be-0"); i++ {
		if r.bit(r.pos+i) == 1 {
			return r, errTruncated
		}
	}
	if left >= 8 && r.has("user-bits-refused") {
		return r, errLength
	}
	return r, nil
}

// decode reads a blob with its length. (BT-BLOB-1, BT-BLOB-2, BT-DEPTH-2)
func (b impl) decode(blob []byte, word int) (conformance.Value, error) {
	if len(blob) < 2 {
		if b.has("short-accepted") {
			return conformance.Value{}, nil
		}
		return conformance.Value{}, errShort
	}
	fields, err := b.framed(blob)
	if err != nil {
		return conformance.Value{}, err
	}
	if fields == nil {
		return conformance.Value{}, nil // no-metadata-accepted
	}
	end := 8 * len(fields)
	switch {
	case b.has("truncated-reads-length"):
		fields, end = blob, 8*len(blob)
	case b.has("last-byte-ignored"):
		end = max(0, end-8)
	}
	r, err := b.readAnyDepth(fields, end, word)
	if err != nil {
		return conformance.Value{}, err
	}
	if b.has("frames-reversed") {
		slices.Reverse(r.pcs)
	}
	return conformance.Value{Size: r.size, PCs: r.pcs}, nil
}

// framed checks and removes the length.
func (b impl) framed(blob []byte) (fields []byte, err error) {
	n := len(blob)
	fields = blob[:n-2]
	length := int(blob[n-2])<<8 + int(blob[n-1])
	want := n
	switch {
	case b.has("length-in-front"):
		fields, length = blob[2:], int(blob[0])<<8+int(blob[1])
	case b.has("length-little-endian"):
		length = int(blob[n-1])<<8 + int(blob[n-2])
	case b.has("length-8-bits"):
		length, want = length&0xff, n&0xff
	case b.has("length-excludes-itself"):
		want = n - 2
	case b.has("length-of-16-bits"):
		want = n & 0xffff
	case b.has("length-of-15-bits"):
		length &= 0x7fff
	case b.has("length-of-12-bits"):
		length, want = length&0xfff, n&0xfff
	case b.has("length-at-most-1000") && length > 1000, b.has("length-signed") && length > 0x7fff:
		return nil, errLength
	}
	switch {
	case length == 0 && n == 2 && b.has("no-metadata-accepted"):
		return nil, nil
	case b.has("length-ignored"), length == want,
		0 < length && length < want && b.has("length-may-be-less"),
		length > want && b.has("length-may-be-more"):
		return fields, nil
	case length == 0:
		return nil, errEmpty
	}
	return nil, errLength
}

func (b impl) readAnyDepth(fields []byte, end, word int) (*bitReader, error) {
	probe := &bitReader{impl: b, data: fields, end: end}
	said, err := probe.field(5, depthField)
	if err != nil {
		return probe, err
	}
	depth := int(said)
	switch {
	case b.has("depth-less-one"):
		return b.read(fields, end, depth+1, word)
	case depth > 16 && b.has("depth-at-most-16"):
		return probe, errCount
	case depth > 0, b.has("depth-32-as-empty"):
		return b.read(fields, end, depth, word)
	case end >= 46*8 && b.has("depth-0-as-32"):
		return b.read(fields, end, 32, word)
	}
	empty, notEmpty := b.read(fields, end, 0, word)
	if notEmpty == nil && end-empty.pos < 8 {
		return empty, nil
	}
	full, notFull := b.read(fields, end, 32, word)
	switch {
	case notFull == nil && !b.has("depth-at-most-31"):
		return full, nil
	case notFull == nil:
		return full, errCount
	case notEmpty == nil:
		return empty, nil
	case end >= 46*8:
		return full, notFull
	}
	return empty, notEmpty
}

// blobAtEnd returns the blob at the end of memory. (BT-BLOB-3)
func (b impl) blobAtEnd(mem []byte) ([]byte, error) {
	n := len(mem)
	if n < 2 {
		return nil, errShort
	}
	length := int(mem[n-2])<<8 + int(mem[n-1])
	switch b.bug {
	case "end-length-of-12-bits":
		length &= 0xfff
	case "end-length-of-8-bits":
		length &= 0xff
	case "end-memory-of-16-bits":
		n &= 0xffff
	case "end-memory-of-1000":
		if n > 1000 {
			return nil, errLength
		}
	}
	switch {
	case b.has("end-takes-all"):
		return mem, nil
	case length == 0:
		return nil, errEmpty
	case length > n && b.has("end-underrun"):
		return append(slices.Clone(mem[:n-2]), byte(n>>8), byte(n)), nil
	case length == 1, length > n:
		return nil, errLength
	}
	return mem[len(mem)-length:], nil
}
