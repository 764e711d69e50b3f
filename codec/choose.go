package codec

import "math/bits"

// maxBack is how far back a base can be. (BT-DELTA-2)
const maxBack = 1 << backWidth

// search chooses the form of each frame of one stack.
type search struct {
	pcs   []uint64
	how   Search
	wraps bool // differences are modulo 2^64
	apart bool // some addresses are too far apart for rank
}

func newSearch(pcs []uint64, m Machine, how Search) search {
	s := search{pcs: pcs, how: how, wraps: how == Best && m.Word() == 64}
	var differ uint64
	for _, pc := range pcs {
		differ |= pc ^ pcs[0]
	}
	s.apart = differ>>(64-backWidth) != 0
	return s
}

// choose decides how frame n is written: as a delta from the frame that many
// before it, or, if back is 0, as a literal.
//
// Search lws takes a base of index 0 for "none found", and counts two spill bits
// too few when it weighs a delta against a literal (BT-SRCH-1). Search best
// weighs their lengths, and of equal ones takes the literal, unless its count of
// 64 is one that lws misreads (BT-SRCH-2).
//
// To find the nearest of up to 8 bases is most of what encoding costs, so it is
// done without a branch that a processor would have to guess.
func (s *search) choose(n int) (back int, delta uint64) {
	v := s.pcs[n]
	if n >= maxBack && !s.apart {
		b := (*[maxBack]uint64)(s.pcs[n-maxBack:])
		best := min(rank(v, b[0], 0), rank(v, b[1], 1))
		best = min(best, rank(v, b[2], 2))
		best = min(best, rank(v, b[3], 3))
		best = min(best, rank(v, b[4], 4))
		best = min(best, rank(v, b[5], 5))
		best = min(best, rank(v, b[6], 6))
		best = min(best, rank(v, b[7], 7))
		back, delta = maxBack-int(best%maxBack), best/maxBack
	} else if n == 0 {
		return 0, 0
	} else if s.apart {
		back, delta = s.nearest(n)
	} else {
		best := ^uint64(0)
		for i, base := range s.pcs[:n] {
			less, borrow := bits.Sub64(rank(v, base, uint64(i)), best, 0)
			best += less & -borrow // the smaller of the two
		}
		back, delta = n-int(best%maxBack), best/maxBack
	}
	asLiteral, asDelta := significant(v), significant(delta)
	if s.how == Lws {
		if back == n || asDelta+11 >= asLiteral+7 {
			return 0, 0
		}
	} else if more := int(asDelta+deltaHead) - int(asLiteral+literalHead); more > 0 || more == 0 && asLiteral != 64 {
		return 0, 0
	}
	return back, delta
}

// rank puts the difference of v and base before the base's index i, so that the
// smallest of all ranks is that of the nearest base, and of equal ones the
// farthest back. It has room for a difference below 2^61.
func rank(v, base, i uint64) uint64 {
	d, borrow := bits.Sub64(v, base, 0)
	return ((d^-borrow)+borrow)*maxBack + i // |v - base|, then i
}

// nearest finds the nearest base for any addresses, where rank cannot.
func (s *search) nearest(n int) (back int, delta uint64) {
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
