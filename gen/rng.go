package gen

import (
	"math/bits"
	"math/rand/v2"
)

// rng is a stream of numbers that is the same everywhere and always. Of
// math/rand/v2 only the PCG source is fixed for good, so only that is used.
type rng struct{ pcg *rand.PCG }

// newRNG starts the stream called label: streams of one seed that differ in
// label have nothing to do with each other, so that adding one moves no other.
func newRNG(seed uint64, label string) *rng {
	return &rng{rand.NewPCG(seed, hash(label))}
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func (r *rng) uint64() uint64 { return r.pcg.Uint64() }

// below is uniform in 0..n-1, but for a bias of n/2^64. n is at least 1.
func (r *rng) below(n int) int {
	hi, _ := bits.Mul64(r.uint64(), uint64(n))
	return int(hi)
}

// between is uniform in lo..hi.
func (r *rng) between(lo, hi int) int { return lo + r.below(hi-lo+1) }

// chance is true percent times in 100.
func (r *rng) chance(percent int) bool { return r.below(100) < percent }

// width is a uniform value of exactly n significant bits, 1 to 64; of one bit,
// it is 0 or 1.
func (r *rng) width(n int) uint64 {
	v := r.uint64() >> (64 - n)
	if n > 1 {
		v |= 1 << (n - 1)
	}
	return v
}

// halving is 0 in half of all cases, 1 in a quarter, and so on, below n.
func (r *rng) halving(n int) int {
	return bits.TrailingZeros64(r.uint64()) % n
}

// spread is a value below n whose magnitude is uniform: as many below 16 as
// between 16 and 256.
func (r *rng) spread(n int) int {
	w := r.below(bits.Len(uint(n)))
	return r.below(min(n, 2<<w))
}
