package codec

// MaxDepth is the largest number of frames in a stack. (BT-DEPTH-1)
const MaxDepth = 32

// Stack is one allocation: its call stack and its size.
//
// The zero Stack is empty and ready to use. Decoding into a Stack reuses the array of
// PCs: copy PCs to keep them.
type Stack struct {
	// PCs are return addresses, innermost frame first, at most MaxDepth.
	PCs []uint64
	// Size is the number of bytes requested.
	Size uint64
	// Marks reports, after decoding, which values can be trusted. Encoding ignores it.
	Marks Marks
}

// Marks are the loss flags of a decoded stack. They identify values that may have lost
// their upper bits in the encoder. Bit n of each word is the flag of frame n. A value in a
// field wider than 32 bits comes either from an exact encoder, or from an encoder that
// kept only the low 31 bits. (BT-LOSS-2)
type Marks struct {
	// Wide: the frame's own field (literal or delta) has a count over 32.
	Wide uint32
	// Wrap: this field repeats its low bits from bit 32 up and has bit 31 set, as a
	// wrap64 encoder writes it.
	Wrap uint32
	// Zero: this field is 0 from bit 32 up and has bit 31 set, as a zero64 encoder
	// writes it.
	Zero uint32
	// Lossy: only the low 31 bits of the frame can be trusted, because its field is
	// marked Wrap or Zero, or because it is a delta from a lossy frame.
	Lossy uint32
	// LossySize: only the low 31 bits of Size can be trusted.
	LossySize bool
}

// wideMarks returns the marks of a value v in a field of count bits, 33 to 64. (BT-LOSS-2)
func wideMarks(v uint64, count uint) (wrap, zero bool) {
	if v>>31&1 == 0 {
		return false, false
	}
	high := v >> 32
	return high == v&(1<<((count-32)&63)-1), high == 0
}

// mark sets the marks of a frame whose own field is wide. It returns the bit of the
// frame if the field is lossy, else 0.
func (m *Marks) mark(frame int, v uint64, count uint) uint32 {
	wrap, zero := wideMarks(v, count)
	bit := uint32(1) << (frame & (MaxDepth - 1))
	m.Wide |= bit
	if wrap {
		m.Wrap |= bit
	}
	if zero {
		m.Zero |= bit
	}
	if wrap || zero {
		return bit
	}
	return 0
}
