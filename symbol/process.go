package symbol

import (
	"github.com/lwsbt/lwsbt/codec"
)

// Counts counts the addresses of a process's records.
type Counts struct {
	Addresses  int64
	Lossy      int64 // of which the encoder kept the low 31 bits alone
	Inferred   int64 // of Lossy: recovered
	Ambiguous  int64 // of Lossy: not recovered, because several addresses fit
	LossySizes int64 // records whose size is over 32 bits and lossy
}

// Add adds the counts of o.
func (c *Counts) Add(o *Counts) {
	c.Addresses += o.Addresses
	c.Lossy += o.Lossy
	c.Inferred += o.Inferred
	c.Ambiguous += o.Ambiguous
	c.LossySizes += o.LossySizes
}

// Lost returns how many addresses were not recovered.
func (c *Counts) Lost() int64 { return c.Lossy - c.Inferred }

// oldProcess is one process that records come from: what is loaded in it at the time
// of the next record, and the files. The zero value knows neither.
//
// A oldProcess is for one goroutine at a time.
type oldProcess struct {
	Maps   Timeline
	Files  Resolver
	Counts Counts

	// Lossless: addresses with the marks of a lossy encoder are exact, because
	// the encoder is known to keep every bit.
	Lossless bool

	recoverer Recoverer
	cache     map[string]recoveredStack // by blob
	cacheID   int                       // space it is for
}

// recoveredStack is what became of a blob; equal blobs are common.
type recoveredStack struct {
	pcs []uint64
	out Recovery
}

// maxRecovered is how many blobs are remembered.
const maxRecovered = 1 << 14

// Reset forgets what was loaded where: the next record is of a new process, or of
// the same device started again. Files and Counts stay.
func (p *oldProcess) Reset() {
	p.Maps.Reset()
	p.Files.SetBases(nil)
	p.cache = nil
}

// Close closes all files.
func (p *oldProcess) Close() { p.Files.Close() }

// Resolve recovers the lost bits of the addresses of s, in place, and appends what
// is known of each to dst. blob is what s was decoded from, nil if there is none.
// Recovery says what became of each address.
//
// What Resolve appends must not be changed. A oldLocation stands for its address only
// while the maps and bases stay what they are, and another for the same address
// may follow: compare their fields, not the pointers.
func (p *oldProcess) Resolve(dst []oldFrameAddr, s *codec.Stack, blob []byte) ([]oldFrameAddr, Recovery) {
	out := p.Recover(s, blob)
	space := p.Maps.Space()
	for i, pc := range s.PCs {
		f := oldFrameAddr{State: out.State(i)}
		switch {
		case f.State == Lost:
			f.oldLocation = lostLocation(pc, out.Ambiguous>>i&1 != 0)
		case f.State == Inferred && out.base[i] > 0:
			f.oldLocation = p.Files.locateInFile(int(out.base[i])-1, pc)
		default:
			f.oldLocation = p.Files.Locate(space, pc)
		}
		dst = append(dst, f)
	}
	return dst, out
}

// Recover does the first half of [oldProcess.Resolve], for those who want addresses
// alone.
func (p *oldProcess) Recover(s *codec.Stack, blob []byte) Recovery {
	if p.Lossless || s.Marks.Lossy == 0 {
		return p.Counts.record(p, s, Recovery{})
	}
	if space := p.Maps.Space(); space != nil {
		return p.Counts.record(p, s, p.recoverByMap(s, blob, space))
	}
	return p.Counts.record(p, s, p.recoverByBase(s))
}

// record counts the addresses of a record of p, of which out became.
func (c *Counts) record(p *oldProcess, s *codec.Stack, out Recovery) Recovery {
	c.Addresses += int64(len(s.PCs))
	if p.Lossless {
		return out
	}
	if s.Marks.LossySize {
		c.LossySizes++
	}
	for lossy := s.Marks.Lossy; lossy != 0; lossy &= lossy - 1 {
		c.Lossy++
		switch bit := lossy & -lossy; {
		case out.Inferred&bit != 0:
			c.Inferred++
		case out.Ambiguous&bit != 0:
			c.Ambiguous++
		}
	}
	return out
}

