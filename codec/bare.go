package codec

// AppendBare appends the bits of a stack alone, depth and frames without size
// and length, as lws_backtrace_compress_backtrace() writes them, padded to a
// byte with zeros. It returns the extended slice and how many bits the stack
// takes, and fails as [AppendBlob] does. s.Size is ignored. (BT-BARE-1)
func AppendBare(dst []byte, s *Stack, m Machine, search Search) (out []byte, bits int, err error) {
	bare := Stack{PCs: s.PCs} // a size of 0 takes least
	out, err = AppendBlob(dst, &bare, m, search)
	if err != nil {
		return dst, 0, err
	}
	bits, err = BlobBits(&bare, m, search)
	if err != nil {
		return dst, 0, err
	}
	bits -= sizeZeroBits
	out = out[:len(dst)+(bits+7)/8]
	if used := bits % 8; used != 0 {
		out[len(out)-1] &= 0xff << (8 - used) // what the size had of the last byte
	}
	return out, bits, nil
}

// sizeZeroBits is what a size of 0 takes.
const sizeZeroBits = countBits + 1 + spillWidth

// DecodeBare reads a stack alone from the beginning of b into s, with a size of
// 0, and returns how many bits it takes; what follows it is the caller's. A depth
// written 0 is 32 if b holds 32 frames, else 0. On an [*Error], s is empty.
// (BT-BARE-1, BT-BARE-2)
func DecodeBare(s *Stack, b []byte) (bits int, err error) {
	return DecodeBareWord(s, b, 64)
}

// DecodeBareWord is [DecodeBare] for a known word of the encoder, as [DecodeWord].
// (BT-BARE-1, BT-COUNT-4)
func DecodeBareWord(s *Stack, b []byte, word int) (bits int, err error) {
	s.Reset()
	end := 8 * len(b)
	var short [8]byte
	b = padded(b, &short)
	depth := int(b[0] >> (8 - depthWidth))
	w := walker{b: b, end: end, word: checkWord(word)}
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
