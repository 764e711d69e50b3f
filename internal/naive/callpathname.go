package naive

// CodeRange is a range of executable addresses.
type CodeRange struct{ Start, Length uint64 }

// mix returns the name of a path. h is the name of the path without its innermost frame, and
// x is the value of this frame for the hash.
func mix(h uint32, x uint32) uint32 {
	g := (h ^ x) * 0x9E3779B1
	return g ^ (g >> 15)
}

// Name returns the name of the path with base 0, or base 1 if cut is set, and frames,
// outermost first.
func Name(cut bool, frames []CallFrame) uint32 {
	if cut {
		return NameBehind(1, frames)
	}
	return NameBehind(0, frames)
}

// NameBehind returns the name of the path with the outer part named outer, followed by
// frames, outermost first.
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

// ToFrame returns the frame of an address. Offsets count units of 2^shift bytes over the
// ranges end to end. If several ranges hold the address, the last one counts. (BT-CODE-1,
// BT-CODE-2)
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
