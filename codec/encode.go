package codec

import (
	"fmt"
	"math/bits"
	"slices"
)

// Search is how an encoder chooses between a literal and a delta, and which
// frame a delta is from.
type Search uint8

const (
	// Lws chooses as lws does, bit for bit. (BT-SRCH-1)
	Lws Search = iota
	// Best makes the smallest blob that every decoder of the format reads as
	// the same stack. (BT-SRCH-2)
	Best
)

func (h Search) String() string {
	switch h {
	case Lws:
		return "lws"
	case Best:
		return "best"
	}
	return fmt.Sprintf("search(%d)", uint8(h))
}

// ParseSearch reads a search's name, "lws" or "best".
func ParseSearch(name string) (Search, error) {
	switch name {
	case "lws":
		return Lws, nil
	case "best":
		return Best, nil
	}
	return 0, fmt.Errorf("search %q is neither lws nor best", name)
}

// AppendBlob appends the blob of s, as machine m would write it, to dst and
// returns the extended slice. It fails if s has more than MaxDepth frames, or a
// value that m's word cannot hold, and then returns dst as it was.
// (BT-BLOB-1, BT-FIELD-3, BT-SRCH-1, BT-SRCH-2)
func AppendBlob(dst []byte, s *Stack, m Machine, how Search) ([]byte, error) {
	if err := s.fits(m); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, MaxBlob+8)
	w := bitWriter{buf: dst[start : start+MaxBlob+8]}
	w.put(uint64(len(s.PCs)&(MaxDepth-1))<<spillWidth, depthBits) // 32 is written 0 (BT-DEPTH-2)
	for n, pc := range s.PCs {
		c := choose(s.PCs, n, m, how)
		if c.back == 0 {
			w.value(0, kindWidth+spillWidth, pc, m)
			continue
		}
		// kind, back and sign with their spill bits
		head := uint64(1)<<7 | uint64(c.back-1)<<3 | c.sign<<1
		w.value(head, deltaHead-countBits, c.delta, m)
	}
	w.value(0, 0, s.Size, m)
	end := start + len(w.finish())
	n := end - start + lengthBytes
	return append(dst[:end], byte(n>>8), byte(n)), nil
}

// value writes headBits bits of head, then count and value of v. (BT-COUNT-1)
func (w *bitWriter) value(head uint64, headBits uint, v uint64, m Machine) {
	count := significant(v)
	head = head<<countBits | uint64(count&63)<<spillWidth
	headBits += countBits
	wire := m.Wire(v)
	if headBits+count+spillWidth <= windowBits {
		w.put((head<<count|wire)<<spillWidth|m.spill(v), headBits+count+spillWidth)
		return
	}
	w.put(head, headBits)
	w.putWide(wire, count)
	w.put(m.spill(v), spillWidth)
}

// BlobBits is how many bits the fields of s take, before padding and length;
// see [BlobLen] for bytes. It fails as [AppendBlob] does.
func BlobBits(s *Stack, m Machine, how Search) (int, error) {
	if err := s.fits(m); err != nil {
		return 0, err
	}
	n := depthBits + countBits + int(significant(s.Size)) + spillWidth
	for i, pc := range s.PCs {
		if c := choose(s.PCs, i, m, how); c.back == 0 {
			n += literalHead + int(significant(pc)) + spillWidth
		} else {
			n += deltaHead + int(significant(c.delta)) + spillWidth
		}
	}
	return n, nil
}

// fits says whether machine m could hold s.
func (s *Stack) fits(m Machine) error {
	if int(m) >= len(machineNames) {
		panic("codec: " + m.String() + " is not a machine")
	}
	if len(s.PCs) > MaxDepth {
		return fmt.Errorf("a stack of %d frames, expected at most %d [BT-DEPTH-1]", len(s.PCs), MaxDepth)
	}
	if m.Word() == 64 {
		return nil
	}
	for n, pc := range s.PCs {
		if pc>>32 != 0 {
			return fmt.Errorf("frame %d is %#x, expected at most 32 bits on %v [BT-MACH-1]", n, pc, m)
		}
	}
	if s.Size>>32 != 0 {
		return fmt.Errorf("size is %d, expected at most 32 bits on %v [BT-MACH-1]", s.Size, m)
	}
	return nil
}

// significant is the count of v: its bits from the highest set one down, 1 for
// zero. (BT-COUNT-1)
func significant(v uint64) uint { return uint(bits.Len64(v | 1)) }

// choice is how a frame is written: as a literal if back is 0, else as a delta
// from the frame that many before it.
type choice struct {
	back  int
	sign  uint64 // 0 add, 1 subtract
	delta uint64
}

// maxBack is how far back a base can be. (BT-DELTA-2)
const maxBack = 1 << backWidth

func choose(pcs []uint64, n int, m Machine, how Search) choice {
	if how == Best {
		return chooseBest(pcs, n, m)
	}
	return chooseLws(pcs, n)
}

// chooseLws takes of the 8 frames before n, from the farthest on, the first
// with the smallest difference; but lws then takes index 0 for "none found",
// and counts two spill bits too few when it compares with a literal. (BT-SRCH-1)
func chooseLws(pcs []uint64, n int) choice {
	hit, delta, sign := nearest(pcs, n)
	if hit <= 0 || significant(delta)+11 >= significant(pcs[n])+7 {
		return choice{}
	}
	return choice{back: n - hit, sign: sign, delta: delta}
}

// nearest finds the base with the smallest difference, the farthest of several;
// -1 if there is none. An equal base counts as subtracted.
func nearest(pcs []uint64, n int) (hit int, delta, sign uint64) {
	v := pcs[n]
	hit, delta = -1, ^uint64(0)
	first := max(0, n-maxBack)
	for i, base := range pcs[first:n] {
		d, borrow := bits.Sub64(v, base, 0)
		d = (d ^ -borrow) + borrow // |v - base|
		if d < delta {
			delta, hit = d, first+i
		}
	}
	if hit >= 0 && v <= pcs[hit] {
		sign = 1
	}
	return hit, delta, sign
}

// chooseBest weighs a literal against the smallest delta from any of the 8
// frames before n; on 64-bit machines one that wraps around 2^64 will do. Equal
// lengths make a literal, unless its count of 64 is one that lws misreads.
// (BT-SRCH-2)
func chooseBest(pcs []uint64, n int, m Machine) choice {
	v := pcs[n]
	c := choice{delta: ^uint64(0)}
	for back := min(n, maxBack); back > 0; back-- {
		base := pcs[n-back]
		d, sign := v-base, uint64(0)
		if v <= base {
			d, sign = base-v, 1
		}
		if m.Word() == 64 && -d < d {
			d, sign = -d, 1-sign
		}
		if d < c.delta {
			c = choice{back: back, sign: sign, delta: d}
		}
	}
	count := significant(v)
	literal, delta := literalHead+count, deltaHead+significant(c.delta)
	if c.back == 0 || literal < delta || literal == delta && count != 64 {
		return choice{}
	}
	return c
}
