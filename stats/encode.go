package stats

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// wider returns the 64-bit machine with the same kind of shifts as m.
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

// exact returns the exact machine with the word size of m.
func exact(m codec.Machine) codec.Machine {
	if m.Word() == 32 {
		return codec.MachineExact32
	}
	return codec.MachineExact64
}

// fitting returns m, or wider(m) if pcs do not fit the word of m.
func fitting(pcs []uint64, m codec.Machine) codec.Machine {
	if m.Word() == 32 && slices.ContainsFunc(pcs, func(pc uint64) bool { return pc>>32 != 0 }) {
		return wider(m)
	}
	return m
}

// frameBits returns the number of bits in a blob before its size: depth and frames.
func frameBits(pcs []uint64, m codec.Machine, search codec.Search) int {
	n, err := codec.Encoder{Machine: fitting(pcs, m), Search: search}.Bits(&codec.Stack{PCs: pcs})
	if err != nil {
		panic("stats: " + err.Error()) // at most MaxDepth frames, and they fit
	}
	return n - sizeBits(1)
}

// blobBytes returns the length of the blob of a stack whose frames take frameBits, and whose size
// has this number of significant bits.
func blobBytes(frameBits int, size uint8) int {
	return codec.BlobLen(frameBits + sizeBits(int(size)))
}

// view is a dump as one machine wrote it. It has an address for each frame: the recorded
// address or, for a lossy frame, an estimated address (see regions.go).
type view struct {
	*Collector
	machine codec.Machine

	at    map[spot]uint64 // estimated addresses of lossy frames; nil if none is lossy
	lossy uint64          // number of lossy frames in distinct call paths

	differ   uint64 // allocations whose number of bits differs when they are encoded again
	compared uint64 // allocations that were compared

	stack codec.Stack // scratch of eachPath
	blob  []byte      // scratch
}

// eachPath calls do with every path and its addresses, in the order in which the paths were
// added. The addresses are valid only during the call.
func (v *view) eachPath(do func(p *path, pcs []uint64)) {
	for i := range v.paths.all.n {
		p := v.paths.all.at(i)
		v.paths.decode(&v.stack, p)
		if v.at != nil && p.lossy != 0 && p.recorded {
			v.eachSpot(p, v.stack.PCs, func(frame int, sp spot) { v.stack.PCs[frame] = v.at[sp] })
		}
		do(p, v.stack.PCs)
	}
}

// recordedUses returns the usage of the bits before the size in a regular blob of p.
func (v *view) recordedUses(p *path) (u usage) {
	for _, f := range v.fieldsOf(v.paths.blob(p), int(p.word)) {
		if f.Kind == codec.FieldSizeCount {
			break
		}
		u.add(f)
	}
	return u
}

// encodedUses returns the usage of all bits of an allocation at pcs if it is encoded as
// lws does, including size and length.
func (v *view) encodedUses(pcs []uint64, sizeBits uint8) (u usage) {
	s := codec.Stack{PCs: pcs, Size: 1 << (sizeBits - 1)}
	m := fitting(pcs, v.machine)
	if sizeBits > 32 {
		m = wider(m)
	}
	blob, err := codec.Encoder{Machine: m}.AppendBlob(v.blob[:0], &s, nil)
	if err != nil {
		panic("stats: " + err.Error()) // at most MaxDepth frames, and they fit
	}
	v.blob = blob
	for _, f := range v.fieldsOf(blob, m.Word()) {
		u.add(f)
	}
	return u
}

// uses returns the usage of all bits of the dump.
func (v *view) uses() usage {
	all := v.irregular
	v.eachPath(func(p *path, pcs []uint64) {
		var recorded usage
		if p.recorded {
			recorded = v.recordedUses(p)
		}
		for s := range v.paths.sizes(p) {
			if s.regular > 0 {
				u := recorded
				u[codec.FieldSizeCount] += 6
				u[codec.FieldSize] += uint64(s.bits)
				u[useSpill] += 2
				u[codec.FieldLength] += 16
				if rest := (int(p.end) + sizeBits(int(s.bits))) % 8; rest > 0 {
					u[usePadding] += uint64(8 - rest)
				}
				all.addTimes(&u, s.regular)
			}
			if plain := s.count - s.blobs; plain > 0 {
				u := v.encodedUses(pcs, s.bits)
				all.addTimes(&u, plain)
			}
		}
	})
	return all
}

