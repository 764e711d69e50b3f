package naive

// digitWriter appends fields to a text.
type digitWriter struct{ text string }

func (w *digitWriter) fixed(v uint64, n int) {
	for range n {
		w.text += string(alphabet[v%64])
		v /= 64
	}
}

func (w *digitWriter) number(v uint64) {
	for v >= 32 {
		w.fixed(32+v%32, 1)
		v /= 32
	}
	w.fixed(v, 1)
}

// frame writes a step from ref, or an escape.
func (w *digitWriter) frame(f CallFrame, ref uint64) {
	if f.Escaped {
		w.text += "/////"
		w.number(f.X)
		return
	}
	v := fold(int64(f.X) - int64(ref))
	for class := range 4 {
		if v < []uint64{1 << 10, 1 << 16, 1 << 22, 1 << 28}[class] {
			w.fixed(4*v+uint64(class), class+2)
			return
		}
	}
}

// WritePaths returns the ~p# line of entries in the plainest form: each path is written with its own base,
// no frames of the entry before are used. Reserved numbers are 0, and flag 32 has no digits.
func WritePaths(l PathLine) string {
	return WritePathsSharing(l, func(int) uint64 { return 0 })
}

// WritePathsSharing is WritePaths with the base that form returns for each entry: 4 or more
// for a path that continues the previous entry, 0 for the entry's own base. The form must fit
// the entry.
func WritePathsSharing(l PathLine, form func(n int) uint64) string {
	w := &digitWriter{}
	w.fixed(uint64(l.Flags), 1)
	w.fixed(uint64(l.Dump), 1)
	w.fixed(uint64(l.Sequence), 2)
	if l.Flags&flagBlocks != 0 {
		w.fixed(l.Unit, 1)
	}
	units := uint64(0)
	for n, e := range l.Entries {
		if k := form(n); k >= 4 {
			before := l.Entries[n-1].Frames
			keep := len(before) - int(k-4)
			ref := uint64(0)
			if k > 4 {
				ref = reference(before[keep])
			} else if keep > 0 {
				ref = reference(before[keep-1])
			}
			w.number(k)
			w.frames(e.Frames[keep:], ref)
		} else {
			w.number(uint64(e.Base))
			if e.Base >= 2 {
				w.fixed(uint64(e.Name), 6)
			}
			if e.Base != 2 {
				w.frames(e.Frames, 0)
			}
		}
		w.values(e, l, &units)
	}
	w.fixed(crc16(w.text), 3)
	return "~p#" + w.text
}

func (w *digitWriter) frames(frames []CallFrame, ref uint64) {
	w.number(uint64(len(frames)))
	for _, f := range frames {
		w.frame(f, ref)
		ref = reference(f)
	}
}

func (w *digitWriter) values(e PathEntry, l PathLine, units *uint64) {
	if e.Definition {
		w.number(0)
		return
	}
	w.number(e.Live + 1)
	if l.Flags&flagBlocks != 0 {
		for _, b := range e.Blocks {
			w.number(fold(int64(b.Address>>l.Unit - *units)))
			w.number(b.Size)
			*units = b.Address >> l.Unit
		}
	} else {
		w.number(e.Bytes)
	}
	if l.Flags&flagEver != 0 {
		w.number(e.Allocs)
		w.number(e.Ever)
	}
	if l.Flags&flagPeak != 0 {
		w.number(e.Peak)
	}
	for _, flag := range []int{flagSpare8, flagSpare, flagLater} {
		if l.Flags&flag != 0 {
			w.number(0)
		}
	}
}

// PathCRC returns the digits of the CRC of a ~p# line whose other digits are text.
func PathCRC(text string) string {
	w := digitWriter{}
	w.fixed(crc16(text), 3)
	return w.text
}

// EventCRC returns the digits of the CRC of a ~v# line whose other digits are text.
func EventCRC(text string) string {
	w := digitWriter{}
	w.fixed(crc32(text), 6)
	return w.text
}
