package codec

import "encoding/binary"

// Sizes that follow from the format. (BT-LIM-1, BT-LIM-2)
const (
	// minBlob is the shortest blob in bytes: no frames, a size of 0 or 1.
	minBlob = 4
	// MaxBlob is the longest blob in bytes without user bits: 2 literals of 64 bits, 30
	// deltas of 59 bits, and a size of 64 bits. (Search lws writes such a delta even
	// where a literal would be one bit shorter.)
	MaxBlob = 312
	// MaxBlobUser is the longest blob in bytes with the user fields of a [User], which
	// add six fields of 77 bits. (BT-UF-1)
	MaxBlobUser = 370
	// MaxLength is the largest value of a length field, in bytes.
	MaxLength = 1<<lengthWidth - 1

	// minDeepest is the fewest bytes before the length that hold 32 frames.
	minDeepest = (depthBits + MaxDepth*(literalHead+2) + countBits + 2 + 7) / 8
)

// BlobAtEnd returns the blob that ends with the last byte of mem, as a subslice of mem. In
// memory, lws stores a pointer to the end of a blob, and finds its start by the length in the
// last two bytes. (BT-BLOB-3)
func BlobAtEnd(mem []byte) ([]byte, error) {
	if len(mem) < lengthBytes {
		return nil, bitError(0, fieldLength, -1, reasonShort,
			"%d bytes, expected at least the %d of a length field", len(mem), lengthBytes)
	}
	off := 8 * (len(mem) - lengthBytes)
	n := int(binary.BigEndian.Uint16(mem[len(mem)-lengthBytes:]))
	switch {
	case n == 0:
		return nil, emptyError(off)
	case n < lengthBytes || n > len(mem):
		e := bitError(off, fieldLength, -1, reasonLength,
			"says %d, expected %d to %d, the number of bytes available", n, lengthBytes, len(mem))
		e.Clause = "BT-BLOB-3"
		return nil, e
	}
	return mem[len(mem)-n:], nil
}

// checkLength compares the length field with the number of bytes available. (BT-BLOB-2)
func checkLength(blob []byte) error {
	if len(blob) < lengthBytes {
		return bitError(0, fieldLength, -1, reasonShort,
			"%d bytes, expected at least the %d of a length field", len(blob), lengthBytes)
	}
	n := int(binary.BigEndian.Uint16(blob[len(blob)-lengthBytes:]))
	if n == len(blob) {
		return nil
	}
	off := 8 * (len(blob) - lengthBytes)
	if n == 0 {
		return emptyError(off)
	}
	return bitError(off, fieldLength, -1, reasonLength, "says %d, the blob has %d bytes", n, len(blob))
}

func emptyError(off int) *Error {
	return bitError(off, fieldLength, -1, reasonEmpty,
		"says 0: lws had no room for the metadata of this allocation")
}
