// Package naive is a second reader of the format, for tests: written from SPEC.md to be
// obviously correct, it processes one bit at a time. Tests compare the codec with it. It is
// slow, and shares no code with package codec.
package naive

import (
	"fmt"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// Field is one field of a blob.
type Field struct {
	Name  string // depth kind back sign count literal delta size user length
	Frame int    // -1 if none
	Off   int    // bits from the blob's start
	Width int    // bits, without the spill bit
	Value uint64 // the low 64 bits
}

// HasSpill reports whether a spill bit follows the field. (BT-FIELD-1)
func (f Field) HasSpill() bool { return f.Name != "user" && f.Name != "length" }

// End returns the position of the bit after the field and its spill bit.
func (f Field) End() int {
	if f.HasSpill() {
		return f.Off + f.Width + 1
	}
	return f.Off + f.Width
}

// Stack is the content of a blob, its loss flags and its fields.
type Stack struct {
	Depth     int // by the depth field
	PCs       []uint64
	Size      uint64
	Wide      []bool // the frame's own count is over 32
	Lossy     []bool // only the frame's low 31 bits are right (BT-LOSS-3)
	SizeLossy bool
	Fields    []Field
}

// Spills returns the positions of the spill bits.
func (s *Stack) Spills() []int {
	var at []int
	for _, f := range s.Fields {
		if f.HasSpill() {
			at = append(at, f.Off+f.Width)
		}
	}
	return at
}

// FieldBits returns the number of bits that the fields up to the size take.
func (s *Stack) FieldBits() int {
	n := 0
	for _, f := range s.Fields {
		if f.HasSpill() {
			n = f.End()
		}
	}
	return n
}

// Digest returns the values of the fields without spill bits. Blobs that differ only in
// spill bits have equal digests.
func (s *Stack) Digest() string {
	text := ""
	for _, f := range s.Fields {
		text += fmt.Sprintf("%d:%x ", f.Width, f.Value)
	}
	return text
}

// Rejection is the reason to reject a blob.
type Rejection struct {
	Reason string
	Bit    int // start of the faulty field
}

// Error returns the reason and the position.
func (r *Rejection) Error() string { return fmt.Sprintf("%s at bit %d", r.Reason, r.Bit) }

// Decode reads a blob. word is the word size of the encoder, 64 if it is not known.
// With a rejection, the stack holds the frames and fields before the fault. (BT-BLOB-1,
// BT-BLOB-2, BT-BLOB-4, BT-DEPTH-2)
func Decode(blob []byte, word int) (Stack, *Rejection) {
	if len(blob) < 2 {
		return Stack{}, &Rejection{"short", 0}
	}
	end := 8 * (len(blob) - 2)
	length := 256*int(blob[len(blob)-2]) + int(blob[len(blob)-1])
	switch {
	case length == 0:
		return Stack{}, &Rejection{"empty", end}
	case length != len(blob):
		return Stack{}, &Rejection{"length", end}
	}
	bits := bitstring.Unpack(blob)
	s, rejected := readAnyDepth(bits[:end], word)
	if rejected != nil {
		return s, rejected
	}
	if next := s.FieldBits(); next < end {
		s.Fields = append(s.Fields, Field{Name: "user", Frame: -1, Off: next, Width: end - next,
			Value: bitstring.Number(bits[next:end])})
	}
	s.Fields = append(s.Fields, Field{Name: "length", Frame: -1, Off: end, Width: 16, Value: uint64(length)})
	return s, nil
}

// readAnyDepth distinguishes an empty stack from one of 32 frames. (BT-DEPTH-2)
func readAnyDepth(bits []byte, word int) (Stack, *Rejection) {
	if len(bits) < 6 || bitstring.Number(bits[:5]) != 0 {
		return read(bits, -1, word)
	}
	empty, notEmpty := read(bits, 0, word)
	full, notFull := read(bits, 32, word)
	switch { // the order of BT-DEPTH-2
	case notEmpty == nil && len(bits)-empty.FieldBits() < 8:
		return empty, nil
	case notFull == nil:
		return full, nil
	case notEmpty == nil:
		return empty, nil
	case len(bits) >= 8*46:
		return full, notFull
	}
	return empty, notEmpty
}

// Salvage reads the trustworthy part of a blob that was truncated at its end. It
// returns the announced depth, whether the size is complete, and the reason why nothing
// can be trusted, "" if something can. (BT-SALV-1, BT-SALV-2)
func Salvage(data []byte, word int) (s Stack, depth int, sized bool, reason string) {
	s, rejected := Decode(data, word)
	if rejected == nil {
		return s, len(s.PCs), true, ""
	}
	switch rejected.Reason {
	case "length", "empty", "short":
	default:
		return Stack{}, 0, false, rejected.Reason // the length is right: damaged, not truncated
	}
	if len(data) == 0 || data[0]>>3 == 0 {
		return Stack{}, 0, false, rejected.Reason // 32 frames, or empty with user bits
	}
	depth = int(data[0] >> 3)
	s, cut := read(bitstring.Unpack(data), depth, word)
	if cut == nil {
		return s, depth, true, ""
	}
	if cut.Reason != "truncated" {
		return Stack{}, depth, false, cut.Reason
	}
	return s, depth, false, ""
}

// reader takes fields from the front of bits.
type reader struct {
	bits []byte
	pos  int
	word int
	Stack
}

// read reads the fields of a blob with depth frames; if depth is -1, the depth field
// gives their number.
func read(bits []byte, depth, word int) (Stack, *Rejection) {
	r := &reader{bits: bits, word: word}
	rejected := r.stack(depth)
	return r.Stack, rejected
}

func (r *reader) stack(depth int) *Rejection {
	said, rejected := r.field("depth", -1, 5)
	if rejected != nil {
		return rejected
	}
	if depth < 0 {
		depth = int(said)
	}
	r.Depth = depth
	for n := range depth {
		if rejected := r.frame(n); rejected != nil {
			return rejected
		}
	}
	r.Size, _, r.SizeLossy, rejected = r.value("size", -1)
	return rejected
}

// frame reads a literal or a delta. (BT-ITEM-1, BT-LIT-1, BT-DELTA-1, BT-DELTA-2, BT-DELTA-3, BT-DELTA-4,
// BT-DELTA-5, BT-DELTA-6)
func (r *reader) frame(n int) *Rejection {
	at := r.pos
	kind, rejected := r.field("kind", n, 1)
	switch {
	case rejected != nil:
		return rejected
	case kind == 0:
		v, wide, lossy, rejected := r.value("literal", n)
		r.add(v, wide, lossy, rejected)
		return rejected
	case n == 0:
		return &Rejection{"delta-first", at}
	}
	at = r.pos
	back, rejected := r.field("back", n, 3)
	if rejected != nil {
		return rejected
	}
	base := n - 1 - int(back)
	if base < 0 {
		return &Rejection{"back", at}
	}
	sign, rejected := r.field("sign", n, 1)
	if rejected != nil {
		return rejected
	}
	v, wide, lossy, rejected := r.value("delta", n)
	if sign == 1 {
		v = -v
	}
	v += r.PCs[base]
	if r.word == 32 {
		v %= 1 << 32
	}
	r.add(v, wide, lossy || r.Lossy[base], rejected)
	return rejected
}

func (r *reader) add(pc uint64, wide, lossy bool, rejected *Rejection) {
	if rejected == nil {
		r.PCs = append(r.PCs, pc)
		r.Wide = append(r.Wide, wide)
		r.Lossy = append(r.Lossy, lossy)
	}
}

// value reads a count and a value of as many bits, and reports whether the value is
// wide and whether it is lossy. (BT-COUNT-2, BT-COUNT-4, BT-LOSS-2)
func (r *reader) value(name string, frame int) (v uint64, wide, lossy bool, rejected *Rejection) {
	at := r.pos
	c, rejected := r.field("count", frame, 6)
	if rejected != nil {
		return 0, false, false, rejected
	}
	count := int(c)
	if count == 0 {
		count = 64
	}
	if count > r.word {
		return 0, false, false, &Rejection{"count", at}
	}
	v, rejected = r.field(name, frame, count)
	if rejected != nil || count <= 32 {
		return v, false, false, rejected
	}
	high, low := v>>32, v%(1<<32)
	zero := high == 0
	wrap := high == low%(1<<(count-32)) // the upper bits repeat the lowest
	return v, true, low>>31 == 1 && (zero || wrap), nil
}

// field reads width bits and the spill bit after them. (BT-FIELD-1, BT-FIELD-4)
func (r *reader) field(name string, frame, width int) (uint64, *Rejection) {
	if r.pos+width+1 > len(r.bits) {
		return 0, &Rejection{"truncated", r.pos}
	}
	v := bitstring.Number(r.bits[r.pos : r.pos+width])
	r.Fields = append(r.Fields, Field{Name: name, Frame: frame, Off: r.pos, Width: width, Value: v})
	r.pos += width + 1
	return v, nil
}
