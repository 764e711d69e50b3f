package callpath

import "slices"

// Limits of spec/callpaths.md.
const (
	MaxDepth  = 1024    // frames of a call path (BT-ENTRY-3)
	MaxOffset = 1 << 27 // code offsets are below it (BT-CODE-2)
	MaxUnit   = 12      // of addresses (BT-PLINE-1)
)

// Frame is a frame of a call path: a code offset, or an address outside the code ranges.
type Frame struct {
	Value   uint64 // code offset below MaxOffset; if Escaped, an address
	Escaped bool
}

// Base is the beginning of a path, before its first frame. (BT-ENTRY-1)
type Base uint8

const (
	Whole Base = 0 // the outermost frame of the stack
	Cut   Base = 1 // an inner frame: the outer frames were not captured
	Named Base = 2 // the path whose name is Outer, and then the frames
)

// Path is a call path in the form of a line: a base, and the frames after it, outermost first.
type Path struct {
	Base   Base
	Outer  uint32  // name of the outer part, if Base is Named
	Frames []Frame // outermost first; at most MaxDepth
}

// Name returns the name of the path. The name depends on all frames of the path, including
// the frames of an outer part that Outer names. (BT-NAME-1)
func (p *Path) Name() uint32 {
	h := p.root()
	for _, f := range p.Frames {
		h = f.mix(h)
	}
	return h
}

// root returns the name of the path without its frames. (BT-NAME-1)
func (p *Path) root() uint32 {
	if p.Base == Named {
		return p.Outer
	}
	return uint32(p.Base)
}

// mix returns the name of the path that consists of a path with name h and frame f. (BT-NAME-1)
func (f Frame) mix(h uint32) uint32 {
	if f.Escaped {
		return mix(mix(mix(h, 0xffffffff), uint32(f.Value)), uint32(f.Value>>32))
	}
	return mix(h, uint32(f.Value))
}

func mix(h, x uint32) uint32 {
	g := (h ^ x) * 0x9e3779b1
	return g ^ g>>15
}

// Clone returns a copy of the path that does not share its frames.
func (p *Path) Clone() Path {
	return Path{p.Base, p.Outer, slices.Clone(p.Frames)}
}
