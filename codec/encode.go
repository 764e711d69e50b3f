package codec

import (
	"fmt"
	"math/bits"
	"slices"
)

// Search is the rule by which an encoder chooses between a literal and a delta, and the
// frame that a delta is relative to.
type Search uint8

const (
	// SearchLws chooses as lws does, bit for bit. (BT-SRCH-1)
	SearchLws Search = iota
	// SearchBest writes the smallest blob that every decoder of the format reads as the
	// same stack. (BT-SRCH-2)
	SearchBest
)

// String returns the name of the search, as ParseSearch reads it.
func (h Search) String() string {
	switch h {
	case SearchLws:
		return "lws"
	case SearchBest:
		return "best"
	}
	return fmt.Sprintf("search(%d)", uint8(h))
}

// ParseSearch returns the search with the given name, "lws" or "best".
func ParseSearch(name string) (Search, error) {
	switch name {
	case "lws":
		return SearchLws, nil
	case "best":
		return SearchBest, nil
	}
	return 0, fmt.Errorf("search %q is neither lws nor best", name)
}

// Encoder encodes stacks. The zero Encoder keeps every bit of 64-bit words and chooses as lws
// does. Two other settings matter: the machine of a device that is simulated, and SearchBest.
type Encoder struct {
	Machine Machine
	Search  Search
}

// AppendBlob appends the blob of s to dst, with the user fields of u after the size unless u is
// nil, and returns the extended slice. It allocates only if dst has less than MaxBlob bytes of
// spare capacity, or MaxBlobUser with user fields. No machine loses bits of user fields. If s has
// more than MaxDepth frames, or a value that does not fit the word of the machine, it returns dst
// unchanged and an [*Error]. (BT-BLOB-1, BT-FIELD-3, BT-SRCH-1, BT-SRCH-2, BT-UF-1)
func (e Encoder) AppendBlob(dst []byte, s *Stack, u *User) ([]byte, error) {
	if err := s.fits(e.Machine); err != nil {
		return dst, err
	}
	start := len(dst)
	if avail := cap(dst) - start; avail >= MaxBlob && avail < len(buffer{}) {
		var buf buffer // dst has space for the blob, but not for a whole buffer
		dst = append(dst, buf[:write(&buf, s, u, e.Machine, e.Search)]...)
	} else {
		dst = slices.Grow(dst, len(buffer{}))
		dst = dst[:start+write((*buffer)(dst[start:start+len(buffer{})]), s, u, e.Machine, e.Search)]
	}
	n := len(dst) - start + lengthBytes
	return append(dst, byte(n>>8), byte(n)), nil
}

// write writes the fields of s to buf, then the user fields of u if u is not nil, then
// zeros up to the next byte. It returns the number of bytes written. (BT-DEPTH-1,
// BT-ITEM-1, BT-COUNT-1, BT-COUNT-2, BT-LIT-1, BT-DELTA-1, BT-SIZE-1)
func write(buf *buffer, s *Stack, u *User, m Machine, search Search) int {
	var f encoding
	f.choose(s, m, search)
	lose := m.loss()
	w := bitWriter{acc: uint64(len(s.PCs)&(MaxDepth-1)) << spillWidth, n: depthBits} // 32 is written 0 (BT-DEPTH-2)
	for n := range len(s.PCs) + 1 {
		v, head := f.value[n], uint64(f.lead[n])
		count := significant(v)
		width := uint(f.width[n]) + countBits + count + spillWidth
		v, spill := lose.wire(v, count)
		head = head<<countBits | uint64(count&63)<<spillWidth
		if width > windowBits {
			w = w.put(buf, head<<((count-32)&63)|v>>32, width-32-spillWidth)
			head, v, width = 0, v&(1<<32-1), 32+spillWidth
		}
		w = w.put(buf, (head<<(count&63)|v)<<spillWidth|spill, width)
	}
	if u != nil {
		w = u.write(buf, w)
	}
	return w.bytes()
}

// Bits returns the number of bits that the fields of s take, without padding and length;
// [BlobLen] converts it to bytes. It fails as AppendBlob does.
func (e Encoder) Bits(s *Stack) (int, error) {
	if err := s.fits(e.Machine); err != nil {
		return 0, err
	}
	var f encoding
	f.choose(s, e.Machine, e.Search)
	n := depthBits
	for i, v := range f.value[:len(s.PCs)+1] {
		n += int(f.width[i]) + countBits + int(significant(v)) + spillWidth
	}
	return n, nil
}

// fits returns an error if machine m cannot encode s. (BT-REJ-2, BT-MACH-1)
func (s *Stack) fits(m Machine) error {
	if int(m) >= len(machineNames) {
		panic("codec: " + m.String() + " is not a machine")
	}
	if len(s.PCs) > MaxDepth {
		return bitError(-1, fieldDepth, -1, reasonFrames, "is %d, expected at most %d frames", len(s.PCs), MaxDepth)
	}
	if m.Word() == 64 {
		return nil
	}
	for n, pc := range s.PCs {
		if pc>>32 != 0 {
			return bitError(-1, fieldLiteral, n, reasonWord, "is %#x, expected at most 32 bits on %v", pc, m)
		}
	}
	if s.Size>>32 != 0 {
		return bitError(-1, fieldSize, -1, reasonWord, "is %d, expected at most 32 bits on %v", s.Size, m)
	}
	return nil
}

// significant returns the count of v: the number of bits from its highest set bit down,
// 1 for zero. (BT-COUNT-1)
func significant(v uint64) uint { return uint(bits.Len64(v | 1)) }
