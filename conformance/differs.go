package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// Differs is the one place in which a vector differs from its control vector.
type Differs struct {
	// Kind is one of
	//
	//	bit, byte       other bits or bytes at the place
	//	insert          bytes that the control vector lacks
	//	delete          bytes that only the control vector has; positions are in it
	//	replace         bytes in place of more or fewer bytes of the control vector
	//	tail            one is a prefix of the other, except for lengths
	//	word, reading   the same bytes, read in another mode
	//	in              the input of encoding has one more frame, or one different value
	Kind     string
	From, To int // first and last bit or byte
}

// String returns the place in the form of vectors.
func (d Differs) String() string {
	switch {
	case d.Kind == "tail" || d.Kind == "word" || d.Kind == "reading" || d.Kind == "in" || d.Kind == "":
		return d.Kind
	case d.From == d.To:
		return fmt.Sprintf("%s %d", d.Kind, d.From)
	case d.Kind == "bit" || d.Kind == "byte":
		return fmt.Sprintf("%ss %d-%d", d.Kind, d.From, d.To)
	}
	return fmt.Sprintf("%s %d-%d", d.Kind, d.From, d.To)
}

func parseDiffers(text string) (Differs, error) {
	bad := fmt.Errorf("differs %q, expected bit N, bits N-M, byte N, bytes N-M, insert N, insert N-M, delete N, "+
		"delete N-M, replace N, replace N-M, tail, word, reading or in", clip(text))
	kind, span, ok := strings.Cut(text, " ")
	if !ok {
		switch text {
		case "tail", "word", "reading", "in":
			return Differs{Kind: text}, nil
		}
		return Differs{}, bad
	}
	from, to, isSpan := strings.Cut(span, "-")
	if !isSpan {
		to = from
	}
	d := Differs{Kind: strings.TrimSuffix(kind, "s")}
	switch {
	case isSpan && (kind == "bits" || kind == "bytes"):
	case !isSpan && (kind == "bit" || kind == "byte"):
	case kind == "insert" || kind == "delete" || kind == "replace":
	default:
		return Differs{}, bad
	}
	var err1, err2 error
	d.From, err1 = strconv.Atoi(from)
	d.To, err2 = strconv.Atoi(to)
	if err1 != nil || err2 != nil || d.From < 0 || d.To < d.From || isSpan && d.From == d.To {
		return Differs{}, bad
	}
	return d, nil
}

// Input returns the text or the blob of the vector.
func (v *Vector) Input() []byte {
	if v.Text != nil {
		return []byte(*v.Text)
	}
	return v.Blob
}

// checkControl returns an error unless the control vector is accepted and the vector differs
// from it in the declared place only.
func (v *Vector) checkControl(control *Vector) error {
	if v.Differs.Kind == "in" {
		return v.checkControlIn(control)
	}
	if control.Want == nil || control.Want.Outcome != OK {
		return fmt.Errorf("control vector %s is not an accepted vector", control.ID)
	}
	if v.Want == nil || !control.Has(v.Ops[0]) {
		return fmt.Errorf("control vector %s does not have the op %s", control.ID, v.Ops[0])
	}
	d := v.Differs
	if d.Kind != "word" && v.Word != control.Word || d.Kind != "reading" && v.Lenient != control.Lenient {
		return fmt.Errorf("control vector %s is read in another way, expected differs: word or reading", control.ID)
	}
	a, b := v.Input(), control.Input()
	if v.Digits != nil && control.Digits != nil { // the CRC follows from the digits
		a, b = a[:len(a)-v.crcDigits()], b[:len(b)-control.crcDigits()]
	}
	if same := bytes.Equal(a, b); same != (d.Kind == "word" || d.Kind == "reading") {
		return fmt.Errorf("differs %v: bytes equal to the control vector's: %v", d, same)
	}
	repaired, err := d.repair(a, b, v.Text == nil)
	if err != nil {
		return fmt.Errorf("differs %v: %w", d, err)
	}
	if !bytes.Equal(repaired, b) {
		return fmt.Errorf("differs %v: also at bit %d", d, bitstring.FirstDifference(repaired, b))
	}
	return nil
}

