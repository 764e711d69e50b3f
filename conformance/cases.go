package conformance

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// variant is a setting of the spill bits of a vector. It must make no difference. (BT-FIELD-2)
type variant struct {
	kind variantKind
	n    int // flipped: position of the bit; random: number of the setting
}

type variantKind uint8

const (
	asWritten variantKind = iota
	allClear
	allSet
	flipped
	random
)

// randomVariants is the number of random settings of the spill bits for each vector.
const randomVariants = 4

func (v variant) String() string {
	switch v.kind {
	case allClear:
		return "all spill bits 0"
	case allSet:
		return "all spill bits 1"
	case flipped:
		return fmt.Sprintf("spill bit %d flipped", v.n)
	case random:
		return fmt.Sprintf("random spill bits %d", v.n+1)
	}
	return "as written"
}

// check is one operation on a vector.
type check struct {
	v      *Vector
	op     Op
	word   int   // to ask for, 32 or 64
	spills []int // bit positions in the request's data
}

// newCheck returns the check of a vector. An implementation that supports only 32-bit words is
// asked vectors of word 64 at word 32, if the answer is the same.
func newCheck(v *Vector, op Op, hello Hello) check {
	c := check{v: v, op: op, word: v.Word}
	if v.Word == 64 && hello.only32() && v.sameAt32(op) {
		c.word = 32
	}
	if !kinds[op].text && op != OpFormat && kinds[op].in == "" {
		c.spills = v.Spills(op)
	}
	return c
}

// sameAt32 reports whether a reader at word 32 must give the same answer as at word 64.
func (v *Vector) sameAt32(op Op) bool {
	blob := v.Blob
	switch op {
	case OpMline:
		text := strings.Map(func(r rune) rune {
			if i := strings.IndexRune("-_ \t\r\n=", r); i >= 0 {
				return []rune{'+', '/', -1, -1, -1, -1, -1}[i]
			}
			return r
		}, strings.TrimPrefix(*v.Text, "~m#"))
		var err error
		if blob, err = base64.RawStdEncoding.DecodeString(text); err != nil || v.Want.Reason == "base64" || v.Want.Reason == "lead-in" {
			return v.Rejects() // base64 is checked before the word matters
		}
	case OpEnd:
		length := 0
		if n := len(blob); n >= 2 {
			length = 256*int(blob[n-2]) + int(blob[n-1])
		}
		if length < 2 || length > len(blob) {
			return true
		}
		blob = blob[len(blob)-length:]
	case OpDecode:
	case OpSalvage, OpBare:
		return v.partAt32(op)
	default:
		return false
	}
	var s codec.Stack
	if err := codec.DecodeWord(&s, blob, 32); err != nil {
		reason, _ := rejection(err)
		return reason == v.Want.Reason
	}
	return !v.Rejects() && v.Want.Value.Equal(Value{Size: s.Size, PCs: s.PCs})
}

// partAt32 is sameAt32 for a truncated blob or a bare stack: none of the frames in the input
// may differ.
func (v *Vector) partAt32(op Op) bool {
	var s codec.Stack
	if op == OpBare {
		data := v.Blob
		if v.Bits != nil {
			data = bitstring.Pack(v.Bits.Bits)
		}
		bits, err := codec.DecodeBareWord(&s, data, 32)
		words := fmt.Sprintf("bits=%d pcs=%s", bits, formatPCs(s.PCs))
		return !v.Rejects() && err == nil && v.Want.Words == words
	}
	depth, sized, err := codec.SalvageWord(&s, v.Blob, 32)
	if v.Rejects() {
		reason, _ := rejection(err)
		return reason == v.Want.Reason
	}
	return err == nil && depth == v.Want.Depth && sized == v.Want.Sized && slices.Equal(s.PCs, v.Want.Value.PCs) &&
		(!sized || s.Size == v.Want.Value.Size)
}

// variants returns the settings of the spill bits to ask.
func (c *check) variants() []variant {
	all := []variant{{kind: asWritten}}
	if len(c.spills) == 0 {
		return all
	}
	all = append(all, variant{kind: allClear}, variant{kind: allSet})
	for _, at := range c.spills {
		all = append(all, variant{flipped, at})
	}
	for n := range randomVariants {
		all = append(all, variant{random, n})
	}
	return all
}

