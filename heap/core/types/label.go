package types

import "sort"

// Struct returns the type of a block of a size that was allocated by a call stack; pcs are return addresses as in the
// file, the innermost first. It returns nil if there is no such type, or more than one.
func (i *Info) Struct(size uint64, pcs []uint64) *Struct {
	for _, pc := range pcs {
		frames := i.frames(pc - 1) // of the call
		if len(frames) == 0 {
			return nil
		}
		for k := len(frames) - 1; k >= 0; k-- {
			if frames[k].sized {
				continue
			}
			s, known := frames[k].only(size)
			if known || !frames[k].wrapper {
				return s
			}
		}
	}
	return nil
}

// only returns the struct of a size to which the function's variables point, nil if there are several, or if one
// is open at its end, so that its blocks can have this size. known is false if there is none.
func (s *scope) only(size uint64) (_ *Struct, known bool) {
	var found *Struct
	for _, t := range s.structs {
		if t.open && t.Size <= size {
			return nil, true
		}
		if t.Size == size {
			if found != nil {
				return nil, true
			}
			found = t
		}
	}
	return found, found != nil
}

// frames returns the function at an address, and those inlined there, the innermost last.
func (i *Info) frames(pc uint64) (list []*scope) {
	n := sort.Search(len(i.functions), func(k int) bool { return i.functions[k].ranges[0][0] > pc })
	at := -1
	for k := n - 1; k >= 0 && k > n-maxDepth && at < 0; k-- {
		if i.functions[k].holds(pc) {
			at = k
		}
	}
	for k := 0; k < len(i.functions) && at < 0; k++ { // a part that was moved away
		if len(i.functions[k].ranges) > 1 && i.functions[k].holds(pc) {
			at = k
		}
	}
	if at < 0 {
		return nil
	}
	for s := i.functions[at]; s != nil; {
		list = append(list, s)
		var in *scope
		for _, x := range s.inlined {
			if x.holds(pc) {
				in = x
			}
		}
		s = in
	}
	return list
}

// Fits reports whether a block can have the type by its content: each pointer is 0, or an address of memory.
func (s *Struct) Fits(pointer func(off uint64) (uint64, bool), memory func(addr uint64) bool) bool {
	for _, p := range s.pointers {
		v, ok := pointer(p.off)
		if !ok || v != 0 && !memory(v) {
			return false
		}
	}
	return true
}
