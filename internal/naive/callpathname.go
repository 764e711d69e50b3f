package naive

// CodeRange is a range of executable addresses.
type CodeRange struct{ Start, Length uint64 }

// mix returns the name of a path by that of the path without its innermost frame, where x is
// what this frame is mixed in with.
func mix(h uint32, x uint32) uint32 {
	g := (h ^ x) * 0x9E3779B1
	return g ^ (g >> 15)
}

// Name returns the name of a path: that of base 0, or of base 1 if cut is set, and frames,
// outermost first.
func Name(cut bool, frames []CallFrame) uint32 {
	if cut {
		return NameBehind(1, frames)
	}
	return NameBehind(0, frames)
}

// NameBehind returns the name of the path that has this outer part, given by its name, and
// frames further in.
func NameBehind(outer uint32, frames []CallFrame) uint32 {
	h := outer
	for _, f := range frames {
		if f.Escaped {
			h = mix(h, 0xFFFFFFFF)
			h = mix(h, uint32(f.X%(1<<32)))
			h = mix(h, uint32(f.X/(1<<32)))
		} else {
			h = mix(h, uint32(f.X))
		}
	}
	return h
}

// ToFrame returns the frame of an address, by ranges that are laid end to end, in units of
// 2^shift bytes. Of ranges that hold the address the last one counts. (BT-CODE-1, BT-CODE-2)
func ToFrame(address uint64, ranges []CodeRange, shift int) CallFrame {
	unit := uint64(1) << shift
	found := CallFrame{Escaped: true, X: address}
	before := uint64(0)
	for _, r := range ranges {
		if whole := r.Length / unit * unit; address >= r.Start && address-r.Start < r.Length {
			found = CallFrame{Escaped: true, X: address}
			at := address - r.Start
			if at < whole && at%unit == 0 && before+at/unit < codeLimit {
				found = CallFrame{X: before + at/unit}
			}
		}
		before += r.Length / unit
	}
	return found
}
