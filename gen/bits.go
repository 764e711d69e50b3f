package gen

import (
	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// bitString is a string of bits, one per byte, 0 or 1.
type bitString []byte

// unpack returns the bits of a blob without its length field.
func unpack(blob []byte) bitString { return bitstring.Unpack(blob[:len(blob)-2]) }

// append appends the low width bits of v.
func (b bitString) append(v uint64, width int) bitString { return bitstring.Append(b, v, width) }

// set overwrites width bits from bit off on with v.
func (b bitString) set(off, width int, v uint64) { bitstring.Put(b, off, width, v) }

// pack pads to a byte and adds the length. (BT-BLOB-1)
func (b bitString) pack() []byte {
	blob := bitstring.Pack(b)
	n := len(blob) + 2
	return append(blob, byte(n>>8), byte(n))
}

// fieldsOf returns the fields of a valid blob.
func fieldsOf(blob []byte) []codec.Field {
	fields, err := codec.Decoder{}.AppendFields(nil, blob)
	if err != nil {
		panic("gen: a generated blob is rejected: " + err.Error())
	}
	return fields
}
