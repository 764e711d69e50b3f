package btv

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// Bits is a blob written as `bits:` lines: fields that end in a spill bit, followed by
// padding or user bits.
type Bits struct {
	Bits   []byte // 0 or 1 each; spill bits 0
	Spills []int  // positions of spill bits
}

// add reads another line: 0, 1, '.' for a spill bit, and spaces anywhere.
func (t *Bits) add(line string) error {
	for i, c := range []byte(line) {
		switch c {
		case ' ':
		case '0', '1':
			t.Bits = append(t.Bits, c-'0')
		case '.':
			if n := len(t.Bits); n == 0 || len(t.Spills) > 0 && t.Spills[len(t.Spills)-1] == n-1 {
				return errors.New("bits: a spill bit '.' without a field before it, expected 0 or 1 first")
			}
			t.Spills = append(t.Spills, len(t.Bits))
			t.Bits = append(t.Bits, 0)
		default:
			return fmt.Errorf("bits: %q at character %d, expected 0, 1, '.' or a space", c, i+1)
		}
	}
	return nil
}

// Blob returns the padded bits, followed by the length field.
func (t *Bits) Blob() []byte {
	blob := bitstring.Pack(t.Bits)
	n := len(blob) + 2
	return append(blob, byte(n>>8), byte(n))
}

// matches checks a blob given in hexadecimal against the bits: except for spill bits, it must
// have the same bits, padded with zeros to the last byte.
func (t *Bits) matches(blob []byte) error {
	want := t.Blob()
	if len(want) != len(blob) {
		return fmt.Errorf("hex has %d bytes, expected %d for the bits", len(blob), len(want))
	}
	masked := append([]byte{}, blob...)
	bitstring.Clear(masked, t.Spills)
	if at := bitstring.FirstDifference(masked, want); at >= 0 {
		return fmt.Errorf("hex differs from bits at bit %d", at)
	}
	return nil
}
