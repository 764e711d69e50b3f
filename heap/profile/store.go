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

// treeIndex is an open-addressed hash table of numbers by a node and the next value below it. It has the keys
// themselves: to wait for memory is most of what a search takes. A Go map takes twice as long for millions of
// addresses, and twice the memory.
type treeIndex struct {
	slots []treeSlot // a power of two
	n     int
}

// treeSlot holds a number plus 1, at the index of the hash of its key or the next free slot. 0 is free.
type treeSlot struct {
	key    treeNode
	number uint32
}

// slot returns the slot of a key, or the free one where it would be.
func (x *treeIndex) slot(key treeNode) *treeSlot {
	mask := uint64(len(x.slots) - 1)
	for i := mix(uint64(key.parent)<<32|uint64(key.value), 0) & mask; ; i = (i + 1) & mask {
		if s := &x.slots[i]; s.number == 0 || s.key == key {
			return s
		}
	}
}

// find returns the number of a key.
func (x *treeIndex) find(key treeNode) (number uint32, found bool) {
	if x.slots == nil {
		return 0, false
	}
	n := x.slot(key).number
	return n - 1, n != 0
}

// set sets the number of a key.
func (x *treeIndex) set(key treeNode, number uint32) {
	if x.n >= len(x.slots)/4*3 {
		old := x.slots
		x.slots = make([]treeSlot, max(64, 2*len(old)))
		for _, s := range old {
			if s.number != 0 {
				*x.slot(s.key) = s
			}
		}
	}
	s := x.slot(key)
	if s.number == 0 {
		x.n++
	}
	*s = treeSlot{key, number + 1}
}

// seeds make hashes different in each process, so that no log can be written in which many
// call paths have the same hash.
var seeds = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// mix returns a hash of h and v.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v^seeds[0], seeds[1])
	return hi ^ lo
}
