package profile

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/lwsbt/lwsbt/symbol"
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

// stacks numbers stacks, which are lists of 32-bit numbers: of addresses or of call
// sites, innermost first.
type stacks struct {
	start  array[uint64]   // of each stack: its block << 32 | its index there
	blocks array[[]uint32] // stacks one after the other, each behind its length
	used   int             // elements of the last block
}

// blockSize is the number of elements of a block, unless one stack is longer.
const blockSize = 1 << 12

// at returns the stack with number id, which must be below start.n. The caller must
// not change it.
func (s *stacks) at(id uint32) []uint32 {
	at := *s.start.at(int(id))
	block := (*s.blocks.at(int(at >> 32)))[uint32(at):]
	return block[1 : 1+block[0]]
}

// push appends a stack and returns its number.
func (s *stacks) push(stack []uint32) uint32 {
	need := 1 + len(stack)
	if s.blocks.n == 0 || len(*s.blocks.at(s.blocks.n - 1))-s.used < need {
		s.blocks.push(make([]uint32, max(blockSize, need)))
		s.used = 0
	}
	block := (*s.blocks.at(s.blocks.n - 1))[s.used:]
	block[0] = uint32(len(stack))
	copy(block[1:], stack)
	s.start.push(uint64(s.blocks.n-1)<<32 | uint64(s.used))
	s.used += need
	return uint32(s.start.n - 1)
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

// stackSet is stacks without duplicates.
type stackSet struct {
	*stacks
	index hashes
}

func newStackSet() stackSet { return stackSet{stacks: new(stacks)} }

// find returns the number of a stack, and its hash.
func (s *stackSet) find(stack []uint32) (id, hash uint32, found bool) {
	h := uint64(len(stack))
	for _, v := range stack {
		h = mix(h, uint64(v))
	}
	hash = uint32(h)
	id, found = s.index.find(hash, func(n uint32) bool { return slices.Equal(s.at(n), stack) })
	return id, hash, found
}

// add returns the number of a stack, and adds the stack if it is new.
func (s *stackSet) add(stack []uint32) uint32 {
	id, hash, found := s.find(stack)
	if !found {
		id = s.push(stack)
		s.index.add(hash, id)
	}
	return id
}

// paths is the call paths of a [Builder]: stacks of numbers of addresses.
type paths struct {
	stacks
	addrs array[symbol.Addr]
}
