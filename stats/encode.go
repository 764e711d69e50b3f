package stats

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// wider is the machine of 64-bit words that shifts as m does.
func wider(m codec.Machine) codec.Machine {
	switch m {
	case codec.MachineExact32:
		return codec.MachineExact64
	case codec.MachineWrap32:
		return codec.MachineWrap64
	case codec.MachineZero32:
		return codec.MachineZero64
	}
	return m
}

// exact is the machine of m's word that keeps every bit.
func exact(m codec.Machine) codec.Machine {
	if m.Word() == 32 {
		return codec.MachineExact32
	}
	return codec.MachineExact64
}

// fitting is m, or where pcs need more than its word, the wider machine.
func fitting(pcs []uint64, m codec.Machine) codec.Machine {
	if m.Word() == 32 && slices.ContainsFunc(pcs, func(pc uint64) bool { return pc>>32 != 0 }) {
		return wider(m)
	}
	return m
}

// frameBits is how many bits of a blob stand before its size: depth and frames.
func frameBits(pcs []uint64, m codec.Machine, how codec.Search) int {
	n, err := codec.BlobBits(&codec.Stack{PCs: pcs}, fitting(pcs, m), how)
	if err != nil {
		panic("stats: " + err.Error()) // at most MaxDepth frames, and they fit
	}
	return n - sizeBits(1)
}

// blobBytes is the length of the blob of a stack whose frames take frameBits.
func blobBytes(frameBits int, s sized) int { return codec.BlobLen(frameBits + sizeBits(s.bits)) }

// encoder encodes anew, with what it needs kept from one time to the next.
type encoder struct {
	machine codec.Machine
	blob    []byte
	fields  []codec.Field
}

// uses is what the bits of an allocation at pcs are for if it is encoded as lws does,
// size and length included.
func (e *encoder) uses(pcs []uint64, sizeBits int) (u usage) {
	s := codec.Stack{PCs: pcs, Size: 1 << (sizeBits - 1)}
	m := fitting(pcs, e.machine)
	if sizeBits > 32 {
		m = wider(m)
	}
	var err error
	if e.blob, err = codec.AppendBlob(e.blob[:0], &s, m, codec.SearchLws); err == nil {
		e.fields, err = codec.AppendFields(e.fields[:0], e.blob)
	}
	if err != nil {
		panic("stats: " + err.Error()) // at most MaxDepth frames, and they fit
	}
	for _, f := range e.fields {
		u.add(f)
	}
	return u
}

// uses is what the bits of the whole dump are for.
func (c *Collector) uses(r *resolved, m codec.Machine) usage {
	all := c.odd
	anew := encoder{machine: m}
	c.eachSize(func(p *path, s sized) {
		if s.regular > 0 {
			u := p.uses
			u[codec.FieldSizeCount] += 6
			u[codec.FieldSize] += uint64(s.bits)
			u[useSpill] += 2
			u[codec.FieldLength] += 16
			if rest := (p.prefixBits + sizeBits(s.bits)) % 8; rest > 0 {
				u[usePadding] += uint64(8 - rest)
			}
			all.addTimes(&u, s.regular)
		}
		if plain := s.count - s.blobs; plain > 0 {
			u := anew.uses(r.pcs[p.n], s.bits)
			all.addTimes(&u, plain)
		}
	})
	return all
}

// lwsLens is the lengths of all blobs as lws writes them: those recorded, and for
// allocations recorded without, those they would have.
func (c *Collector) lwsLens(r *resolved, m codec.Machine) counts {
	lens := slices.Clone(c.lens)
	c.eachPlain(r, m, func(_ *path, blob int, times uint64) { lens.add(blob, times) })
	return lens
}

// eachPlain goes through the allocations that were recorded without a blob, with the
// length of the one that lws would write.
func (c *Collector) eachPlain(r *resolved, m codec.Machine, do func(p *path, blob int, times uint64)) {
	for _, p := range c.order {
		bits := 0
		for _, s := range p.sizes {
			if s.count == s.blobs {
				continue
			}
			if bits == 0 {
				bits = frameBits(r.pcs[p.n], m, codec.SearchLws)
			}
			do(p, blobBytes(bits, s), s.count-s.blobs)
		}
	}
}

// newLens is the lengths of all blobs if machine m encoded them by search how.
func (c *Collector) newLens(r *resolved, m codec.Machine, how codec.Search) counts {
	var lens counts
	for _, p := range c.order {
		bits := frameBits(r.pcs[p.n], m, how)
		for _, s := range p.sizes {
			lens.add(blobBytes(bits, s), s.count)
		}
	}
	return lens
}

// Rebased is the dump as the same program would have left it at another load
// address: its regions, which are runs of addresses with no gap over 256 MiB, laid one
// after another from addr on, each at a multiple of 1 MiB, the lowest address's page of
// 4 KiB first. Regions of which the upper bits are unknown come last, by their low ones.
// All blobs are then as lws would write them. The machine is m, or the wider one where
// the addresses ask for that.
func (c *Collector) Rebased(m codec.Machine, addr uint64) (*Collector, codec.Machine) {
	r := c.resolve(m)
	moved := rebase(r.pcs, addr)
	out := NewCollector()
	out.records, out.payload, out.frames = c.records, c.payload, c.frames
	out.depths, out.size = slices.Clone(c.depths), c.size
	for _, p := range c.order {
		m = fitting(moved[p.n], m)
		q := out.path(moved[p.n], 0)
		q.count += p.count
		q.bytes = satAdd(q.bytes, p.bytes)
		for _, s := range p.sizes {
			q.sizeOf(s.bits).count += s.count
		}
	}
	return out, m
}

const (
	regionGap   = 256 << 20
	regionAlign = 1 << 20
	page        = 4 << 10
)

func rebase(all [][]uint64, addr uint64) [][]uint64 {
	var sorted []uint64
	for _, pcs := range all {
		sorted = append(sorted, pcs...)
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	to := make(map[uint64]uint64, len(sorted))
	var shift, next uint64 = 0, addr
	for i, pc := range sorted {
		if i == 0 || pc-sorted[i-1] > regionGap {
			shift = next - pc&^(page-1)
		}
		to[pc] = pc + shift
		next = (pc + shift + regionAlign) &^ (regionAlign - 1)
	}
	moved := make([][]uint64, len(all))
	for i, pcs := range all {
		own := make([]uint64, len(pcs))
		for n, pc := range pcs {
			own[n] = to[pc]
		}
		moved[i] = own
	}
	return moved
}
