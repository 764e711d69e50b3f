package conformance

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// check is one operation on a vector.
type check struct {
	*operation
	v      *Vector
	word   int     // to ask for, 32 or 64
	asked  Request // as written
	spills []int   // positions of spill bits in the request's data or, of an encoder, in its answer
}

// newCheck returns the check of a vector. An implementation that supports only 32-bit words is
// asked vectors of word 64 at word 32, if the answer is the same.
func newCheck(v *Vector, op Op, hello Hello) check {
	o := op.row()
	c := check{operation: o, v: v, word: v.Word, asked: o.in.request(v), spills: v.Spills(op)}
	if v.Word == 64 && hello.only32() && o.at32 != nil && o.at32(v, o.blob) {
		c.word = 32
	}
	r := &c.asked
	r.Op, r.Word, r.Lenient, r.Machine, r.Search = op, c.word, v.Lenient, v.Machine, v.Search
	return c
}

// request returns the request for a setting of the spill bits.
func (c *check) request(how variant, seed uint64) Request {
	r := c.asked
	if how.kind != asWritten {
		r.Data = c.spill(how, seed)
	}
	return r
}

// expected returns the expected answer.
func (c *check) expected() Answer {
	if c.v.Rejects() || c.expect == nil {
		return *c.v.Want
	}
	return c.expect(c)
}

// judge reports whether an answer is right. warning describes a violated SHOULD of SPEC.md, or
// is ""; byReason reports whether it is about the reason of a rejection.
func (c *check) judge(a Answer) (right bool, warning string, byReason bool) {
	w := c.expected()
	switch {
	case a.Outcome != w.Outcome:
		return false, "", false
	case a.Outcome == Reject:
		if a.Reason != w.Reason && a.Reason != "" {
			return true, fmt.Sprintf("rejected for %s, expected %s", a.Reason, w.Reason), true
		}
		if at, ok := c.place(); ok && a.Reason != "" && a.Bit >= 0 && a.Bit != at {
			return true, fmt.Sprintf("rejected at bit %d, expected bit %d", a.Bit, at), false
		}
		return true, "", false
	case c.compare != nil:
		right, warning = c.compare(c, a)
		return right, warning, false
	}
	return a.Value.Equal(w.Value) && a.Depth == w.Depth && a.Sized == w.Sized && a.Words == w.Words &&
		bytes.Equal(a.Data, w.Data), "", false
}

// place is the bit of the blob at which a rejection is to be reported; ok is false
// where SPEC.md does not define it.
func (c *check) place() (bit int, ok bool) {
	if !c.placed || c.v.Want.Reason == "short" {
		return 0, false
	}
	blob, err := c.blob(c.v)
	if err != nil {
		return 0, false
	}
	reason, bit := rejection(codec.Decoder{Word: c.word}.Decode(new(codec.Stack), nil, blob))
	return bit, reason == c.v.Want.Reason
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

// want describes the expected answer.
func (c *check) want() string {
	w := c.expected()
	switch {
	case c.v.Rejects():
	case c.says != nil:
		return c.out.verb + " that says " + w.Words
	case c.v.Head.AnySpill && c.out.verb == blobOutput.verb:
		return w.Describe(c.Op) + ", spill bits aside"
	}
	return w.Describe(c.Op)
}

// got describes an answer.
func (c *check) got(a Answer) string {
	if a.Outcome == OK && c.says != nil && !c.v.Rejects() {
		return a.Describe(c.Op) + ": " + c.says(c.asked.Words, string(a.Data))
	}
	return a.Describe(c.Op)
}

// expectBlob returns the blob that an encoder must write.
func expectBlob(c *check) Answer {
	blob, _ := c.v.Expected()
	return Answer{Outcome: OK, Data: blob, Bit: -1}
}

// expectText returns the text that format must write.
func expectText(c *check) Answer { return Answer{Outcome: OK, Data: []byte(c.v.Formatted()), Bit: -1} }

// expectWords returns what the lines of a writer must say.
func expectWords(c *check) Answer { return Answer{Outcome: OK, Words: c.asked.Words, Bit: -1} }

// Expected returns the blob that encoding must return, and whether its spill bits count.
func (v *Vector) Expected() (blob []byte, exact bool) {
	if v.Head.AnySpill {
		return v.Blob, false
	}
	return v.machineSpills(v.Blob), true
}

// machineSpills returns blob with the spill bits that the vector's machine writes: 1 after
// values with bit 31 set on wrap machines, else 0.
// (BT-FIELD-3, BT-MACH-2)
func (v *Vector) machineSpills(blob []byte) []byte {
	out := bytes.Clone(blob)
	wrap := v.Machine == codec.MachineWrap32 || v.Machine == codec.MachineWrap64
	fields, _ := codec.Decoder{}.AppendFields(nil, blob)
	for _, p := range fields {
		if hasSpill(p) {
			bitstring.SetBit(out, p.Off+p.Width, byte(b2i(wrap && p.Value>>31&1 == 1)))
		}
	}
	return out
}

// Formatted returns the text that format must return.
func (v *Vector) Formatted() string {
	if v.In == nil && v.Line != "" {
		return v.Line
	}
	return *v.Text
}

// compareBlob compares blobs, without their spill bits where these depend on the compiler.
func compareBlob(c *check, a Answer) (right bool, warning string) {
	want, exact := c.v.Expected()
	got := a.Data
	if !exact && len(got) == len(want) {
		got, want = bytes.Clone(got), bytes.Clone(want)
		bitstring.Clear(got, c.spills)
		bitstring.Clear(want, c.spills)
	}
	return bytes.Equal(got, want), ""
}

// compareLines compares lines, which may have any form, by what they say.
func compareLines(c *check, a Answer) (right bool, warning string) {
	return c.says(c.asked.Words, string(a.Data)) == "", ""
}

// compareDumps compares dumps, whose paths may be in any order.
func compareDumps(c *check, a Answer) (right bool, warning string) {
	return sameDumps(c.v.Want.Words, a.Words)
}
