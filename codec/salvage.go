package codec

import "bytes"

// Salvage decodes the trustworthy part of a blob whose end was cut off; the dump of lws
// truncates long blobs. It sets s.PCs to the complete frames. It returns the depth that
// the blob announces, whether the size is complete, and the error for which Decode
// rejects the blob, nil if Decode accepts it.
//
// Only a truncated blob is salvaged. If Decode rejects a blob with the right length, or the
// bits contradict each other, the blob was damaged in another way: no frame can be
// trusted, and s is empty. s is also empty if the depth field of a truncated blob is 0:
// such a blob may be a stack of 32 frames, or an empty stack with user bits. (BT-SALV-1,
// BT-SALV-2)
func (d Decoder) Salvage(s *Stack, blob []byte) (depth int, sized bool, err error) {
	bits := d.word()
	if err = checkLength(blob); err == nil {
		if err := d.Decode(s, nil, blob); err != nil {
			return 0, false, err
		}
		return len(s.PCs), true, nil
	}
	s.Reset()
	if len(blob) == 0 || blob[0]>>(8-depthWidth) == 0 {
		return 0, false, err
	}
	// The bytes of the length field are data in a truncated blob. window needs 8 more.
	b, end := append(bytes.Clone(blob), make([]byte, 8)...), 8*len(blob)
	depth = int(b[0] >> (8 - depthWidth))
	if s.read(b, end, depth, bits) >= 0 {
		return depth, true, err
	}
	fault := diagnose(b, end, depth, bits)
	if fault.Reason != reasonTruncated {
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

// keep removes all frames of s except the first n.
func (s *Stack) keep(n int) {
	s.PCs = s.PCs[:n]
	kept := uint32(1)<<n - 1
	s.Marks.Wide &= kept
	s.Marks.Wrap &= kept
	s.Marks.Zero &= kept
	s.Marks.Lossy &= kept
}
