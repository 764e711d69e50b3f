package conformance

import (
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// The blob in the input of a reader, or in the output of a writer.

func blobItself(v *Vector) ([]byte, error) { return v.Blob, nil }

func blobAtEnd(v *Vector) ([]byte, error) { return codec.BlobAtEnd(v.Blob) }

func blobOfLine(v *Vector) ([]byte, error) {
	if v.Lenient {
		return codec.Decoder{Lenient: true}.ParseLine(nil, []byte(*v.Text))
	}
	return codec.Decoder{}.ParseLine(nil, []byte(*v.Text))
}

// stackAt32 reports whether a reader at word 32 must give the same answer as at word 64.
func stackAt32(v *Vector, blobOf func(*Vector) ([]byte, error)) bool {
	blob, err := blobOf(v)
	if err != nil {
		return v.Rejects() // before the word matters
	}
	var s codec.Stack
	if err := (codec.Decoder{Word: 32}).Decode(&s, nil, blob); err != nil {
		reason, _ := rejection(err)
		return v.Rejects() && reason == v.Want.Reason
	}
	return !v.Rejects() && v.Want.Value.Equal(Value{Size: s.Size, PCs: s.PCs})
}

// salvageAt32 is stackAt32 for a truncated blob.
func salvageAt32(v *Vector, _ func(*Vector) ([]byte, error)) bool {
	var s codec.Stack
	depth, sized, err := codec.Decoder{Word: 32}.Salvage(&s, v.Blob)
	if v.Rejects() {
		reason, _ := rejection(err)
		return reason == v.Want.Reason
	}
	return err == nil && depth == v.Want.Depth && sized == v.Want.Sized && slices.Equal(s.PCs, v.Want.Value.PCs) &&
		(!sized || s.Size == v.Want.Value.Size)
}

// Spills returns the positions of spill bits in the data of a request for op, or in the blob that
// an encoder writes: from the vector's bits if it has them, else as the codec finds them. It returns
// none where they are not the spill bits of every reading of the data.
func (v *Vector) Spills(op Op) []int {
	o := op.row()
	if o.spillBits == nil || v.Blob == nil || v.readsBothWays(o) {
		return nil
	}
	return o.spillBits(v)
}

// writtenSpills returns the spill bits that the vector's bits have.
func writtenSpills(v *Vector) []int {
	if v.Bits == nil {
		return nil
	}
	return slices.Clone(v.Bits.Spills)
}

func fieldSpills(v *Vector) []int {
	if v.Bits != nil {
		return writtenSpills(v)
	}
	return spills(v.Blob, v.Word)
}

// endSpills returns the spill bits of the blob at the end of memory.
func endSpills(v *Vector) []int {
	blob, err := codec.BlobAtEnd(v.Blob)
	if err != nil {
		return nil
	}
	at := spills(blob, v.Word)
	for i := range at {
		at[i] += 8 * (len(v.Blob) - len(blob))
	}
	return at
}

// salvageSpills returns the spill bits of a truncated blob, but none in its last two bytes: these must
// not turn into a right length.
func salvageSpills(v *Vector) []int {
	if v.Bits != nil {
		return writtenSpills(v)
	}
	return slices.DeleteFunc(spills(withLength(v.Blob), 64), func(n int) bool { return n >= 8*(len(v.Blob)-2) })
}

// readsBothWays reports whether data with a depth of 0 is long enough for 32 frames, but is not
// read as 32 frames. The two readings have different spill bits: with other spill bits of an
// empty stack, the same data could be 32 frames. (BT-DEPTH-2)
func (v *Vector) readsBothWays(o *operation) bool {
	const least = 6 + codec.MaxDepth*11 // bits of a depth and 32 frames
	blob := v.Blob
	if o.blob != nil {
		blob, _ = o.blob(v)
	}
	if 8*len(blob) < least || blob[0]>>3 != 0 {
		return false
	}
	var s codec.Stack
	return codec.Decoder{Word: v.Word}.Decode(&s, nil, blob) != nil || len(s.PCs) == 0
}

// spills returns the positions of the spill bits of a blob; of a rejected blob, those before the
// fault.
func spills(blob []byte, word int) (at []int) {
	fields, _ := codec.Decoder{Word: word}.AppendFields(nil, blob)
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
