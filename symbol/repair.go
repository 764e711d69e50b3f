package symbol

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Repaired says, bit n for frame n, what became of frames of which an encoder
// kept the low 31 bits alone. What is in neither was never hurt.
type Repaired struct {
	Inferred uint32 // given back: the only address that fits
	Lost     uint32 // as it was read: no address fits, or several
	Several  uint32 // of Lost: several
}

// Repairer gives back the bits that lossy encoders dropped. It keeps memory
// between records; the zero value is ready.
type Repairer struct {
	// Plausible, if not nil, weighs candidates where there are several: whether
	// code in front of a return address can be a call.
	Plausible func(s *Space, addr uint64) bool

	fields []codec.Field
	frames [codec.MaxDepth]repairFrame
}

// repairFrame is what a record says of a frame, and which addresses fit.
type repairFrame struct {
	value uint64 // of its literal or delta
	count int    // of bits of it
	base  int    // frame it is a delta from, -1: a literal
	sub   bool
	cands []candidate
	hurt  bool
}

type candidate struct {
	addr uint64
	base int // index among the base's candidates, -1 if there is none to agree with
	dead bool
}

// Repair replaces each hurt address of s, which was decoded from blob, by the
// one address that is executable in space and would have been written like this:
// with the same low 31 bits, the same count of bits, and in accord with the
// frames it is a delta from or that are deltas from it.
func (r *Repairer) Repair(s *codec.Stack, blob []byte, space *Space) Repaired {
	if s.Marks.Lossy == 0 {
		return Repaired{}
	}
	if !r.read(s, blob) {
		return Repaired{Lost: s.Marks.Lossy}
	}
	n := len(s.PCs)
	for i := range n {
		r.propose(i, s.PCs[i], space)
	}
	// Candidates form trees along the deltas: what no child agrees with falls
	// from the leaves up, what no parent agrees with from the root down.
	for i := n - 1; i >= 0; i-- {
		r.pruneParent(i)
	}
	for i := range n {
		r.pruneOrphans(i)
	}
	var out Repaired
	for i := range n {
		f := &r.frames[i]
		if !f.hurt {
			continue
		}
		alive := f.alive()
		if len(alive) > 1 && r.Plausible != nil {
			alive = slices.DeleteFunc(alive, func(a uint64) bool { return !r.Plausible(space, a) })
		}
		switch len(alive) {
		case 1:
			s.PCs[i] = alive[0]
			out.Inferred |= 1 << i
		case 0:
			out.Lost |= 1 << i
		default:
			out.Lost |= 1 << i
			out.Several |= 1 << i
		}
	}
	return out
}

// read takes each frame's field from the blob.
func (r *Repairer) read(s *codec.Stack, blob []byte) bool {
	var err error
	r.fields, err = codec.AppendFields(r.fields[:0], blob)
	seen := 0
	for _, f := range r.fields {
		if f.Frame < 0 || f.Frame >= len(s.PCs) {
			continue
		}
		fr := &r.frames[f.Frame]
		switch f.Kind {
		case codec.FieldKindBit:
			*fr = repairFrame{base: -1, cands: fr.cands[:0], hurt: s.Marks.Lossy>>f.Frame&1 != 0}
		case codec.FieldBack:
			fr.base = f.Frame - 1 - int(f.Value)
		case codec.FieldSign:
			fr.sub = f.Value == 1
		case codec.FieldLiteral, codec.FieldDelta:
			fr.value, fr.count = f.Value, f.Width
			seen++
		}
	}
	// Of a cut record, the frames before the cut are enough.
	return seen >= len(s.PCs) && (err == nil || seen > 0)
}

// propose lists the addresses that a frame can be.
func (r *Repairer) propose(i int, read uint64, space *Space) {
	f := &r.frames[i]
	if !f.hurt {
		f.cands = append(f.cands, candidate{addr: read, base: -1})
		return
	}
	var buf [maxCandidates]uint64
	if f.base < 0 || len(r.frames[f.base].cands) == 0 {
		for _, a := range space.withLow(buf[:0], read) {
			if f.base >= 0 || f.wrote(a) {
				f.cands = append(f.cands, candidate{addr: a, base: -1})
			}
		}
		return
	}
	for b, base := range r.frames[f.base].cands {
		if f.count <= 32 { // the delta is exact
			a := base.addr + f.value
			if f.sub {
				a = base.addr - f.value
			}
			if space.Exec(a) && len(f.cands) < maxCandidates {
				f.cands = append(f.cands, candidate{addr: a, base: b})
			}
			continue
		}
		for _, a := range space.withLow(buf[:0], read) {
			d := a - base.addr
			if f.sub {
				d = -d
			}
			if f.wrote(d) && len(f.cands) < maxCandidates {
				f.cands = append(f.cands, candidate{addr: a, base: b})
			}
		}
	}
}

// wrote says whether some encoder writes v into the frame's field as it stands.
func (f *repairFrame) wrote(v uint64) bool {
	return significant(v) == f.count &&
		(codec.MachineWrap64.Wire(v) == f.value || codec.MachineZero64.Wire(v) == f.value || v == f.value)
}

// pruneParent strikes the candidates of a frame's base that none of the frame's
// own agrees with; a frame without candidates says nothing.
func (r *Repairer) pruneParent(i int) {
	f := &r.frames[i]
	if f.base < 0 {
		return
	}
	var needed uint64
	for _, c := range f.cands {
		if c.base >= 0 && !c.dead {
			needed |= 1 << c.base
		}
	}
	if needed == 0 {
		return
	}
	base := &r.frames[f.base]
	for b := range base.cands {
		if needed>>b&1 == 0 {
			base.cands[b].dead = true
		}
	}
}

func (r *Repairer) pruneOrphans(i int) {
	f := &r.frames[i]
	for c := range f.cands {
		if b := f.cands[c].base; b >= 0 && r.frames[f.base].cands[b].dead {
			f.cands[c].dead = true
		}
	}
}

// alive lists the distinct addresses that are left.
func (f *repairFrame) alive() (list []uint64) {
	for _, c := range f.cands {
		if !c.dead && !slices.Contains(list, c.addr) {
			list = append(list, c.addr)
		}
	}
	return list
}
