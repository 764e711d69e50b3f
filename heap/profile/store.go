package profile

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// chunkBits is the base-2 logarithm of the number of elements in a chunk.
const chunkBits = 10

// array is a growing array that never moves its elements. One goroutine may push while
// others read the elements that were pushed before they began.
type array[T any] struct {
	chunks atomic.Pointer[[][]T] // each of 1<<chunkBits elements
	n      int
}

// at returns the element with index i, which must be below n.
func (a *array[T]) at(i int) *T {
	return &(*a.chunks.Load())[uint(i)>>chunkBits][i&(1<<chunkBits-1)]
}

// push appends an element.
func (a *array[T]) push(v T) {
	if a.n&(1<<chunkBits-1) == 0 {
		var chunks [][]T
		if p := a.chunks.Load(); p != nil {
			chunks = *p
		}
		if len(chunks) == a.n>>chunkBits { // more, if n was reduced
			chunks = append(chunks, make([]T, 1<<chunkBits))
			a.chunks.Store(&chunks)
		}
	}
	a.n++
	*a.at(a.n - 1) = v
}

// hashes is an open-addressed hash table of numbers. A Go map takes twice as long for
// millions of addresses, and twice the memory.
type hashes struct {
	slots []slot // a power of two
	n     int
}

// slot holds a number plus 1, at the index of its hash or the next free slot. 0 is free.
type slot struct{ hash, number uint32 }

// find returns the number with a hash for which equal returns true.
func (h *hashes) find(hash uint32, equal func(number uint32) bool) (number uint32, found bool) {
	mask := uint32(len(h.slots) - 1)
	if h.slots == nil {
		return 0, false
	}
	for i := hash & mask; ; i = (i + 1) & mask {
		switch s := h.slots[i]; {
		case s.number == 0:
			return 0, false
		case s.hash == hash && equal(s.number-1):
			return s.number - 1, true
		}
	}
}

// add adds a number that is not in the table.
func (h *hashes) add(hash, number uint32) {
	if h.n >= len(h.slots)/4*3 {
		old := h.slots
		h.slots = make([]slot, max(64, 2*len(old)))
		for _, s := range old {
			if s.number != 0 {
				h.put(s)
			}
		}
	}
	h.put(slot{hash, number + 1})
	h.n++
}

// replace replaces a number that is in the table by another one with the same hash.
func (h *hashes) replace(hash, old, number uint32) {
	mask := uint32(len(h.slots) - 1)
	i := hash & mask
	for h.slots[i].number != old+1 {
		i = (i + 1) & mask
	}
	h.slots[i].number = number + 1
}

func (h *hashes) put(s slot) {
	mask := uint32(len(h.slots) - 1)
	i := s.hash & mask
	for h.slots[i].number != 0 {
		i = (i + 1) & mask
	}
	h.slots[i] = s
}

// seeds make hashes different in each process, so that no log can be written in which many
// call paths have the same hash.
var seeds = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// mix returns a hash of h and v.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v^seeds[0], seeds[1])
	return hi ^ lo
}