// request returns the request for a setting of the spill bits.
func (c *check) request(how variant, seed uint64) Request {
	v := c.v
	r := Request{Op: c.op, Data: v.Blob, Word: c.word, Lenient: v.Lenient, Machine: v.Machine, Search: v.Search}
	switch {
	case kinds[c.op].text:
		r.Data = []byte(*v.Text)
	case kinds[c.op].in != "":
		r.Words = v.given(c.op)
	case c.op.encodes():
		r.In = v.In
	case c.op == OpFormat:
		r.In, r.Words = v.In, v.Words
		if v.Text != nil && v.In == nil && v.Words == "" {
			r.Event = strings.HasPrefix(*v.Text, "~e#")
			if strings.HasPrefix(*v.Text, "~h#") {
				r.Words = v.Want.Words
			}
		}
	case c.op == OpBare && v.Bits != nil:
		r.Data = bitstring.Pack(v.Bits.Bits)
	}
	if how.kind != asWritten {
		r.Data = c.spill(how, seed)
	}
	return r
}

// spill returns the blob with other spill bits.
func (c *check) spill(how variant, seed uint64) []byte {
	data := append([]byte{}, c.request(variant{}, 0).Data...)
	var rng *rand.Rand
	if how.kind == random {
		h := fnv.New64a()
		h.Write([]byte(c.v.ID))
		rng = rand.New(rand.NewPCG(seed, h.Sum64()+uint64(how.n)))
	}
	for _, at := range c.spills {
		switch how.kind {
		case allClear:
			bitstring.SetBit(data, at, 0)
		case allSet:
			bitstring.SetBit(data, at, 1)
		case flipped:
			if at == how.n {
				bitstring.SetBit(data, at, 1-bitstring.Bit(data, at))
			}
		case random:
			bitstring.SetBit(data, at, byte(rng.Uint32()>>31))
		}
	}
	return data
}

// machineSpills returns blob with the spill bits that the vector's machine writes: 1 after
// values with bit 31 set on wrap machines, else 0.
// (BT-FIELD-3, BT-MACH-2)
func (v *Vector) machineSpills(blob []byte) []byte {
	out := append([]byte{}, blob...)
	wrap := v.Machine == codec.MachineWrap32 || v.Machine == codec.MachineWrap64
	fields, _ := codec.AppendFields(nil, blob)
	for _, p := range fields {
		if !hasSpill(p) {
			continue
		}
		set := byte(0)
		if wrap && p.Value>>31&1 == 1 {
			set = 1
		}
		bitstring.SetBit(out, p.Off+p.Width, set)
	}
	return out
}

// Expected returns the blob that encoding must return, and whether its spill bits count.
func (v *Vector) Expected() (blob []byte, exact bool) {
	if v.Head.AnySpill {
		return v.Blob, false
	}
	return v.machineSpills(v.Blob), true
}

// expectedBare returns the bits that bare-encode must return, padded with zeros. (BT-BARE-1,
// BT-FIELD-3, BT-MACH-2)
func (v *Vector) expectedBare() []byte {
	bits := bitstring.Unpack(v.machineSpills(v.Blob))
	return bitstring.Pack(bits[:len(v.Bits.Bits)])
}

// judge reports whether an answer is right. warning describes a violated SHOULD of SPEC.md, or
// is ""; byReason reports whether it is about the reason of a rejection.
func (c *check) judge(a Answer) (right bool, warning string, byReason bool) {
	v := c.v
	switch {
	case v.Rejects():
	case c.op == OpPencode || c.op == OpVencode:
		return a.Outcome == OK && c.written(string(a.Data)) == "", "", false
	case c.op == OpBareEncode:
		return a.Outcome == OK && a.Bits == len(v.Bits.Bits) && string(a.Data) == string(v.expectedBare()), "", false
	case c.op.encodes():
		return a.Outcome == OK && c.sameBlob(a.Data), "", false
	case c.op == OpFormat:
		return a.Outcome == OK && string(a.Data) == v.Formatted(), "", false
	}
	if a.Outcome != v.Want.Outcome {
		return false, "", false
	}
	if a.Outcome == Reject {
		if a.Reason != v.Want.Reason && a.Reason != "" {
			return true, fmt.Sprintf("rejected for %s, expected %s", a.Reason, v.Want.Reason), true
		}
		if at, ok := c.place(); ok && a.Reason != "" && a.Bit >= 0 && a.Bit != at {
			return true, fmt.Sprintf("rejected at bit %d, expected bit %d", a.Bit, at), false
		}
		return true, "", false
	}
	w := v.Want
	if c.op == OpDumps {
		right, warning = sameDumps(w.Words, a.Words)
		return right, warning, false
	}
	return a.Value.Equal(w.Value) && a.Depth == w.Depth && a.Sized == w.Sized && a.Words == w.Words, "", false
}

