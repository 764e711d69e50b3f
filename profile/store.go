package profile

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/lwsbt/lwsbt/symbol"
)

// chunkBits is the logarithm of how many elements of an array are allocated at once.
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

// blockSize is how many numbers a block of stacks has, unless one stack is longer.
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

// hashes finds numbers by the hash of what they number. A number is at its hash, or if
// another number is there, at the next free one.
type hashes map[uint64]uint32

// find returns the number for which equal returns true, or the free place for it.
func (h hashes) find(hash uint64, equal func(n uint32) bool) (n uint32, place uint64, found bool) {
	for ; ; hash++ {
		n, found = h[hash]
		if !found || equal(n) {
			return n, hash, found
		}
	}
}

// seeds make hashes different in each process: nobody can write a log in which many
// call paths have one hash.
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

func newStackSet() stackSet { return stackSet{new(stacks), hashes{}} }

// find returns the number of a stack, or the place in the index for it.
func (s *stackSet) find(stack []uint32) (id uint32, place uint64, found bool) {
	h := uint64(len(stack))
	for _, v := range stack {
		h = mix(h, uint64(v))
	}
	return s.index.find(h, func(n uint32) bool { return slices.Equal(s.at(n), stack) })
}

// add returns the number of a stack, and adds the stack if it is new.
func (s *stackSet) add(stack []uint32) uint32 {
	id, place, found := s.find(stack)
	if !found {
		id = s.push(stack)
		s.index[place] = id
	}
	return id
}

// paths is the call paths of a [Builder]: stacks of numbers of addresses.
type paths struct {
	stacks
	addrs array[symbol.Addr]
}
