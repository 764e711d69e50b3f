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
// has this number of significant bits, with its padding and its two length bytes. (BT-BLOB-1)
func blobBytes(frameBits int, size uint8) int {
	return (frameBits+sizeBits(int(size))+7)/8 + 2
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
