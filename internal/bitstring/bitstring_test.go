package bitstring

import (
	"bytes"
	"testing"
)

func TestPackAndUnpack(t *testing.T) {
	for _, c := range []struct {
		text string
		data []byte
	}{
		{"", []byte{}},
		{"1", []byte{0x80}},
		{"00000001", []byte{1}},
		{"101000000000000011", []byte{0xa0, 0x00, 0xc0}},
	} {
		bits := Unpack(c.data)
		if len(bits) != 8*len(c.data) || !bytes.Equal(Pack(bits), c.data) {
			t.Errorf("%x unpacks to %v", c.data, bits)
		}
		for n, bit := range bits {
			if Bit(c.data, n) != bit || n < len(c.text) && bit != c.text[n]-'0' {
				t.Errorf("bit %d of %x is %d, unpacked %d", n, c.data, Bit(c.data, n), bit)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	bits := Append([]byte{1}, 0x5, 4) // 1 0101
	if got := Number(bits); got != 0x15 {
		t.Errorf("number %#x, want 0x15", got)
	}
}

func TestSingleBits(t *testing.T) {
	data := []byte{0, 0}
	SetBit(data, 9, 1)
	if data[1] != 0x40 || FirstDifference(data, []byte{0, 0}) != 9 {
		t.Errorf("%x, first difference at %d, want bit 9", data, FirstDifference(data, []byte{0, 0}))
	}
	if at := FirstDifference([]byte{1}, []byte{1, 2}); at != 8 {
		t.Errorf("a prefix differs at %d, want 8", at)
	}
	Clear(data, []int{9})
	if FirstDifference(data, []byte{0, 0}) != -1 {
		t.Errorf("%x after clearing", data)
	}
}
