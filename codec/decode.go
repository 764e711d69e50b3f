package codec

import "encoding/binary"

// Decode reads a blob, its length included, into s. Values are modulo 2^64. Use
// it wherever the encoder's word is not known: what a 32-bit encoder wrote comes
// out as it was, or equal modulo 2^32.
//
// On an [*Error], s is empty. (BT-BLOB-2, BT-DEPTH-1, BT-DEPTH-2, BT-SIZE-1)
func Decode(s *Stack, blob []byte) error {
	return DecodeWord(s, blob, 64)
}

// DecodeWord is [Decode] for a known word of the encoder, 32 or 64 bits; it
// panics if word is neither. With a word of 32 bits, values are modulo 2^32 and a
// count over 32 is rejected. (BT-COUNT-4, BT-DELTA-6)
func DecodeWord(s *Stack, blob []byte, word int) error {
	_, err := decode(s, blob, checkWord(word))
	return err
}

func checkWord(word int) uint {
	if word != 32 && word != 64 {
		panic("codec: the word must be 32 or 64 bits")
	}
	return uint(word)
}

// decode returns the bit after the size.
func decode(s *Stack, blob []byte, word uint) (pos int, err error) {
	if len(blob) < MinBlob || int(binary.BigEndian.Uint16(blob[len(blob)-lengthBytes:])) != len(blob) {
		if err := checkLength(blob); err != nil {
			s.Reset()
			return 0, err
		}
	}
	var short [8]byte
	b := padded(blob, &short)
	end := 8 * (len(blob) - lengthBytes)
	depth := int(b[0] >> (8 - depthWidth))
	if depth == 0 {
		depth = resolveDepth(s, b, end, word)
	}
	return s.readOrReject(b, end, depth, word)
}

// readOrReject is read with the fault as an error; s is empty then.
func (s *Stack) readOrReject(b []byte, end, depth int, word uint) (pos int, err error) {
	if pos = s.read(b, end, depth, word); pos < 0 {
		s.Reset()
		return 0, diagnose(b, end, depth, word)
	}
	return pos, nil
}

// resolveDepth tells an empty stack from one of 32 frames, both written as
// depth 0, by what follows. It uses s as scratch. (BT-DEPTH-2)
func resolveDepth(s *Stack, b []byte, end int, word uint) int {
	pos := s.read(b, end, 0, word)
	if pos >= 0 && end-pos < 8 {
		return 0
	}
	if s.read(b, end, MaxDepth, word) >= 0 {
		return MaxDepth
	}
	if pos >= 0 || end < 8*minDeepest {
		return 0
	}
	return MaxDepth
}

// Reset makes s empty; it keeps the array under PCs.
func (s *Stack) Reset() {
	s.PCs, s.Size, s.Marks = s.PCs[:0], 0, Marks{}
}

// fullCount is the count that 6 bits mean: 0 stands for 64. A count may be larger than
// its value needs. (BT-COUNT-2, BT-COUNT-3)
func fullCount(c uint) uint { return (c-1)&63 + 1 }

// read decodes depth frames and the size from b, whose bits end at end. It returns
// the bit after the size, or -1 if anything was amiss; it leaves to diagnose to
// say what.
func (s *Stack) read(b []byte, end, depth int, word uint) (pos int) {
	pos = s.frames(b, depth)
	if pos < 0 || pos > end {
		return -1
	}
	w := window(b, pos)
	count := fullCount(uint(w >> (64 - countWidth)))
	if s.Size = w << countBits >> ((64 - count) & 63); countBits+count > windowBits {
		s.Size = bitsAt(b, pos+countBits, count)
	}
	pos += int(countBits + count + spillWidth)
	if pos > end {
		return -1
	}
	if count > 32 {
		wrap, zero := wideMarks(s.Size, count)
		s.Marks.LossySize = wrap || zero
	}
	if word == 32 {
		if count > 32 || s.Marks.Wide != 0 {
			return -1
		}
		s.cutTo(word)
	}
	return pos
}

// cutTo takes the addresses modulo 2^word. (BT-DELTA-6)
func (s *Stack) cutTo(word uint) {
	if word == 32 {
		for n := range s.PCs {
			s.PCs[n] &= 1<<32 - 1
		}
	}
}

// frames decodes depth frames from b, which holds 8 bytes or more. It returns the
// bit after them, or -1 if one has no base, where it stops. It does not know where
// the bits end: the caller holds what is returned to that. Of frames with a fault,
// those before it are right, marks and all.
//
// What takes the time is the way from one frame's place to the next, which leads
// through its count. So that is kept short, all else happens beside it, and what
// can be checked afterwards is.
func (s *Stack) frames(b []byte, depth int) (pos int) {
	if cap(s.PCs) < MaxDepth {
		s.PCs = make([]uint64, 0, MaxDepth)
	}
	s.PCs = s.PCs[:depth]
	s.Marks = Marks{}
	pcs := (*[MaxDepth]uint64)(s.PCs[:MaxDepth])
	lossy := uint32(0) // Marks.Lossy, in a register
	last := len(b) - 8
	pos = depthBits
	for n := 0; n < depth; n++ {
		off := min(pos>>3, last)
		w := binary.BigEndian.Uint64(b[off:]) << (uint(pos-8*off) & 63)
		if w>>63 == 0 { // literal; the spill bits are masked out (BT-FIELD-2)
			v := w << literalHead
			count := uint(w >> (64 - literalHead + spillWidth) & 63)
			if count-1 < windowBits-literalHead {
				v >>= (64 - count) & 63
			} else {
				count = fullCount(count)
				v = v>>((96-count)&63)<<32 | window(b, pos+int(literalHead+count)-32)>>32
			}
			pos += int(literalHead + count + spillWidth)
			if count > 32 {
				lossy |= s.Marks.mark(n, v, count)
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
			v = v>>((96-count)&63)<<32 | window(b, pos+int(deltaHead+count)-32)>>32
		}
		pos += int(deltaHead + count + spillWidth)
		base := n - 1 - int(w>>(64-backEnd)&(maxBack-1))
		if base < 0 {
			pos = -1
			break
		}
		lossy |= lossy >> (base & (MaxDepth - 1)) & 1 << (n & (MaxDepth - 1)) // as its base (BT-LOSS-3)
		if count > 32 {
			lossy |= s.Marks.mark(n, v, count)
		}
		subtract := -(w >> (64 - signEnd) & 1) // all ones if so (BT-DELTA-3)
		pcs[n&(MaxDepth-1)] = pcs[base&(MaxDepth-1)] + (v ^ subtract) - subtract
	}
	s.Marks.Lossy = lossy
	return pos
}
