package codec

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
	if err := checkLength(blob); err != nil {
		s.reset()
		return err
	}
	var short [8]byte
	b := padded(blob, &short)
	end := 8 * (len(blob) - lengthBytes)
	depth := int(b[0] >> (8 - depthWidth))
	if depth == 0 {
		depth = resolveDepth(s, b, end, word)
	}
	if s.read(b, end, depth, word) < 0 {
		s.reset()
		return diagnose(b, end, depth, word)
	}
	return nil
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

func (s *Stack) reset() {
	s.PCs, s.Size, s.Marks = s.PCs[:0], 0, Marks{}
}

// fullCount is the count that 6 bits mean: 0 stands for 64. (BT-COUNT-2)
func fullCount(c uint) uint { return (c-1)&63 + 1 }

// read decodes depth frames and the size from b, whose bits end at end. It
// returns the bit after the size, or -1 if anything was amiss; it leaves to
// diagnose to say what.
func (s *Stack) read(b []byte, end, depth int, word uint) int {
	n, pos := s.readFrames(b, end, depth, word)
	if n < depth {
		return -1
	}
	w := window(b, pos)
	count := fullCount(uint(w >> (64 - countWidth)))
	v := w << countBits >> (64 - count)
	if countBits+count > windowBits {
		v = bitsAt(b, pos+countBits, count)
	}
	pos += int(countBits + count + spillWidth)
	if pos > end || count > word {
		return -1
	}
	s.Size = v
	if count > 32 {
		wrap, zero := wideMarks(v, count)
		s.Marks.HurtSize = wrap || zero
	}
	return pos
}

// readFrames decodes up to depth frames and returns how many were whole and
// sound, and the bit after the last of them.
//
// A frame is read from one window where its value ends in it (values up to 48
// bits in literals, 42 in deltas), else from two. Kinds follow no pattern that a
// processor could learn, so literal and delta take the same path: a literal is
// added to a base of 0.
func (s *Stack) readFrames(b []byte, end, depth int, word uint) (n, pos int) {
	if cap(s.PCs) < MaxDepth {
		s.PCs = make([]uint64, 0, MaxDepth)
	}
	s.PCs = s.PCs[:depth]
	pcs := (*[MaxDepth]uint64)(s.PCs[:MaxDepth])
	mask := ^uint64(0) >> (64 - word)
	s.Marks = Marks{}
	pos = depthBits
	for n = 0; n < depth; n++ {
		w := window(b, pos)
		delta := uint(w >> 63)    // 1 for a delta, 0 for a literal
		back := int(w >> 59 & 7)  // frames back, less one; means nothing in a literal
		isDelta := -uint64(delta) // all ones for a delta
		neg := -(w >> 57 & 1) & isDelta
		head := literalHead + (deltaHead-literalHead)*delta
		count := fullCount(uint(w>>(56-(deltaHead-literalHead)*delta)) & 63)

		var v uint64
		if head+count <= windowBits {
			v = w << head >> (64 - count)
		} else {
			v = bitsAt(b, pos+int(head), count)
		}
		next := pos + int(head+count+spillWidth)

		noBase := delta &^ (uint(back-n) >> 63) // delta, and back >= n
		if noBase != 0 || next > end || count > word {
			break
		}
		pos = next
		base := (n - 1 - back) & (MaxDepth - 1)
		if count > 32 {
			s.Marks.mark(n, v, count)
		}
		s.Marks.Hurt |= (s.Marks.Hurt >> base & uint32(delta)) << n
		pcs[n] = (pcs[base]&isDelta + (v ^ neg) - neg) & mask
	}
	return n, pos
}
