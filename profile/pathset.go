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
	slots []pathSlot
	used  int
}

// pathSlot is a call path: none if its era is 0.
type pathSlot struct {
	high uint64
	low  uint32
	era  uint32
}

// Len returns how many call paths there are.
func (s *PathSet) Len() int { return s.used }

// start returns where the search for a call path begins.
func (s *PathSet) start(h PathHash) int {
	start, _ := bits.Mul64(h.high, uint64(len(s.slots)))
	return int(start)
}

// find returns the slot of a call path, a free one if it is not in the set.
func (s *PathSet) find(h PathHash) *pathSlot {
	for i := s.start(h); ; i++ {
		if i == len(s.slots) {
			i = 0
		}
		if p := &s.slots[i]; p.era == 0 || p.high == h.high && p.low == h.low {
			return p
		}
	}
}

// Meet notes that a call path was met in an era, a number from 1. It returns the era in which that was
// noted before, 0 if never. If the call path is new and there are most already, it
// is not added, and ok is false.
func (s *PathSet) Meet(h PathHash, era uint32, most int) (before uint32, ok bool) {
	if s.used >= len(s.slots)/4*3 {
		s.grow()
	}
	p := s.find(h)
	if before = p.era; before == 0 {
		if s.used >= most {
			return 0, false
		}
		p.high, p.low = h.high, h.low
		s.used++
	}
	p.era = era
	return before, true
}

func (s *PathSet) grow() {
	old := s.slots
	s.slots = make([]pathSlot, max(1<<10, len(old)+len(old)/2))
	for _, p := range old {
		if p.era != 0 {
			*s.find(PathHash{p.high, p.low}) = p
		}
	}
}

// Expect announces a call of Meet. The result has no meaning.
func (s *PathSet) Expect(h PathHash) uint32 {
	if len(s.slots) == 0 {
		return 0
	}
	return s.slots[s.start(h)].era
}
