// Package bitstring has functions on single bits for tests and tools. Bits are
// unpacked, one per byte, or packed in bytes. Bit 0 is the most significant bit of the
// first byte, as in SPEC.md.
//
// It is simple and slow; package codec has a separate, fast bit reader and writer.
package bitstring

// Unpack returns the bits of data, one per byte, 0 or 1.
func Unpack(data []byte) []byte {
	bits := make([]byte, 0, 8*len(data))
	for _, b := range data {
		bits = Append(bits, uint64(b), 8)
	}
	return bits
}

// Pack returns the bytes of bits, padded with zero bits.
func Pack(bits []byte) []byte {
	out := make([]byte, (len(bits)+7)/8)
	for i, bit := range bits {
		out[i/8] |= bit << (7 - i%8)
	}
	return out
}

// Append appends the low width bits of v, the most significant first.
func Append(bits []byte, v uint64, width int) []byte {
	for i := width - 1; i >= 0; i-- {
		bits = append(bits, byte(v>>i&1))
	}
	return bits
}

// Number returns bits as a number, most significant bit first; of more than 64 bits, it
// returns the last 64.
func Number(bits []byte) uint64 {
	var v uint64
	for _, bit := range bits {
		v = 2*v + uint64(bit)
	}
	return v
}

// Bit returns bit n of data.
func Bit(data []byte, n int) byte { return data[n/8] >> (7 - n%8) & 1 }

// SetBit sets bit n of data to v, 0 or 1.
func SetBit(data []byte, n int, v byte) {
	data[n/8] = data[n/8]&^(1<<(7-n%8)) | v<<(7-n%8)
}

// Clear sets the bits of data at these positions to 0.
func Clear(data []byte, at []int) {
	for _, n := range at {
		SetBit(data, n, 0)
	}
}

// FirstDifference returns the position of the first bit in which a and b differ, -1 if
// they are equal. If one is a prefix of the other, it returns the bit after the prefix.
func FirstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			for bit := 8 * i; ; bit++ {
				if Bit(a, bit) != Bit(b, bit) {
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
