package conformance

import (
	"errors"
	"fmt"
)

// BitText is a blob written out in `bits:` lines: fields that end in a spill
// bit, and after the last of them padding or user bits.
type BitText struct {
	Bits   []byte // 0 or 1 each; spill bits 0
	Spills []int  // positions of spill bits
	Lines  []string
}

// add reads one more line: 0, 1, '.' for a spill bit, blanks anywhere.
func (t *BitText) add(line string) error {
	for i, c := range []byte(line) {
		switch c {
		case ' ':
		case '0', '1':
			t.Bits = append(t.Bits, c-'0')
		case '.':
			if n := len(t.Bits); n == 0 || len(t.Spills) > 0 && t.Spills[len(t.Spills)-1] == n-1 {
				return errors.New("a spill bit '.' without a field before it, expected 0 or 1 first")
			}
			t.Spills = append(t.Spills, len(t.Bits))
			t.Bits = append(t.Bits, 0)
		default:
			return fmt.Errorf("%q at character %d, expected 0, 1, '.' or a blank", c, i+1)
		}
	}
	t.Lines = append(t.Lines, line)
	return nil
}

// Blob is the bits, padded, and their length.
func (t *BitText) Blob() []byte {
	blob := packBits(t.Bits)
	n := len(blob) + 2
	return append(blob, byte(n>>8), byte(n))
}

// packBits makes bytes of bits, zero bits after the last.
func packBits(bits []byte) []byte {
	out := make([]byte, (len(bits)+7)/8)
	for i, bit := range bits {
		out[i/8] |= bit << (7 - i%8)
	}
	return out
}

// unpackBits makes bits of bytes.
func unpackBits(data []byte) []byte {
	bits := make([]byte, 0, 8*len(data))
	for _, b := range data {
		for i := 7; i >= 0; i-- {
			bits = append(bits, b>>i&1)
		}
	}
	return bits
}

// bitOf is bit n of data.
func bitOf(data []byte, n int) byte { return data[n/8] >> (7 - n%8) & 1 }

// setBit makes bit n of data v.
func setBit(data []byte, n int, v byte) {
	data[n/8] = data[n/8]&^(1<<(7-n%8)) | v<<(7-n%8)
}

// firstDifference is the first bit in which a and b differ, or -1; where one is
// the other's beginning, the bit after its end.
func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			for bit := 8 * i; ; bit++ {
				if bitOf(a, bit) != bitOf(b, bit) {
					return bit
				}
			}
		}
	}
	if len(a) != len(b) {
		return 8 * n
	}
	return -1
}
