package symbol

import (
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// recoverer recovers the bits that lossy encoders dropped. It reuses memory between
// records. The zero value is ready to use.
type recoverer struct {
	// plausible, if not nil, reports whether the code before an address can be a call. It
	// is used if several addresses fit.
	plausible func(addr uint64) bool

	fields []codec.Field
	frames [codec.MaxDepth]recoverFrame
}

// recoverFrame holds the fields of a frame in a record, and its candidate addresses.
type recoverFrame struct {
	value uint64 // of its literal or delta
	count int    // number of its bits
	base  int    // frame it is a delta from, -1: a literal
	sub   bool
	cands []uint64
	lossy bool
	open  bool // there may be more candidates than cands
}

// recover sets each lossy address of a record to the only fitting address: executable in
// space, with the same low 31 bits and the same count of bits, and consistent with the frames
// that are linked to it by deltas. The record was decoded from blob. Bit n of lossy is set if
// address n is lossy. Bit n of ambiguous is set if several addresses fit address n.
func (r *recoverer) recover(addrs []Addr, lossy uint32, blob []byte, space *space) (ambiguous uint32) {
	n := len(addrs)
	if n > codec.MaxDepth || !r.read(n, lossy, blob) {
		for i := range addrs {
			if lossy>>i&1 != 0 {
				addrs[i].State = Lost
			}
		}
		return 0
	}
	for i := range n {
		r.propose(i, addrs[i].PC, space)
	}
	// Deltas link the frames to trees. Candidates that no child confirms are removed from the
	// leaves up, candidates that no parent confirms from the root down.
	for i := n - 1; i >= 0; i-- {
		r.pruneParent(i)
	}
	for i := range n {
		f := &r.frames[i]
		if !f.lossy {
			continue
		}
		f.cands = slices.DeleteFunc(f.cands, func(a uint64) bool { return !r.fits(f, a) })
		alive := f.cands
		if len(alive) > 1 && r.plausible != nil {
			alive = slices.DeleteFunc(slices.Clone(alive), func(a uint64) bool { return !r.plausible(a) })
		}
		addrs[i].State = Lost
		switch {
		case len(alive) == 1 && !f.open:
			addrs[i].PC, addrs[i].State = alive[0], Inferred
		case len(alive) > 0 || f.open:
			ambiguous |= 1 << i
		}
	}
	return ambiguous
}

// read reads the fields of n frames from the blob, and reports whether the blob has all of
// them.
func (r *recoverer) read(n int, lossy uint32, blob []byte) bool {
	var err error
	r.fields, err = codec.Decoder{}.AppendFields(r.fields[:0], blob)
	seen := 0
	for _, f := range r.fields {
		if f.Frame < 0 || f.Frame >= n {
			continue
		}
		fr := &r.frames[f.Frame]
		switch f.Kind {
		case "kind":
			*fr = recoverFrame{base: -1, cands: fr.cands[:0], lossy: lossy>>f.Frame&1 != 0}
		case "back":
			fr.base = f.Frame - 1 - int(f.Value)
		case "sign":
			fr.sub = f.Value == 1
		case "literal", "delta":
			fr.value, fr.count = f.Value, f.Width
			seen++
		}
	}
	// Of a cut record, the frames before the cut are enough.
	return seen >= n && (err == nil || seen > 0)
}

// propose finds the candidate addresses of a frame.
func (r *recoverer) propose(i int, read uint64, space *space) {
	f := &r.frames[i]
	if !f.lossy {
		f.cands = append(f.cands, read)
		return
	}
	var base recoverFrame
	if f.base >= 0 {
		base = r.frames[f.base]
	}
	if f.count <= 32 && len(base.cands) > 0 { // the delta is exact
		f.open = base.open
		for _, b := range base.cands {
			a := b + f.value
			if f.sub {
				a = b - f.value
			}
			if space.executable(a) {
				f.cands = append(f.cands, a)
			}
		}
		return
	}
	var all bool
	f.cands, all = space.appendMatches(f.cands, read)
	f.open = !all || base.open
	f.cands = slices.DeleteFunc(f.cands, func(a uint64) bool { return !r.fits(f, a) })
}

// fits reports whether an encoder would write what is in the frame's field for address a,
// with any candidate of its base.
func (r *recoverer) fits(f *recoverFrame, a uint64) bool {
	if f.base < 0 {
		return f.wrote(a)
	}
	bases := r.frames[f.base].cands
	return len(bases) == 0 || slices.ContainsFunc(bases, func(b uint64) bool { return f.links(a, b) })
}

// links reports whether the frame's delta leads from a base at b to address a.
func (f *recoverFrame) links(a, b uint64) bool {
	d := a - b
	if f.sub {
		d = -d
	}
	if f.count <= 32 {
		return d == f.value
	}
	return f.wrote(d)
}

// wrote reports whether an encoder would write v as the value in the frame's field.
func (f *recoverFrame) wrote(v uint64) bool {
	return significant(v) == f.count &&
		(codec.MachineWrap64.Wire(v) == f.value || codec.MachineZero64.Wire(v) == f.value || v == f.value)
}

// pruneParent removes the candidates of a frame's base that none of the frame's own
// candidates confirms. A frame that confirms none of them removes nothing.
func (r *recoverer) pruneParent(i int) {
	f := &r.frames[i]
	if f.base < 0 || !f.lossy || f.open {
		return
	}
	base := &r.frames[f.base]
	confirmed := func(b uint64) bool {
		return slices.ContainsFunc(f.cands, func(a uint64) bool { return f.links(a, b) })
	}
	if slices.ContainsFunc(base.cands, confirmed) {
		base.cands = slices.DeleteFunc(base.cands, func(b uint64) bool { return !confirmed(b) })
	}
}

// significant returns the number of bits in a field of value v. (BT-COUNT-1)
func significant(v uint64) int { return bits.Len64(v | 1) }

// recoverByBase recovers lossy addresses that are return addresses in exactly one file, at
// the file's base. If the base is exact, the result is the address in memory, else the file's
// own address.
func (p *Process) recoverByBase(addrs []Addr, lossy uint32) (ambiguous uint32) {
	for i := range addrs {
		if lossy>>i&1 == 0 {
			continue
		}
		a := &addrs[i]
		a.State = Lost
		var base *Base
		found, own := 0, uint64(0)
		for b := range p.bases {
			if o, ok := p.bases[b].ownAddr(ReturnAddr{PC: a.PC, Lossy: true}); ok {
				found, base, own = found+1, &p.bases[b], o
			}
		}
		switch {
		case found > 1:
			ambiguous |= 1 << i
		case found == 1 && base.Exact:
			a.PC, a.State = own+base.Bias, Inferred
		case found == 1:
			a.PC, a.State, a.Location = own, Inferred, p.locateOwn(base.File, own)
		}
	}
	return ambiguous
}
