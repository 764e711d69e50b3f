package codec

import "encoding/binary"

// Decode reads a blob, its length included, into s: every value as the bits say
// it, modulo 2^64. Use it wherever the encoder's word is not known; what a
// 32-bit encoder wrote is right as it is, or modulo 2^32.
//
// On an [*Error], s is empty. (BT-BLOB-2 to BT-USER-1)
func Decode(s *Stack, blob []byte) error {
	return decode(s, blob, 64)
}

// Decode32 is Decode for blobs known to come from a 32-bit encoder: values are
// modulo 2^32, and a count over 32 is rejected. (BT-COUNT-4, BT-DELTA-6)
func Decode32(s *Stack, blob []byte) error {
	return decode(s, blob, 32)
}

func decode(s *Stack, blob []byte, word uint) error {
	if len(blob) < MinBlob || int(binary.BigEndian.Uint16(blob[len(blob)-lengthBytes:])) != len(blob) {
		if err := checkLength(blob); err != nil {
			s.reset()
			return err
		}
	}
	var short [8]byte
	b := padded(blob, &short)
	end := 8 * (len(blob) - lengthBytes)
	depth := int(b[0] >> (8 - depthWidth))
	if depth == 0 {
		depth = resolveDepth(s, b, end, word)
	}
	if _, pos := s.read(b, end, depth, word); pos < 0 {
		s.reset()
		return diagnose(b, end, depth, word)
	}
	return nil
}

// resolveDepth tells an empty stack from one of 32 frames, both written as
// depth 0, by what follows. It uses s as scratch. (BT-DEPTH-2)
func resolveDepth(s *Stack, b []byte, end int, word uint) int {
	_, pos := s.read(b, end, 0, word)
	if pos >= 0 && end-pos < 8 {
		return 0
	}
	if _, pos := s.read(b, end, MaxDepth, word); pos >= 0 {
		return MaxDepth
	}
	if pos >= 0 || end < 8*minDeepest {
		return 0
	}
	return MaxDepth
}

func (s *Stack) reset() {
	s.PCs, s.Size, s.Marks = s.PCs[:0], 0, Marks{}
}

// fullCount is the count that 6 bits mean: 0 stands for 64. (BT-COUNT-2)
func fullCount(c uint) uint { return (c-1)&63 + 1 }

// read decodes depth frames and the size from b, whose bits end at end, at least
// 16 bits before the end of b. It returns how many frames were whole and sound,
// and the bit after the size, or -1 if anything was amiss; it leaves to diagnose
// to say what.
//
// Each value is read from one window, as far as it ends in it. What takes the
// time is the way from one frame's place to the next, which leads through its
// count; so that is kept short, and all else happens beside it.
func (s *Stack) read(b []byte, end, depth int, word uint) (n, pos int) {
	if cap(s.PCs) < MaxDepth {
		s.PCs = make([]uint64, 0, MaxDepth)
	}
	s.PCs = s.PCs[:depth]
	s.Marks = Marks{}
	hurt := uint32(0) // Marks.Hurt, kept at hand
	pcs := (*[MaxDepth]uint64)(s.PCs[:MaxDepth])
	mask := ^uint64(0) >> (64 - word)
	last := len(b) - 8
	pos = depthBits
	for ; n < depth; n++ {
		off := min(pos>>3, last)
		w := binary.BigEndian.Uint64(b[off:]) << (uint(pos-8*off) & 63)
		if w>>63 == 0 { // literal
			v := w << literalHead
			count := uint(w >> (64 - literalHead + spillWidth) & 63)
			if count-1 < windowBits-literalHead {
				v >>= (64 - count) & 63
			} else {
				count = fullCount(count)
				v = bitsAt(b, pos+literalHead, count)
			}
			pos += int(literalHead + count + spillWidth)
			if pos > end || count > word {
				break
			}
			if count > 32 {
				hurt |= s.Marks.mark(n, v, count)
			}
			pcs[n&(MaxDepth-1)] = v
			continue
		}
		v := w << deltaHead
		count := uint(w >> (64 - deltaHead + spillWidth) & 63)
		if count-1 < windowBits-deltaHead {
			v >>= (64 - count) & 63
		} else {
			count = fullCount(count)
			v = bitsAt(b, pos+deltaHead, count)
		}
		pos += int(deltaHead + count + spillWidth)
		base := n - 1 - int(w>>(64-backEnd)&(maxBack-1))
		if pos > end || count > word || base < 0 {
			break
		}
		if hurt != 0 {
			hurt |= hurt >> (base & (MaxDepth - 1)) & 1 << (n & (MaxDepth - 1))
		}
		if count > 32 {
			hurt |= s.Marks.mark(n, v, count)
		}
		subtract := -(w >> (64 - signEnd) & 1) // all ones if so
		pcs[n&(MaxDepth-1)] = (pcs[base&(MaxDepth-1)] + (v ^ subtract) - subtract) & mask
	}
	s.Marks.Hurt = hurt
	if n < depth {
		return n, -1
	}

	off := min(pos>>3, last)
	w := binary.BigEndian.Uint64(b[off:]) << (uint(pos-8*off) & 63)
	count := fullCount(uint(w >> (64 - countWidth)))
	size := w << countBits >> ((64 - count) & 63)
	if countBits+count > windowBits {
		size = bitsAt(b, pos+countBits, count)
	}
	pos += int(countBits + count + spillWidth)
	if pos > end || count > word {
		return n, -1
	}
	if count > 32 {
		wrap, zero := wideMarks(size, count)
		s.Marks.HurtSize = wrap || zero
	}
	s.Size = size
	return n, pos
}
