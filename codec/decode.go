package codec

import "encoding/binary"

// Decoder decodes blobs and the lines that hold them. The zero Decoder reads blobs of encoders
// whose word size is not known, and rejects lines that differ from what [AppendLine] writes.
// Its methods panic if Word is none of the values below.
type Decoder struct {
	// Word is the word size of the encoder in bits: 32, 64, or 0 if it is not known. With 32,
	// values are modulo 2^32 and a count over 32 is rejected. Otherwise values are modulo 2^64;
	// those of a 32-bit encoder are then right, or right modulo 2^32. (BT-COUNT-4, BT-DELTA-6)
	Word int
	// Lenient reads lines as the reader of lws does: the lead-in and the padding may be missing,
	// '-' and '_' are read as '+' and '/', and spaces, tabs and line ends are skipped. (BT-B64-3)
	Lenient bool
}

// word returns the word size, 32 or 64.
func (d Decoder) word() uint {
	if d.Word == 32 {
		return 32
	}
	if d.Word|64 != 64 {
		panic("codec: the word of a Decoder must be 0, 32 or 64 bits")
	}
	return 64
}

// DecodeLine reads a ~m# line, without its line end, into s. On an [*Error], s is empty.
// (BT-TEXT-1)
func DecodeLine(s *Stack, line []byte) error {
	var buf [MaxBlobUser]byte
	var d Decoder
	blob, err := d.ParseLine(buf[:0], line)
	if err != nil {
		s.Reset()
		return err
	}
	return d.Decode(s, nil, blob)
}

// Decode reads a blob, including its length field, into s. If u is not nil, it also reads the
// bits after the size into u, as user fields: do so in a dump opened with u=1. The user fields
// do not affect how a depth field of 0 is read. On an [*Error], s and u are empty. (BT-UF-1,
// BT-UF-2, BT-DEPTH-2)
func (d Decoder) Decode(s *Stack, u *User, blob []byte) error {
	if u != nil {
		return decodeUser(s, u, blob, d.word())
	}
	_, err := decode(s, blob, d.word())
	return err
}

// decode reads a blob into s, and returns the position of the bit after the size.
func decode(s *Stack, blob []byte, word uint) (pos int, err error) {
	if len(blob) < minBlob || int(binary.BigEndian.Uint16(blob[len(blob)-lengthBytes:])) != len(blob) {
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

// readOrReject is like read, but returns the fault as an error and empties s.
func (s *Stack) readOrReject(b []byte, end, depth int, word uint) (pos int, err error) {
	if pos = s.read(b, end, depth, word); pos < 0 {
		s.Reset()
		return 0, diagnose(b, end, depth, word)
	}
	return pos, nil
}

// resolveDepth returns the depth of a blob whose depth field is 0. Such a blob is an empty
// stack or a stack of 32 frames; the bits after the field distinguish them. resolveDepth uses
// s as scratch space. (BT-DEPTH-2)
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

// Reset makes s empty. It keeps the array of PCs for reuse.
func (s *Stack) Reset() {
	s.PCs, s.Size, s.Marks = s.PCs[:0], 0, Marks{}
}

// fullCount returns the count that a 6-bit field holds, where 0 means 64. A count may
// be larger than its value needs. (BT-COUNT-2, BT-COUNT-3)
func fullCount(c uint) uint { return (c-1)&63 + 1 }

// read decodes depth frames and the size from b, whose bits end at end. It returns the
// position of the bit after the size, or -1 if b is malformed; diagnose then finds the
// fault.
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

// cutTo reduces the addresses modulo 2^word. (BT-DELTA-6)
func (s *Stack) cutTo(word uint) {
	if word == 32 {
		for n := range s.PCs {
			s.PCs[n] &= 1<<32 - 1
		}
	}
}

// frames decodes depth frames from b, which holds at least 8 bytes. It returns the
// position of the bit after the frames. At a delta whose base would be before frame 0,
// it stops and returns -1; the frames before that delta are decoded, with their marks.
// frames does not check where the bits of the blob end: the caller compares the result
// with the end.
//
// The position of a frame depends on the count of the frame before it. This chain of
// dependencies limits the speed, so the loop computes only the position on that chain
// and leaves checks to the end.
func (s *Stack) frames(b []byte, depth int) (pos int) {
	if cap(s.PCs) < MaxDepth {
		s.PCs = make([]uint64, 0, MaxDepth)
	}
	s.PCs = s.PCs[:depth]
	s.Marks = Marks{}
	pcs := (*[MaxDepth]uint64)(s.PCs[:MaxDepth])
	lossy := uint32(0) // a copy of Marks.Lossy
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
		lossy |= lossy >> (base & (MaxDepth - 1)) & 1 << (n & (MaxDepth - 1)) // lossy if its base is (BT-LOSS-3)
		if count > 32 {
			lossy |= s.Marks.mark(n, v, count)
		}
		subtract := -(w >> (64 - signEnd) & 1) // all ones to subtract, else 0 (BT-DELTA-3)
		pcs[n&(MaxDepth-1)] = pcs[base&(MaxDepth-1)] + (v ^ subtract) - subtract
	}
	s.Marks.Lossy = lossy
	return pos
}