// RecoverKnown is [oldProcess.Recover] for a record whose result is cached; if it is not,
// ok is false and s unchanged. space is that of Maps. Counts are added to c. It does not
// change p, so that several goroutines may call it.
func (p *oldProcess) RecoverKnown(c *Counts, s *codec.Stack, blob []byte, space *Space) (out Recovery, ok bool) {
	switch {
	case p.Lossless || s.Marks.Lossy == 0:
	case space == nil && len(p.Files.bases) == 0:
		out.Lost = s.Marks.Lossy
	case space == nil || p.cacheID != space.ID:
		return out, false
	default:
		known, found := p.cache[string(blob)]
		if !found || len(known.pcs) != len(s.PCs) {
			return out, false
		}
		copy(s.PCs, known.pcs)
		out = known.out
	}
	return c.record(p, s, out), true
}

// ResolveKnown is [oldProcess.Resolve] for a record whose result is cached, as
// RecoverKnown is for Recover.
func (p *oldProcess) ResolveKnown(c *Counts, dst []oldFrameAddr, s *codec.Stack, blob []byte, space *Space) (_ []oldFrameAddr, out Recovery, ok bool) {
	if out, ok = p.RecoverKnown(c, s, blob, space); !ok {
		return dst, out, false
	}
	key := locationKey{}
	if space != nil {
		key.space = space.ID
	}
	for i, pc := range s.PCs {
		key.pc = pc
		f := oldFrameAddr{State: out.State(i)}
		switch {
		case f.State == Lost:
			f.oldLocation = lostLocation(pc, out.Ambiguous>>i&1 != 0)
		case f.State == Inferred && out.base[i] > 0:
			return dst, out, false
		default:
			if f.oldLocation = p.Files.locations[key]; f.oldLocation == nil {
				return dst, out, false
			}
		}
		dst = append(dst, f)
	}
	return dst, out, true
}

func (p *oldProcess) recoverByMap(s *codec.Stack, blob []byte, space *Space) Recovery {
	if p.cacheID != space.ID || p.cache == nil || len(p.cache) >= maxRecovered {
		p.cacheID, p.cache = space.ID, map[string]recoveredStack{}
		p.recoverer.Plausible = p.Files.plausible
	}
	if known, ok := p.cache[string(blob)]; ok && len(known.pcs) == len(s.PCs) {
		copy(s.PCs, known.pcs)
		return known.out
	}
	out := p.recoverer.Recover(s, blob, space)
	p.cache[string(blob)] = recoveredStack{append([]uint64(nil), s.PCs...), out}
	return out
}

// recoverByBase infers a lossy address in the one file whose base makes it a
// return address. Its address in memory is known if the base is exact; else it
// becomes the file's own address.
func (p *oldProcess) recoverByBase(s *codec.Stack) (out Recovery) {
	for i, pc := range s.PCs {
		bit := uint32(1) << i
		if s.Marks.Lossy&bit == 0 {
			continue
		}
		found, at, addr := 0, 0, uint64(0)
		for b := range p.Files.bases {
			if o, ok := p.Files.bases[b].ObjAddr(ReturnAddr{PC: pc, Lossy: true}); ok {
				found, at, addr = found+1, b, o
			}
		}
		switch {
		case found != 1:
			out.Lost |= bit
			if found > 1 {
				out.Ambiguous |= bit
			}
			continue
		case p.Files.bases[at].Exact:
			addr += p.Files.bases[at].Bias
		default:
			out.base[i] = uint16(at + 1)
		}
		s.PCs[i] = addr
		out.Inferred |= bit
	}
	return out
}

func lostLocation(pc uint64, ambiguous bool) *oldLocation {
	l := &oldLocation{PC: pc, LookupPC: pc, Reason: reasonLost}
	if ambiguous {
		l.Reason = reasonAmbiguous
	}
	return l
}
