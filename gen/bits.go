package gen

import "github.com/lwsbt/lwsbt/codec"

// bitString is bits to be moved about, a byte each, 0 or 1.
type bitString []byte

// unpack returns the bits of a blob before its length.
func unpack(blob []byte) bitString {
	var b bitString
	for _, c := range blob[:len(blob)-2] {
		b = b.append(uint64(c), 8)
	}
	return b
}

// append adds the low width bits of v.
func (b bitString) append(v uint64, width int) bitString {
	for i := width - 1; i >= 0; i-- {
		b = append(b, byte(v>>i&1))
	}
	return b
}

// set overwrites width bits from bit off on.
func (b bitString) set(off, width int, v uint64) {
	for i := range width {
		b[off+i] = byte(v >> (width - 1 - i) & 1)
	}
}

// pack pads to a byte and adds the length. (BT-BLOB-1)
func (b bitString) pack() []byte {
	blob := make([]byte, (len(b)+7)/8, (len(b)+7)/8+2)
	for i, bit := range b {
		blob[i/8] |= bit << (7 - i%8)
	}
	n := len(blob) + 2
	return append(blob, byte(n>>8), byte(n))
}

// fieldsOf lists the fields of a blob that was just made, and so is sound.
func fieldsOf(blob []byte) []codec.Field {
	fields, err := codec.AppendFields(nil, blob)
	if err != nil {
		panic("gen: a made blob is rejected: " + err.Error())
	}
	return fields
}