// lwsLens returns the lengths of all blobs as lws writes them: the recorded lengths and, for
// allocations recorded without a blob, computed lengths. worse is the number of blobs longer
// than the raw stack, for each word.
func (v *view) lwsLens() (lens counts, worse [2]uint64) {
	lens, worse = slices.Clone(v.lens), v.worse
	v.eachPath(func(p *path, pcs []uint64) {
		bits := 0
		for s := range v.paths.sizes(p) {
			plain := s.count - s.blobs
			if plain == 0 {
				continue
			}
			if bits == 0 {
				bits = frameBits(pcs, v.machine, codec.SearchLws)
			}
			blob := blobBytes(bits, s.bits)
			lens.add(blob, plain)
			for i, word := range words {
				if blob > rawBytes(len(pcs), word) {
					worse[i] += plain
				}
			}
		}
	})
	return lens, worse
}

// newLens returns the lengths of all blobs encoded by machine m with this search.
func (v *view) newLens(m codec.Machine, search codec.Search) counts {
	var lens counts
	v.eachPath(func(p *path, pcs []uint64) {
		bits := frameBits(pcs, m, search)
		for s := range v.paths.sizes(p) {
			lens.add(blobBytes(bits, s.bits), s.count)
		}
	})
	return lens
}

// Rebased returns the dump that the same program would have written at another load
// address. A region is a run of addresses without a gap over 256 MiB. Rebased places
// the regions one after another from addr on, each at a multiple of 1 MiB, and keeps the
// offset of its first address in a page of 4 KiB. Regions whose upper bits are unknown
// come last, in the order of their low bits. All blobs are encoded as lws would encode
// them. The returned machine is m, or the 64-bit machine with the same kind of shifts if the
// addresses do not fit the word of m.
func (c *Collector) Rebased(m codec.Machine, addr uint64) (*Collector, codec.Machine) {
	v := c.view(m)
	to := v.rebase(addr)
	out := NewCollector(64)
	out.records, out.frames, out.depths = c.records, c.frames, slices.Clone(c.depths)
	out.payload, out.payloadOver = c.payload, c.payloadOver
	var moved codec.Stack
	v.eachPath(func(p *path, pcs []uint64) {
		moved.Reset()
		for _, pc := range pcs {
			moved.PCs = append(moved.PCs, to[pc])
		}
		m = fitting(moved.PCs, m)
		q := out.paths.find(&moved)
		if q.length == 0 {
			out.paths.encode(q, moved.PCs)
		}
		for s := range v.paths.sizes(p) {
			t := out.paths.sizeOf(q, int(s.bits))
			t.count, t.bytes = t.count+s.count, satAdd(t.bytes, s.bytes)
		}
	})
	return out, m
}

const (
	regionGap   = 256 << 20
	regionAlign = 1 << 20
	page        = 4 << 10
)

// rebase returns the new address of each address in the dump; see Rebased.
func (v *view) rebase(addr uint64) map[uint64]uint64 {
	var sorted []uint64
	limit := 1 << 16
	sortAll := func() {
		slices.Sort(sorted)
		sorted = slices.Compact(sorted)
		limit = max(limit, 2*len(sorted))
	}
	v.eachPath(func(_ *path, pcs []uint64) {
		if sorted = append(sorted, pcs...); len(sorted) > limit {
			sortAll()
		}
	})
	sortAll()
	to := make(map[uint64]uint64, len(sorted))
	var shift, next uint64 = 0, addr
	for i, pc := range sorted {
		if i == 0 || pc-sorted[i-1] > regionGap {
			shift = next - pc&^(page-1)
		}
		to[pc] = pc + shift
		next = (pc + shift + regionAlign) &^ (regionAlign - 1)
	}
	return to
}
