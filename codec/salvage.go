package codec

import "bytes"

// Salvage decodes what can be trusted of a blob whose end was cut off, as lws's own
// dump cuts long ones. It fills s.PCs with the complete frames, and
// returns the depth that the blob announces, whether s.Size was still there, and
// why the blob as it stands is rejected; nil if it is not.
//
// Only a cut is salvaged. If the blob has its right length and is rejected, or its
// bits contradict themselves, then something else happened to it, no frame can be
// trusted, and s is empty. s is also empty if a cut blob has a depth written 0, which
// may mean 32 frames, or an empty stack with user bits. (BT-SALV-1, BT-SALV-2)
func Salvage(s *Stack, blob []byte) (depth int, sized bool, err error) {
	return SalvageWord(s, blob, 64)
}

// SalvageWord is [Salvage] of a blob whose encoder had a word of 32 or 64 bits, as
// [DecodeWord] reads it. (BT-SALV-1, BT-SALV-2)
func SalvageWord(s *Stack, blob []byte, word int) (depth int, sized bool, err error) {
	bits := checkWord(word)
	if err = checkLength(blob); err == nil {
		if err := DecodeWord(s, blob, word); err != nil {
			return 0, false, err
		}
		return len(s.PCs), true, nil
	}
	s.Reset()
	if len(blob) == 0 || blob[0]>>(8-depthWidth) == 0 {
		return 0, false, err
	}
	// The length's place, and space for a window.
	b, end := append(bytes.Clone(blob), make([]byte, 8)...), 8*len(blob)
	depth = int(b[0] >> (8 - depthWidth))
	if s.read(b, end, depth, bits) >= 0 {
		return depth, true, err
	}
	fault := diagnose(b, end, depth, bits)
	if fault.Reason != ReasonTruncated {
		s.Reset()
		return depth, false, fault
	}
	if fault.Frame >= 0 {
		s.keep(fault.Frame)
	}
	s.cutTo(bits)
	s.Size, s.Marks.LossySize = 0, false
	return depth, false, err
}

// keep forgets all frames of s but the first n.
func (s *Stack) keep(n int) {
	s.PCs = s.PCs[:n]
	kept := uint32(1)<<n - 1
	s.Marks.Wide &= kept
	s.Marks.Wrap &= kept
	s.Marks.Zero &= kept
	s.Marks.Lossy &= kept
}