// place is the bit of the blob at which a rejection is to be reported; ok is false
// where SPEC.md does not define it.
func (c *check) place() (bit int, ok bool) {
	blob := c.v.Blob
	switch c.op {
	case OpDecode, OpMarks, OpUser:
	case OpMline:
		var err error
		if blob, err = c.v.textBlob(); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	if c.v.Want.Reason == "short" {
		return 0, false
	}
	reason, bit := rejection(codec.DecodeWord(new(codec.Stack), blob, c.word))
	return bit, reason == c.v.Want.Reason
}

// textBlob returns the blob in the ~m# line of the vector.
func (v *Vector) textBlob() ([]byte, error) {
	if v.Lenient {
		return codec.ParseLineLenient(nil, []byte(*v.Text))
	}
	return codec.ParseLine(nil, []byte(*v.Text))
}

// rejection returns the reason of an error of the codec, and the bit at which the faulty field
// begins; "" and 0 if err is nil.
func rejection(err error) (reason string, bit int) {
	var e *codec.Error
	if errors.As(err, &e) {
		return string(e.Reason), e.Off
	}
	return "", 0
}

// Formatted returns the text that format must return.
func (v *Vector) Formatted() string {
	if v.In == nil && v.Line != "" {
		return v.Line
	}
	return *v.Text
}

func (c *check) sameBlob(got []byte) bool {
	want, exact := c.v.Expected()
	if !exact {
		if len(got) != len(want) {
			return false
		}
		got, want = append([]byte{}, got...), append([]byte{}, want...)
		bitstring.Clear(got, c.spills)
		bitstring.Clear(want, c.spills)
	}
	return string(got) == string(want)
}

// want describes the expected answer.
func (c *check) want() string {
	switch {
	case c.v.Rejects():
	case c.op == OpPencode || c.op == OpVencode:
		return kinds[c.op].answer + " that says " + c.v.given(c.op)
	case c.op == OpBareEncode:
		return Answer{Outcome: OK, Bits: len(c.v.Bits.Bits), Data: c.v.expectedBare()}.Describe(c.op)
	case c.op.encodes():
		blob, exact := c.v.Expected()
		text := Answer{Outcome: OK, Data: blob}.Describe(c.op)
		if !exact {
			text += ", spill bits aside"
		}
		return text
	case c.op == OpFormat:
		return Answer{Outcome: OK, Data: []byte(c.v.Formatted())}.Describe(c.op)
	}
	return c.shown(*c.v.Want)
}

// got describes an answer.
func (c *check) got(a Answer) string {
	text := c.shown(a)
	if a.Outcome == OK && !c.v.Rejects() && (c.op == OpPencode || c.op == OpVencode) {
		text += ": " + c.written(string(a.Data))
	}
	return text
}

// shown describes an answer. It sorts what may be in any order.
func (c *check) shown(a Answer) string {
	if a.Outcome == OK && c.op == OpDumps {
		a.Words = sortedDumps(a.Words)
	}
	return a.Describe(c.op)
}

// given returns the words that are the input of op: the words of `in:` or, without `in:`, the words
// of `want:`, with max=240 for pencode.
func (v *Vector) given(op Op) string {
	switch {
	case v.WordsOf == kinds[op].in:
		return v.Words
	case op == OpPencode && v.Want != nil:
		return "max=240 " + v.Want.Words
	case op == OpVencode && v.Want != nil:
		return v.Want.Words
	}
	return ""
}

// written describes the fault of the lines that a writer of paths or events wrote, or returns "".
func (c *check) written(text string) string {
	if c.op == OpVencode {
		return sameEvents(c.v.given(c.op), text)
	}
	return samePaths(c.v.given(c.op), text)
}
