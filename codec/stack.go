package codec

// MaxDepth is the most frames a stack can have. (BT-DEPTH-1)
const MaxDepth = 32

// Stack is one allocation: its call stack and its size.
//
// The zero Stack is an empty one and ready to use. Decoding into a Stack reuses
// the array under PCs, so copy what must outlive the next decoding.
type Stack struct {
	// PCs are return addresses, innermost frame first, at most MaxDepth.
	PCs []uint64
	// Size is how many bytes were asked for.
	Size uint64
	// Marks tells, after decoding, which values can be trusted. Encoding ignores it.
	Marks Marks
}

// Marks says which decoded values may come from an encoder that loses bits; bit n of
// each word is for frame n. A value of a field wider than 32 bits came either from an exact
// encoder, or from one that kept its low 31 bits alone. (BT-LOSS-2)
type Marks struct {
	// Wide: the frame's own field (its literal or its delta) has a count over 32.
	Wide uint32
	// Wrap: such a field repeats its low bits from bit 32 up and has bit 31 set,
	// as a wrap64 encoder leaves it.
	Wrap uint32
	// Zero: such a field is 0 from bit 32 up and has bit 31 set, as a zero64
	// encoder leaves it.
	Zero uint32
	// Lossy: only the frame's low 31 bits can be trusted, because its field shows
	// Wrap or Zero, or because the frame it is a delta from is lossy.
	Lossy uint32
	// LossySize: the same for Size.
	LossySize bool
}

// wideMarks reports which marks a value v has of a field of count bits, 33 to 64. (BT-LOSS-2)
func wideMarks(v uint64, count uint) (wrap, zero bool) {
	if v>>31&1 == 0 {
		return false, false
	}
	high := v >> 32
	return high == v&(1<<((count-32)&63)-1), high == 0
}

// mark notes a frame's own wide field. It returns the frame's bit if the field is
// lossy, else 0.
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
