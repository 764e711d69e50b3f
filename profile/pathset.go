package profile

import "math/bits"

// PathHash identifies a call path by 96 bits. The probability that two of 10 million
// call paths have the same hash is below 10^-14.
type PathHash struct {
	high uint64
	low  uint32
}

// PathSet is a set of call paths, by their hashes, with the era in which each was met last.
// It takes some 25 bytes per call path. The zero PathSet is empty.
type PathSet struct {
	parts [pathParts]pathPart
	used  int
}

// pathPart has the call paths of a range of hashes. Parts begin with different sizes, so
// that they do not grow at the same time: others would wait for that.
type pathPart struct {
	slots []pathSlot
	used  int
}

const (
	pathPartBits = 6
	pathParts    = 1 << pathPartBits
)

// pathSlot is a call path: none if its era is 0.
type pathSlot struct {
	high uint64
	low  uint32
	era  uint32
}

// Len returns how many call paths there are.
func (s *PathSet) Len() int { return s.used }

// start returns where the search for a call path begins.
func (t *pathPart) start(h PathHash) int {
	start, _ := bits.Mul64(h.high<<pathPartBits, uint64(len(t.slots)))
	return int(start)
}

// find returns the slot of a call path, a free one if it is not in the set.
func (t *pathPart) find(h PathHash) *pathSlot {
	for i := t.start(h); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		if p := &t.slots[i]; p.era == 0 || p.high == h.high && p.low == h.low {
			return p
		}
	}
}

// Meet notes that a call path was met in an era, a number from 1. It returns the era in which that was
// noted before, 0 if never. If the call path is new and there are most already, it
// is not added, and ok is false.
func (s *PathSet) Meet(h PathHash, era uint32, most int) (before uint32, ok bool) {
	n := h.high >> (64 - pathPartBits)
	t := &s.parts[n]
	if t.used >= len(t.slots)/4*3 {
		t.grow(int(n))
	}
	p := t.find(h)
	if before = p.era; before == 0 {
		if s.used >= most {
			return 0, false
		}
		p.high, p.low = h.high, h.low
		t.used++
		s.used++
	}
	p.era = era
	return before, true
}

// grow makes part n half as large again. At first, the last part has half as many slots
// again as the first.
func (t *pathPart) grow(n int) {
	old := t.slots
	t.slots = make([]pathSlot, max(pathParts+n/2, len(old)+len(old)/2))
	for _, p := range old {
		if p.era != 0 {
			*t.find(PathHash{p.high, p.low}) = p
		}
	}
}

// Expect prefetches what Meet reads. The result only keeps the compiler from leaving
// that out.
func (s *PathSet) Expect(h PathHash) uint32 {
	t := &s.parts[h.high>>(64-pathPartBits)]
	if len(t.slots) == 0 {
		return 0
	}
	return t.slots[t.start(h)].era
}