// checkControlIn returns an error unless the input of v differs from the input of its control
// vector by one more or one fewer frame, or by one value.
func (v *Vector) checkControlIn(control *Vector) error {
	if v.Words != "" {
		return v.checkControlWords(control)
	}
	// Of two faults the first one counts: the control vector is then refused for the other one.
	other := control.Rejects() && v.Rejects() && control.Want.Reason != v.Want.Reason
	if v.In == nil || control.In == nil || control.Blob == nil && control.Text == nil && !other || v.Machine != control.Machine || v.Search != control.Search {
		return fmt.Errorf("control vector %s is not to encode on the same machine", control.ID)
	}
	a, b := v.In, control.In
	n, others := min(len(a.PCs), len(b.PCs)), 0
	for i := range n {
		if a.PCs[i] != b.PCs[i] {
			others++
		}
	}
	if a.Size != b.Size {
		others++
	}
	for _, f := range append(slices.Clone(a.User), b.User...) {
		if !slices.Contains(a.User, f) || !slices.Contains(b.User, f) {
			others++ // a value that differs is counted twice
		}
	}
	if len(a.User) == len(b.User) && others == 2 {
		others = 1
	}
	if others += len(a.PCs) + len(b.PCs) - 2*n; others != 1 {
		return fmt.Errorf("differs in: %d values differ from the control vector's, expected one", others)
	}
	return nil
}

// checkControlWords returns an error unless the words of v, which a writer must refuse, differ
// from the words of the control vector in one word, or by one more or one fewer word.
func (v *Vector) checkControlWords(control *Vector) error {
	if control.Words == "" || control.WordsOf != v.WordsOf || control.WordsOf == "head" && control.Text == nil || control.Rejects() {
		return fmt.Errorf("control vector %s is not to write such words", control.ID)
	}
	a, b := strings.Split(v.Words, " "), strings.Split(control.Words, " ")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) > 1 || len(b) > 1 || len(a)+len(b) == 0 {
		return fmt.Errorf("differs in: words %q differ from the control vector's %q, expected one", a, b)
	}
	return nil
}

// repair returns a, with the bytes or bits of the place replaced by those of b.
func (d Differs) repair(a, b []byte, blob bool) ([]byte, error) {
	a = bytes.Clone(a)
	beyond := fmt.Errorf("the place is beyond the end")
	switch d.Kind {
	case "bit", "byte":
		from, to := d.From, d.To+1
		if d.Kind == "byte" {
			from, to = 8*from, 8*to
		}
		if to > 8*len(a) || to > 8*len(b) {
			return nil, beyond
		}
		if bitstring.Bit(a, from) == bitstring.Bit(b, from) && d.Kind == "bit" && d.From == d.To {
			return nil, fmt.Errorf("the bit is the control vector's")
		}
		for n := from; n < to; n++ {
			bitstring.SetBit(a, n, bitstring.Bit(b, n))
		}
		return a, nil
	case "insert":
		if d.To >= len(a) {
			return nil, beyond
		}
		return append(a[:d.From], a[d.To+1:]...), nil
	case "delete":
		if d.To >= len(b) || d.From > len(a) {
			return nil, beyond
		}
		return append(append(bytes.Clone(a[:d.From]), b[d.From:d.To+1]...), a[d.From:]...), nil
	case "replace":
		if d.To >= len(a) || !bytes.HasPrefix(b, a[:d.From]) || !bytes.HasSuffix(b[d.From:], a[d.To+1:]) {
			return nil, fmt.Errorf("what is before or after the place is not the control vector's")
		}
		return b, nil
	case "tail":
		if blob && len(a) >= 2 && len(b) >= 2 {
			a, b = a[:len(a)-2], b[:len(b)-2] // without the lengths, which differ
			if !bytes.HasPrefix(a, b) && !bytes.HasPrefix(b, a) {
				return nil, fmt.Errorf("neither begins with the other, differing at bit %d", bitstring.FirstDifference(a, b))
			}
			return b[:len(b)+2], nil
		}
		if !bytes.HasPrefix(a, b) && !bytes.HasPrefix(b, a) {
			return nil, fmt.Errorf("neither begins with the other, differing at byte %d", bitstring.FirstDifference(a, b)/8)
		}
		return b, nil
	}
	return a, nil
}
