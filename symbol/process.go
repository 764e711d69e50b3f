package symbol

import (
	"github.com/lwsbt/lwsbt/codec"
)

// State says how far an address of a record can be trusted.
type State uint8

const (
	Exact    State = iota // as it was read
	Inferred              // bits that the encoder dropped were given back
	Lost                  // only its low 31 bits are known
)

func (s State) String() string { return [...]string{"exact", "inferred", "lost"}[s] }

// Place is one address of a record: the address, how far it is known, and what
// stands there.
type Place struct {
	*Spot
	State State
}

// Counts is what a process met, in addresses of records.
type Counts struct {
	Addresses int64
	Hurt      int64 // of which the encoder kept the low 31 bits alone
	Inferred  int64 // of Hurt: given back
	Several   int64 // of Hurt: not given back, because several addresses fit
	HurtSizes int64 // records whose size is over 32 bits and hurt
}

// Lost is how many addresses remain hurt.
func (c *Counts) Lost() int64 { return c.Hurt - c.Inferred }

// Process is one process that records come from: what is loaded in it, at the
// time of the record at hand, and the files.
type Process struct {
	Timeline
	Resolver
	Counts Counts
	// Whole says that addresses with the marks of a lossy encoder are not hurt,
	// because the encoder is known to keep every bit.
	Whole bool

	repairer Repairer
	cache    map[string]repairedStack
	cacheID  int
	lost     map[uint64]*Spot
	based    [codec.MaxDepth]int // 1 + base that a frame was inferred by; 0: none
}

// repairedStack is what became of a blob; equal blobs are common.
type repairedStack struct {
	pcs []uint64
	out Repaired
}

// maxCached is how many blobs are remembered.
const maxCached = 1 << 15

// Repair gives s, decoded from blob, its lost bits back, as far as the space of
// this moment or the bases found allow; blob is nil where there is none.
func (p *Process) Repair(s *codec.Stack, blob []byte) (out Repaired) {
	p.Counts.Addresses += int64(len(s.PCs))
	if p.Whole {
		return Repaired{}
	}
	if s.Marks.LossySize {
		p.Counts.HurtSizes++
	}
	hurt := s.Marks.Lossy
	if hurt == 0 {
		return Repaired{}
	}
	if space := p.Space(); space != nil {
		out = p.repairByMap(s, blob, space)
	} else {
		out = p.repairByBase(s)
	}
	for ; hurt != 0; hurt &= hurt - 1 {
		p.Counts.Hurt++
		switch bit := hurt & -hurt; {
		case out.Inferred&bit != 0:
			p.Counts.Inferred++
		case out.Several&bit != 0:
			p.Counts.Several++
		}
	}
	return out
}

func (p *Process) repairByMap(s *codec.Stack, blob []byte, space *Space) Repaired {
	if p.cacheID != space.ID || p.cache == nil || len(p.cache) >= maxCached {
		p.cacheID, p.cache = space.ID, map[string]repairedStack{}
		p.repairer.Plausible = p.Plausible
	}
	if known, ok := p.cache[string(blob)]; ok && len(known.pcs) == len(s.PCs) {
		copy(s.PCs, known.pcs)
		return known.out
	}
	out := p.repairer.Repair(s, blob, space)
	p.cache[string(blob)] = repairedStack{append([]uint64(nil), s.PCs...), out}
	return out
}

// repairByBase infers what a hurt address is in the one file whose base makes it
// a return address. Its address in memory is known if the base is whole; else it
// becomes the file's own address.
func (p *Process) repairByBase(s *codec.Stack) (out Repaired) {
	p.based = [codec.MaxDepth]int{}
	for i, pc := range s.PCs {
		bit := uint32(1) << i
		if s.Marks.Lossy&bit == 0 {
			continue
		}
		found, at, own := 0, 0, uint64(0)
		for b := range p.bases {
			if o, ok := p.bases[b].Own(Seen{PC: pc, Hurt: true}); ok {
				found, at, own = found+1, b, o
			}
		}
		switch {
		case found != 1:
			out.Lost |= bit
			if found > 1 {
				out.Several |= bit
			}
			continue
		case p.bases[at].Whole:
			own += p.bases[at].Full
		default:
			p.based[i] = at + 1
		}
		s.PCs[i] = own
		out.Inferred |= bit
	}
	return out
}

// Places resolves the addresses of s, which Repair had last, and appends them to
// dst. What is lost is not looked up.
func (p *Process) Places(dst []Place, s *codec.Stack, out Repaired) []Place {
	space := p.Space()
	for i, pc := range s.PCs {
		bit := uint32(1) << i
		switch {
		case out.Lost&bit != 0:
			dst = append(dst, Place{p.lostSpot(pc), Lost})
		case out.Inferred&bit != 0 && space == nil && p.based[i] > 0:
			dst = append(dst, Place{p.AtBase(p.based[i]-1, pc), Inferred})
		case out.Inferred&bit != 0:
			dst = append(dst, Place{p.At(space, pc), Inferred})
		default:
			dst = append(dst, Place{p.At(space, pc), Exact})
		}
	}
	return dst
}

// lostSpot is the one spot of an address of which nothing can be said.
func (p *Process) lostSpot(pc uint64) *Spot {
	s := p.lost[pc]
	if s == nil {
		if p.lost == nil {
			p.lost = map[uint64]*Spot{}
		}
		s = &Spot{PC: pc, CallAt: pc}
		p.lost[pc] = s
	}
	return s
}
