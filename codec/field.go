package codec

import (
	"encoding/binary"
	"fmt"
)

// FieldKind names a field of a blob, in the words of SPEC.md.
type FieldKind uint8

const (
	FieldDepth     FieldKind = iota // number of frames
	FieldKindBit                    // 0 literal, 1 delta
	FieldBack                       // how far back the base is, less one
	FieldSign                       // 0 add, 1 subtract
	FieldCount                      // significant bits of a frame's value
	FieldLiteral                    // value of a literal
	FieldDelta                      // value of a delta
	FieldSizeCount                  // significant bits of the size
	FieldSize                       // bytes asked for
	FieldUser                       // what follows the size: padding, or a user's bits
	FieldLength                     // length of the blob in bytes
	FieldText                       // not a bit field: a place in a line of text
)

var fieldNames = [...]string{"depth", "kind", "back", "sign", "count", "literal", "delta",
	"size count", "size", "user bits", "length", "text"}

// String returns the name of the field, as errors have it.
func (k FieldKind) String() string {
	if int(k) < len(fieldNames) {
		return fieldNames[k]
	}
	return fmt.Sprintf("field(%d)", uint8(k))
}

// Nominal widths in bits; each field but user bits and length is followed by
// one spill bit more. (BT-FIELD-1)
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

// Field is one field as it stands in a blob.
type Field struct {
	Kind  FieldKind
	Frame int    // frame it belongs to, -1 if none
	Off   int    // first bit, from the start of the blob
	Width int    // value bits, without the spill bit
	Value uint64 // for user bits, their first 64 at the most
	Spill bool   // the spill bit; false where a field has none
}

// End returns the bit after the field, its spill bit included.
func (f Field) End() int {
	if f.Kind == FieldUser || f.Kind == FieldLength {
		return f.Off + f.Width
	}
	return f.Off + f.Width + spillWidth
}

// windowBits is how many bits a window has at least.
const windowBits = 57

// window returns the bits of b from bit pos on, the first in the top bit: at
// least windowBits of them, zeros after the end of b. b holds 8 bytes or more.
func window(b []byte, pos int) uint64 {
	off := pos >> 3
	last := len(b) - 8
	if off <= last {
		return binary.BigEndian.Uint64(b[off:]) << (pos & 7)
	}
	return binary.BigEndian.Uint64(b[last:]) << uint(8*(off-last)+pos&7)
}

// bitsAt returns n bits (0 to 64) of b from bit pos on, as window reads them.
func bitsAt(b []byte, pos int, n uint) uint64 {
	if n <= windowBits {
		return window(b, pos) >> 1 >> (63 - n)
	}
	high := window(b, pos) >> 32
	low := bitsAt(b, pos+32, n-32)
	return high<<(n-32) | low
}

// padded returns b, or a copy in buf where b is too short for window.
func padded(b []byte, buf *[8]byte) []byte {
	if len(b) >= len(buf) {
		return b
	}
	copy(buf[:], b)
	return buf[:]
}

// buffer is what a bitWriter writes to: MaxBlobUser bytes and 8 more, and of a length
// that lets an index be masked, not checked.
type buffer [512 + 8]byte

// bitWriter appends bits to a buffer.
type bitWriter struct {
	next uint   // byte that acc's bits go to
	acc  uint64 // the bits not yet in complete bytes are its lowest
	n    uint   // how many those are, 0 to 7
}

// put writes the low width bits of v, 1 to windowBits; v has no bit above them.
func (w bitWriter) put(buf *buffer, v uint64, width uint) bitWriter {
	acc, n := w.acc<<(width&63)|v, w.n+width
	binary.BigEndian.PutUint64(buf[w.next&511:], acc<<((64-n)&63))
	return bitWriter{w.next + n>>3, acc, n & 7}
}

// bytes returns how many bytes were written, the last one padded. (BT-BLOB-1)
func (w bitWriter) bytes() int { return int(w.next + (w.n+7)>>3) }
