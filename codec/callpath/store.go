package callpath

import (
	"math/bits"
	"math/rand/v2"
)

// list is a growing list. A slice would take up to three times the memory while it grows, since
// append copies it.
type list[T any] struct {
	chunks [][]T // all of chunkSize elements, but for the last one
	n      int
}

const chunkSize = 1 << 9

// at returns the element with index i, valid until the next push.
func (l *list[T]) at(i int) *T { return &l.chunks[uint(i)/chunkSize][uint(i)%chunkSize] }

// push appends an element.
func (l *list[T]) push(v T) {
	last := l.n / chunkSize
	switch {
	case last < len(l.chunks):
	case last == 0: // many lists are short
		l.chunks = [][]T{nil}
	default:
		l.chunks = append(l.chunks, make([]T, 0, chunkSize))
	}
	l.chunks[last] = append(l.chunks[last], v)
	l.n++
}

// grown returns the element with index i, before which it appends zero elements if there are too
// few.
func (l *list[T]) grown(i int) *T {
	var zero T
	for l.n <= i {
		l.push(zero)
	}
	return l.at(i)
}

// index finds numbers by hash, in 4 bytes per slot; a map takes 20 to 45. Its owner compares what
// the numbers stand for.
type index struct {
	slots []uint32 // number + 1, or 0 if free; the length is a power of 2
	used  int
}

// find returns the number for which equal returns true. If there is none, ok is false.
func (x *index) find(hash uint32, equal func(number uint32) bool) (number uint32, ok bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	mask := uint32(len(x.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		n := x.slots[at]
		if n == 0 || equal(n-1) {
			return n - 1, n > 0
		}
	}
}

// add adds a number that is not in the index. hash returns the hash of each number.
func (x *index) add(number uint32, hash func(number uint32) uint32) {
	if x.used++; 4*x.used > 3*len(x.slots) {
		old := x.slots
		x.slots = make([]uint32, max(8, 2*len(old)))
		for _, n := range old {
			if n > 0 {
				x.put(n, hash(n-1))
			}
		}
	}
	x.put(number+1, hash(number))
}

func (x *index) put(slot, hash uint32) {
	mask := uint32(len(x.slots) - 1)
	at := hash & mask
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = slot
}

// replace replaces a number that is in the index by one with the same hash.
func (x *index) replace(hash, old, number uint32) {
	mask := uint32(len(x.slots) - 1)
	at := hash & mask
	for x.slots[at] != old+1 {
		at = (at + 1) & mask
	}
	x.slots[at] = number + 1
}

// seeds differ in each process, so that no log can be written whose numbers collide.
var seeds = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// hash2 returns a hash of two numbers.
func hash2(a, b uint64) uint32 {
	hi, lo := bits.Mul64(a^seeds[0], seeds[1])
	hi, lo = bits.Mul64(hi^lo^b, seeds[1])
	return uint32(hi ^ lo)
}
