package codec

// AppendBare appends a stack alone, as lws_backtrace_compress_backtrace() writes it:
// depth and frames, without size and length, padded to a byte with zeros. It returns
// the extended slice and the number of bits that the stack takes. It fails as
// [Encoder.AppendBlob] does, and ignores s.Size. (BT-BARE-1)
func (e Encoder) AppendBare(dst []byte, s *Stack) (out []byte, bits int, err error) {
	bare := Stack{PCs: s.PCs} // a size of 0 takes the fewest bits
	out, err = e.AppendBlob(dst, &bare, nil)
	if err != nil {
		return dst, 0, err
	}
	bits, err = e.Bits(&bare)
	if err != nil {
		return dst, 0, err
	}
	bits -= sizeZeroBits
	out = out[:len(dst)+(bits+7)/8]
	if used := bits % 8; used != 0 {
		out[len(out)-1] &= 0xff << (8 - used) // clear the bits of the size in the last byte
	}
	return out, bits, nil
}

// sizeZeroBits is the number of bits that a size of 0 takes.
const sizeZeroBits = countBits + 1 + spillWidth

// DecodeBare reads a stack alone from the beginning of b into s, with a size of 0, and
// returns the number of bits that the stack takes. It ignores the bits after the stack.
// A depth field of 0 means 32 frames if b holds 32 frames, else none. On an [*Error], s
// is empty. (BT-BARE-1, BT-BARE-2)
func (d Decoder) DecodeBare(s *Stack, b []byte) (bits int, err error) {
	s.Reset()
	end := 8 * len(b)
	var short [8]byte
	b = padded(b, &short)
	depth := int(b[0] >> (8 - depthWidth))
	w := walker{b: b, end: end, word: d.word()}
	if fault := w.frames(depth, nil); fault != nil {
		return 0, fault
	}
	if depth == 0 {
		deepest := walker{b: b, end: end, word: w.word}
		if deepest.frames(MaxDepth, nil) == nil {
			w, depth = deepest, MaxDepth
		}
	}
	s.frames(b, depth)
	s.cutTo(w.word)
	return w.pos, nil
}
