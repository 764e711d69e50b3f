package codec

// AppendFields appends every field of a blob to dst, in order, the length last, and
// returns the extended slice. There are no gaps between fields: padding and user bits
// are one field. On an [*Error], the result has the fields before the fault.
// (BT-FIELD-1, BT-DEPTH-2)
func (d Decoder) AppendFields(dst []Field, blob []byte) ([]Field, error) {
	if err := checkLength(blob); err != nil {
		return dst, err
	}
	var short [8]byte
	b := padded(blob, &short)
	w := walker{b: b, end: 8 * (len(blob) - lengthBytes), word: d.word()}
	depth := int(b[0] >> (8 - depthWidth))
	if depth == 0 {
		depth = resolveDepth(&Stack{}, b, w.end, w.word)
	}
	if err := w.walk(depth, &dst); err != nil {
		return dst, err
	}
	if w.pos < w.end { // padding, or user bits (BT-USER-1)
		n := w.end - w.pos
		dst = append(dst, Field{Kind: fieldUser, Frame: -1, Off: w.pos, Width: n,
			Value: bitsAt(b, w.pos, uint(min(n, 64)))})
	}
	return append(dst, Field{Kind: fieldLength, Frame: -1, Off: w.end, Width: lengthWidth,
		Value: uint64(len(blob))}), nil
}

// diagnose returns the fault that read found in the same input. It reads one field at a
// time.
func diagnose(b []byte, end, depth int, word uint) *Error {
	w := walker{b: b, end: end, word: word}
	if err := w.walk(depth, nil); err != nil {
		return err
	}
	// Not reached unless read and walk differ, which tests exclude.
	return bitError(w.pos, fieldUser, -1, reasonTruncated, "internal error: read and walk differ")
}

// walker reads a blob one field at a time. If out is not nil, its methods append the
// fields to *out.
type walker struct {
	b    []byte
	pos  int // in bits
	end  int // position of the length field, in bits
	word uint
}

// walk reads the depth field, depth frames, and the size.
func (w *walker) walk(depth int, out *[]Field) *Error {
	if err := w.frames(depth, out); err != nil {
		return err
	}
	return w.value(fieldSizeCount, fieldSize, -1, out)
}

// frames reads the depth field and depth frames.
func (w *walker) frames(depth int, out *[]Field) *Error {
	if _, err := w.field(fieldDepth, -1, depthWidth, out); err != nil {
		return err
	}
	for n := range depth {
		if err := w.frame(n, out); err != nil {
			return err
		}
	}
	return nil
}

// frame reads a literal or a delta. (BT-ITEM-1)
func (w *walker) frame(n int, out *[]Field) *Error {
	at := w.pos
	kind, err := w.field(fieldKindBit, n, kindWidth, out)
	if err != nil {
		return err
	}
	if kind == 0 {
		return w.value(fieldCount, fieldLiteral, n, out)
	}
	if n == 0 {
		return bitError(at, fieldKindBit, n, reasonDeltaFirst,
			"is 1, expected 0: frame 0 has nothing to be a delta from")
	}
	at = w.pos
	back, err := w.field(fieldBack, n, backWidth, out)
	if err != nil {
		return err
	}
	if int(back) >= n {
		return bitError(at, fieldBack, n, reasonBack,
			"is %d, for %d frames back, expected at most %d", back, back+1, n-1)
	}
	if _, err := w.field(fieldSign, n, signWidth, out); err != nil {
		return err
	}
	return w.value(fieldCount, fieldDelta, n, out)
}

// value reads a count and a value with that many bits. (BT-COUNT-2, BT-COUNT-4)
func (w *walker) value(countKind, valueKind FieldKind, frame int, out *[]Field) *Error {
	at := w.pos
	c, err := w.field(countKind, frame, countWidth, out)
	if err != nil {
		return err
	}
	count := fullCount(uint(c))
	if count > w.word {
		return bitError(at, countKind, frame, reasonCount,
			"is %d, expected at most %d in words of %d bits", count, w.word, w.word)
	}
	_, err = w.field(valueKind, frame, int(count), out)
	return err
}

// field reads width bits and a spill bit, or returns an error. (BT-FIELD-1, BT-FIELD-4)
func (w *walker) field(k FieldKind, frame, width int, out *[]Field) (uint64, *Error) {
	if left := w.end - w.pos; width+spillWidth > left {
		return 0, bitError(w.pos, k, frame, reasonTruncated,
			"takes %d bits, %d are left before the length", width+spillWidth, left)
	}
	v := bitsAt(w.b, w.pos, uint(width))
	if out != nil {
		*out = append(*out, Field{Kind: k, Frame: frame, Off: w.pos, Width: width,
			Value: v, Spill: bitsAt(w.b, w.pos+width, spillWidth) == 1})
	}
	w.pos += width + spillWidth
	return v, nil
}
