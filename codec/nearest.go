package codec

import "math/bits"

// maxBack is how far back a base can be. (BT-DELTA-2)
const maxBack = 1 << backWidth

// search finds bases in one stack.
type search struct {
	pcs   []uint64
	how   Search
	wraps bool // differences are modulo 2^64
	apart bool // some addresses are so far apart that nearest cannot tell
}

func newSearch(pcs []uint64, m Machine, how Search) search {
	s := search{pcs: pcs, how: how, wraps: how == Best && m.Word() == 64}
	var differ uint64
	for _, pc := range pcs {
		differ |= pc ^ pcs[0]
	}
	s.apart = differ>>nearBits != 0
	return s
}

// choose decides how frame n is written: as a delta from the frame that many
// before it, or, if back is 0, as a literal.
//
// Search lws takes a base of index 0 for "none found", and counts two spill bits
// too few when it weighs a delta against a literal (BT-SRCH-1). Search best
// weighs their lengths, and of equal ones takes the literal, unless its count of
// 64 is one that lws misreads (BT-SRCH-2).
func (s *search) choose(n int) (back int, delta uint64) {
	if n == 0 {
		return 0, 0
	}
	back, delta = s.base(n)
	asLiteral, asDelta := significant(s.pcs[n]), significant(delta)
	if s.how == Lws {
		if back == n || asDelta+11 >= asLiteral+7 {
			return 0, 0
		}
	} else if more := int(asDelta+deltaHead) - int(asLiteral+literalHead); more > 0 || more == 0 && asLiteral != 64 {
		return 0, 0
	}
	return back, delta
}

// nearBits is how many bits nearest has for a difference.
const nearBits = 64 - backWidth

// base finds, of the up to 8 frames before n, the one with the smallest
// difference to frame n, the farthest of equals, and says how many frames back
// it is, 0 if n is 0.
func (s *search) base(n int) (back int, delta uint64) {
	if s.apart {
		return s.farthest(n)
	}
	return s.nearest(n)
}

// nearest is base for addresses that agree in their first 3 bits. It is most of
// what encoding costs. Difference and index are kept in one number, so that the
// smallest wins without a branch that a processor would have to guess.
func (s *search) nearest(n int) (back int, delta uint64) {
	v, best := s.pcs[n], ^uint64(0)
	if n < maxBack {
		for i, base := range s.pcs[:n] {
			less, borrow := bits.Sub64(rank(v, base, uint64(i)), best, 0)
			best += less & -borrow // the smaller of the two
		}
		return max(0, n-int(best%maxBack)), best / maxBack
	}
	b := (*[maxBack]uint64)(s.pcs[n-maxBack:])
	best = min(rank(v, b[0], 0), rank(v, b[1], 1))
	best = min(best, rank(v, b[2], 2))
	best = min(best, rank(v, b[3], 3))
	best = min(best, rank(v, b[4], 4))
	best = min(best, rank(v, b[5], 5))
	best = min(best, rank(v, b[6], 6))
	best = min(best, rank(v, b[7], 7))
	return maxBack - int(best%maxBack), best / maxBack
}

// rank puts the difference of v and base before the base's index i.
func rank(v, base, i uint64) uint64 {
	d, borrow := bits.Sub64(v, base, 0)
	return ((d^-borrow)+borrow)*maxBack + i // |v - base|, then i
}

// farthest is base for any addresses.
func (s *search) farthest(n int) (back int, delta uint64) {
	v := s.pcs[n]
	delta = ^uint64(0)
	for b := min(n, maxBack); b > 0; b-- {
		base := s.pcs[n-b]
		d := max(v, base) - min(v, base)
		if s.wraps {
			d = min(d, -d)
		}
		if d < delta || back == 0 {
			back, delta = b, d
		}
	}
	return back, delta
}
