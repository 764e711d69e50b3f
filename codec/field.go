package codec

import "encoding/binary"

// FieldKind is the kind of a field of a blob, as in the list below. The names are those of SPEC.md.
//
//	depth        number of frames
//	kind         0 literal, 1 delta
//	back         how far back the base is, less one
//	sign         0 add, 1 subtract
//	count        significant bits of a frame's value
//	literal      value of a literal
//	delta        value of a delta
//	size count   significant bits of the size
//	size         bytes requested
//	user bits    bits after the size: padding, or user bits
//	length       length of the blob in bytes
//	text         not a bit field: a position in a line of text
type FieldKind string

const (
	fieldDepth     FieldKind = "depth"
	fieldKindBit   FieldKind = "kind"
	fieldBack      FieldKind = "back"
	fieldSign      FieldKind = "sign"
	fieldCount     FieldKind = "count"
	fieldLiteral   FieldKind = "literal"
	fieldDelta     FieldKind = "delta"
	fieldSizeCount FieldKind = "size count"
	fieldSize      FieldKind = "size"
	fieldUser      FieldKind = "user bits"
	fieldLength    FieldKind = "length"
	fieldText      FieldKind = "text"
)

// Nominal widths in bits. Each field except user bits and length is followed by one
// spill bit. (BT-FIELD-1)
const (
	depthWidth  = 5
	kindWidth   = 1
	backWidth   = 3
	signWidth   = 1
	countWidth  = 6
	spillWidth  = 1
	lengthWidth = 16
	tagWidth    = 4 // of a user field (BT-UF-1)

	depthBits   = depthWidth + spillWidth
	countBits   = countWidth + spillWidth
	backEnd     = kindWidth + spillWidth + backWidth
	signEnd     = backEnd + spillWidth + signWidth
	literalLead = kindWidth + spillWidth // before the count
	deltaLead   = signEnd + spillWidth
	literalHead = literalLead + countBits // before the value
	deltaHead   = deltaLead + countBits

	tagBits = tagWidth + spillWidth

	lengthBytes = lengthWidth / 8
)

// Field is one field of a blob.
type Field struct {
	Kind  FieldKind
	Frame int    // frame of the field, -1 if none
	Off   int    // first bit, from the start of the blob
	Width int    // value bits, without the spill bit
	Value uint64 // of user bits, at most the first 64
	Spill bool   // the spill bit; false if the field has none
}

// End returns the position of the bit after the field and its spill bit.
func (f Field) End() int {
	if f.Kind == fieldUser || f.Kind == fieldLength {
		return f.Off + f.Width
	}
	return f.Off + f.Width + spillWidth
}

// windowBits is the least number of valid bits that window returns.
const windowBits = 57

// window returns the bits of b from bit pos on, the first in the top bit. At least
// windowBits of them are valid; bits after the end of b are zero. b holds at least 8
// bytes.
func window(b []byte, pos int) uint64 {
	off := pos >> 3
	last := len(b) - 8
	if off <= last {
		return binary.BigEndian.Uint64(b[off:]) << (pos & 7)
	}
	return binary.BigEndian.Uint64(b[last:]) << uint(8*(off-last)+pos&7)
}

// bitsAt returns n bits (0 to 64) of b from bit pos on. Bits after the end of b are zero.
func bitsAt(b []byte, pos int, n uint) uint64 {
	if n <= windowBits {
		return window(b, pos) >> 1 >> (63 - n)
	}
	high := window(b, pos) >> 32
	low := bitsAt(b, pos+32, n-32)
	return high<<(n-32) | low
}

// padded returns b, or a zero-padded copy in buf if b is too short for window.
func padded(b []byte, buf *[8]byte) []byte {
	if len(b) >= len(buf) {
		return b
	}
	copy(buf[:], b)
	return buf[:]
}

// buffer is the output of a bitWriter. MaxBlobUser bytes and 8 more fit; the size is a
// power of 2 and 8, so that masking an index with 511 keeps it in bounds.
type buffer [512 + 8]byte

// bitWriter appends bits to a buffer.
type bitWriter struct {
	next uint   // index of the byte that the next bits of acc go to
	acc  uint64 // its n lowest bits are not yet in a complete byte
	n    uint   // 0 to 7
}

// put writes the low width bits of v; width is 1 to windowBits, and the other bits of v
// are 0.
func (w bitWriter) put(buf *buffer, v uint64, width uint) bitWriter {
	acc, n := w.acc<<(width&63)|v, w.n+width
	binary.BigEndian.PutUint64(buf[w.next&511:], acc<<((64-n)&63))
	return bitWriter{w.next + n>>3, acc, n & 7}
}

// bytes returns the number of bytes written, including a partial last byte. (BT-BLOB-1)
func (w bitWriter) bytes() int { return int(w.next + (w.n+7)>>3) }
