package codec

import "math/bits"

// maxBack is how far back a base can be. (BT-DELTA-2)
const maxBack = 1 << backWidth

// encoding holds the values of a blob in the order of writing: one for each frame, then
// the size.
//
// Most of the encoder's time goes into choosing them. The code has no branches that
// depend on addresses, because a processor mispredicts such branches.
type encoding struct {
	value [MaxDepth + 1]uint64 // a literal, a delta, or the size
	lead  [MaxDepth + 1]uint8  // the fields before the count: kind, back, sign and their spill bits
	width [MaxDepth + 1]uint8  // bits in lead
	base  [MaxDepth]uint8      // index of the nearest earlier frame
}

// choose sets f for the size of s and its frames, at most MaxDepth.
//
// Search lws treats a base at index 0 as "none found", and counts two spill bits too
// few when it compares a delta with a literal (BT-SRCH-1). Search best compares the
// real lengths. If they are equal, it takes the literal, except a literal with a count
// of 64, which lws misreads (BT-SRCH-2).
func (f *encoding) choose(s *Stack, m Machine, search Search) {
	pcs := s.PCs
	f.value[len(pcs)], f.width[len(pcs)] = s.Size, 0
	if len(pcs) == 0 {
		return
	}
	f.nearest(pcs, search == SearchBest && m.Word() == 64)
	f.value[0], f.width[0] = pcs[0], literalLead
	for n := 1; n < len(pcs); n++ {
		i := n & (MaxDepth - 1)
		v, base := pcs[n], int(f.base[i])
		d := v - pcs[base] - 1
		below := uint64(int64(d) >> 63) // all ones if the frame is not above its base, else 0
		delta := (d ^ below) + 1 + below
		// literal is v shifted right by the number of bits that a delta must save: 4 in
		// search lws. first is the lowest index that a base may have.
		literal, first := v>>4, 1
		if search != SearchLws {
			literal, first = v>>(deltaLead-literalLead-v>>63), 0
		}
		// wins is 1 if delta has fewer significant bits than literal: a has fewer than
		// b if and only if a < b&^a.
		_, wins := bits.Sub64(delta|1, literal&^(delta|1), 0)
		wins &^= uint64(base-first) >> 63
		f.value[i] = v ^ (v^delta)&-wins
		f.lead[i] = uint8((1<<7 | uint64(n-1-base)<<3 | below&(1<<1)) & -wins)
		f.width[i] = uint8(literalLead + (deltaLead-literalLead)&-wins)
	}
}

// nearest sets the base of each frame except the first. If several frames are equally
// near, it takes the one farthest back. If modular is true, differences are modulo
// 2^64.
func (f *encoding) nearest(pcs []uint64, modular bool) {
	scaled := &f.value // the addresses, shifted left to make space for an index
	var differ uint64
	for n, pc := range pcs {
		differ |= pc ^ pcs[0]
		scaled[n&(MaxDepth-1)] = pc * maxBack
	}
	if differ>>(64-backWidth) != 0 {
		f.nearestApart(pcs, modular)
		return
	}
	for n := 1; n < len(pcs) && n < maxBack; n++ {
		v, best := scaled[n], ^uint64(0)
		for i, base := range scaled[:n] {
			best = min(best, rank(v, base, uint64(i)))
		}
		f.base[n] = uint8(best % maxBack)
	}
	for n := maxBack; n < len(pcs); n++ {
		v, b := scaled[n&(MaxDepth-1)], (*[maxBack]uint64)(scaled[n-maxBack:])
		best := min(rank(v, b[0], 0), rank(v, b[1], 1))
		best = min(best, rank(v, b[2], 2))
		best = min(best, rank(v, b[3], 3))
		best = min(best, rank(v, b[4], 4))
		best = min(best, rank(v, b[5], 5))
		best = min(best, rank(v, b[6], 6))
		best = min(best, rank(v, b[7], 7))
		f.base[n&(MaxDepth-1)] = uint8(uint64(n) - maxBack + best%maxBack)
	}
}

// rank returns |v - base| with the base's index i in its low bits; v and base are
// already multiplied by maxBack. The lowest rank is that of the nearest base and, of
// equally near bases, of the one farthest back.
func rank(v, base, i uint64) uint64 {
	d, below := bits.Sub64(v, base, 0)
	return (d ^ -below) + below + i // |v - base| + i
}

// nearestApart is nearest for addresses too far apart for rank.
func (f *encoding) nearestApart(pcs []uint64, modular bool) {
	for n := 1; n < len(pcs); n++ {
		from := max(n-maxBack, 0)
		best, at := ^uint64(0), uint64(from)
		for i, base := range pcs[from:n] {
			d, below := bits.Sub64(pcs[n], base, 0)
			if modular {
				below = d >> 63
			}
			d = (d ^ -below) + below
			_, less := bits.Sub64(d, best, 0)
			best ^= (best ^ d) & -less
			at ^= (at ^ uint64(from+i)) & -less
		}
		if best>>63 != 0 && !modular {
			at = 0 // a delta of 64 bits is never chosen; in search lws, base 0 means a literal
		}
		f.base[n&(MaxDepth-1)] = uint8(at)
	}
}
