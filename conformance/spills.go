package conformance

import (
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Spills returns the positions of spill bits in the data of a request for op: from
// the vector's bits if it has them, else as the codec finds them. It returns none where they
// are not the spill bits of every reading of the data.
func (v *Vector) Spills(op Op) []int {
	switch {
	case v.Blob == nil || v.readsBothWays(op):
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

// readsBothWays reports whether data with a depth of 0 is long enough for 32 frames, but is not
// read as 32 frames. The two readings have different spill bits: with other spill bits of an
// empty stack, the same data could be 32 frames. (BT-DEPTH-2, BT-BARE-2)
func (v *Vector) readsBothWays(op Op) bool {
	const least = 6 + codec.MaxDepth*11 // bits of a depth and 32 frames
	blob := v.Blob
	if op == OpEnd {
		blob, _ = codec.BlobAtEnd(blob)
	}
	if 8*len(blob) < least || blob[0]>>3 != 0 {
		return false
	}
	var s codec.Stack
	if op == OpBare {
		_, err := codec.DecodeBareWord(&s, blob, v.Word)
		return err != nil || len(s.PCs) == 0
	}
	return codec.DecodeWord(&s, blob, v.Word) != nil || len(s.PCs) == 0
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
