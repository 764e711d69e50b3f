// Package naive is a second codec, written from SPEC.md to be plainly right: it
// takes one bit at a time, out of a string of the characters 0 and 1. The
// reference codec is tested against it. It is slow, shares nothing with that, and
// only tests import it.
package naive

import (
	"fmt"
	"strings"
)

// Stack is what a blob holds, and what can be told of it.
type Stack struct {
	PCs      []uint64
	Size     uint64
	Wide     []bool // the frame's own count is over 32
	Hurt     []bool // only the frame's low 31 bits are right (BT-LOSS-3)
	SizeHurt bool
	End      int    // bit after the size
	Spills   []int  // where the spill bits are
	Digest   string // the bits, with a dot in place of each spill bit
}

// Rejection is why there is no stack.
type Rejection struct {
	Reason string
	Bit    int // where the field begins that is at fault
}

func (r *Rejection) Error() string { return fmt.Sprintf("%s at bit %d", r.Reason, r.Bit) }

// Bits writes bytes out as 0 and 1.
func Bits(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		fmt.Fprintf(&b, "%08b", c)
	}
	return b.String()
}

// Bytes is the reverse, with as many zeros at the end as make a byte complete.
func Bytes(bits string) []byte {
	for len(bits)%8 != 0 {
		bits += "0"
	}
	data := []byte{}
	for ; bits != ""; bits = bits[8:] {
		data = append(data, byte(number(bits[:8])))
	}
	return data
}

func number(bits string) uint64 {
	v := uint64(0)
	for _, bit := range bits {
		v = v * 2
		if bit == '1' {
			v = v + 1
		}
	}
	return v
}

// Decode reads a blob, knowing nothing of the encoder's word if word is 64.
func Decode(blob []byte, word int) (Stack, *Rejection) {
	if len(blob) < 2 {
		return Stack{}, &Rejection{"short", 0}
	}
	bits := Bits(blob)
	fields := bits[:len(bits)-16]
	switch int(number(bits[len(bits)-16:])) {
	case len(blob):
	case 0:
		return Stack{}, &Rejection{"empty", len(fields)}
	default:
		return Stack{}, &Rejection{"length", len(fields)}
	}
	if len(fields) < 6 || number(fields[:5]) != 0 {
		return read(fields, -1, word)
	}
	empty, notEmpty := read(fields, 0, word)
	full, notFull := read(fields, 32, word)
	switch { // the order of BT-DEPTH-2
	case notEmpty == nil && len(fields)-empty.End < 8:
		return empty, nil
	case notFull == nil:
		return full, nil
	case notEmpty == nil:
		return empty, nil
	case len(blob)-2 >= 46:
		return Stack{}, notFull
	}
	return Stack{}, notEmpty
}

// reader takes fields from the front of bits.
type reader struct {
	bits string
	pos  int
	word int
	Stack
}

// field takes width bits and the spill bit behind them. (BT-FIELD-1)
func (r *reader) field(width int) uint64 {
	if r.pos+width+1 > len(r.bits) {
		panic(&Rejection{"truncated", r.pos})
	}
	v := r.bits[r.pos : r.pos+width]
	r.pos += width + 1
	r.Spills = append(r.Spills, r.pos-1)
	r.Digest += v + "."
	return number(v)
}

// value takes a count and as many bits, and judges what wrote them.
func (r *reader) value() (v uint64, wide, hurt bool) {
	at := r.pos
	count := int(r.field(6))
	if count == 0 {
		count = 64
	}
	if count > r.word {
		panic(&Rejection{"count", at})
	}
	v = r.field(count)
	if count <= 32 {
		return v, false, false
	}
	text := fmt.Sprintf("%0*b", count, v)
	high, low := text[:count-32], text[count-32:]
	zero := strings.Trim(high, "0") == ""
	wrap := strings.HasSuffix(low, high)
	return v, true, low[0] == '1' && (zero || wrap)
}

// read reads fields with depth frames, or with as many as it says if depth is -1.
func read(fields string, depth, word int) (s Stack, rejected *Rejection) {
	r := &reader{bits: fields, word: word}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Rejection:
			s, rejected = r.Stack, p // the frames before are there, for Salvage
		default:
			panic(p)
		}
	}()
	said := int(r.field(5))
	if depth < 0 {
		depth = said
	}
	for n := 0; n < depth; n++ {
		r.frame(n)
	}
	r.Size, _, r.SizeHurt = r.value()
	r.End = r.pos
	return r.Stack, nil
}

func (r *reader) frame(n int) {
	at := r.pos
	if r.field(1) == 0 {
		v, wide, hurt := r.value()
		r.add(v, wide, hurt)
		return
	}
	if n == 0 {
		panic(&Rejection{"delta-first", at})
	}
	at = r.pos
	base := n - 1 - int(r.field(3))
	if base < 0 {
		panic(&Rejection{"back", at})
	}
	subtract := r.field(1) == 1
	v, wide, hurt := r.value()
	if subtract {
		v = -v
	}
	v += r.PCs[base]
	if r.word == 32 {
		v %= 1 << 32
	}
	r.add(v, wide, hurt || r.Hurt[base])
}

func (r *reader) add(pc uint64, wide, hurt bool) {
	r.PCs = append(r.PCs, pc)
	r.Wide = append(r.Wide, wide)
	r.Hurt = append(r.Hurt, hurt)
}

// Salvage reads what is certain of a blob that was cut at its end: the depth
// announced, and whether the size was there. (BT-SALV-1, BT-SALV-2)
func Salvage(data []byte) (s Stack, depth int, sized bool) {
	switch s, rejected := Decode(data, 64); {
	case rejected == nil:
		return s, len(s.PCs), true
	case rejected.Reason == "length", rejected.Reason == "empty", rejected.Reason == "short":
	default:
		return Stack{}, 0, false // it has its right length: damaged, not cut
	}
	bits := Bits(data)
	if len(bits) == 0 || len(data) == 2 && number(bits) == 0 {
		return Stack{}, 0, false
	}
	depth = int(number(bits[:5]))
	if depth == 0 {
		if len(data) <= 11 {
			return Stack{}, 0, false
		}
		depth = 32
	}
	s, cut := read(bits, depth, 64)
	if cut == nil {
		return s, depth, true
	}
	if cut.Reason != "truncated" {
		return Stack{}, depth, false
	}
	return s, depth, false
}
