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
	search := newSearch(s.PCs, m, how)
	for n := range s.PCs {
		w.form(search.choose(n), m)
	}
	w.form(sizeForm(s.Size), m)
	end := start + len(w.finish())
	n := end - start + lengthBytes
	return append(dst[:end], byte(n>>8), byte(n)), nil
}

// form is how a frame or the size is written.
type form struct {
	head     uint64 // what stands before the count: kind, back and sign with their spill bits
	headBits uint   // how many bits that is
	count    uint
	value    uint64
}

// bits is how many bits the form takes.
func (f form) bits() int { return int(f.headBits + countBits + f.count + spillWidth) }

func sizeForm(size uint64) form { return form{count: significant(size), value: size} }

// form writes f as machine m does. (BT-COUNT-1, BT-COUNT-2)
func (w *bitWriter) form(f form, m Machine) {
	wire, spill := f.value, uint64(0)
	if m != Exact64 && m != Exact32 {
		wire, spill = m.lose(f.value, f.count)
	}
	head := f.head<<countBits | uint64(f.count&63)<<spillWidth
	if n := uint(f.bits()); n <= windowBits {
		w.put((head<<(f.count&63)|wire)<<spillWidth|spill, n)
		return
	}
	w.put(head, f.headBits+countBits)
	w.putWide(wire, f.count)
	w.put(spill, spillWidth)
}

// BlobBits is how many bits the fields of s take, before padding and length;
// see [BlobLen] for bytes. It fails as [AppendBlob] does.
func BlobBits(s *Stack, m Machine, how Search) (int, error) {
	if err := s.fits(m); err != nil {
		return 0, err
	}
	n := depthBits + sizeForm(s.Size).bits()
	search := newSearch(s.PCs, m, how)
	for i := range s.PCs {
		n += search.choose(i).bits()
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

// choose decides how frame n is written: as a literal, or as a delta from the
// nearest of the 8 frames before it.
//
// Search lws takes a base of index 0 for "none found", and counts two spill bits
// too few when it weighs a delta against a literal (BT-SRCH-1). Search best
// weighs their lengths, and of equal ones takes the literal, unless its count of
// 64 is one that lws misreads (BT-SRCH-2).
//
// As in decoding, both forms take the same path: which it will be follows no
// pattern that a processor could learn.
func (s *search) choose(n int) form {
	v := s.pcs[n]
	back, delta := s.base(n)
	asLiteral, asDelta := int(significant(v)), int(significant(delta))
	gain := asLiteral - asDelta - s.handicap + asLiteral>>6&s.misread
	// all ones for a delta
	isDelta := -(uint64(-gain) >> 63 & (uint64(back-s.limit-n) >> 63))
	sign := (v - s.pcs[n-back] - 1) >> 63 // 1 unless above the base
	head := uint64(1)<<7 | uint64(back-1)<<3 | sign<<1
	return form{
		head:     head & isDelta,
		headBits: literalHead - countBits + (deltaHead-literalHead)&uint(isDelta),
		count:    uint(asLiteral ^ (asLiteral^asDelta)&int(isDelta)),
		value:    v ^ (v^delta)&isDelta,
	}
}
