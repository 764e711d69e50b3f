package conformance

import (
	"slices"

	"github.com/lwsbt/lwsbt/internal/naive"
)

// Spills returns the positions of spill bits in the data of a request for op, from the `bits:`
// of the vector if it has any, else from the naive reader.
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
		// The last two bytes are unchanged: they must not become a correct length.
		cut, _ := naive.Cut(v.Blob)
		at := cut.Spills()
		return slices.DeleteFunc(at, func(n int) bool { return n >= 8*(len(v.Blob)-2) })
	}
	return spills(v.Blob, v.Word)
}

// spills returns the positions of a blob's spill bits, up to the fault if the blob is
// rejected.
func spills(blob []byte, word int) []int {
	s, _ := naive.Decode(blob, word)
	return s.Spills()
}
