package conformance

import (
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Spills returns the positions of spill bits in the data of a request for op: from
// the vector's bits if it has them, else as the codec finds them.
func (v *Vector) Spills(op Op) []int {
	switch {
	case v.Blob == nil:
		return nil
	case (op == OpBare || op == OpUser || op == OpMarks) && v.Bits == nil:
		return nil
	case op == OpEnd:
		n := len(v.Blob)
		if n < 2 {
			return nil
		}
		length := 256*int(v.Blob[n-2]) + int(v.Blob[n-1])
		if length < 2 || length > n {
			return nil
		}
		at := spills(v.Blob[n-length:], v.Word)
		for i := range at {
			at[i] += 8 * (n - length)
		}
		return at
	case v.Bits != nil:
		return slices.Clone(v.Bits.Spills)
	case op == OpSalvage:
		// The last two bytes stay: they must not turn into a right length.
		at := spills(withLength(v.Blob), 64)
		return slices.DeleteFunc(at, func(n int) bool { return n >= 8*(len(v.Blob)-2) })
	}
	return spills(v.Blob, v.Word)
}

// spills returns the positions of the spill bits of a blob; of a rejected blob, those before the
// fault.
func spills(blob []byte, word int) (at []int) {
	fields, _ := codec.AppendFieldsWord(nil, blob, word)
	for _, f := range fields {
		if hasSpill(f) {
			at = append(at, f.Off+f.Width)
		}
	}
	return at
}

// hasSpill reports whether a spill bit follows the field. (BT-FIELD-1)
func hasSpill(f codec.Field) bool { return f.End() > f.Off+f.Width }

// withLength returns a blob that was cut at its end, with a right length behind it: a reader then
// finds the fields before the cut.
func withLength(cut []byte) []byte {
	return binary.BigEndian.AppendUint16(slices.Clone(cut), uint16(len(cut)+2))
}
