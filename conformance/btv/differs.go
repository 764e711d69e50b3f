package btv

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/internal/words"
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

// ParseDiffers reads the form that String returns.
func ParseDiffers(text string) (Differs, error) {
	bad := fmt.Errorf("differs %q, expected bit N, bits N-M, byte N, bytes N-M, insert N, insert N-M, delete N, "+
		"delete N-M, replace N, replace N-M, tail, word, reading or in", words.Clip(text))
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

// Repair returns a, with the bytes or bits of the place replaced by those of b.
func (d Differs) Repair(a, b []byte, blob bool) ([]byte, error) {
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
