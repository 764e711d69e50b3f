package gen

import (
	"math/bits"
	"math/rand/v2"
)

// rng is a stream of numbers that is the same on every machine and with every version
// of Go. Of math/rand/v2, only the output of PCG is guaranteed not to change, so rng
// uses only PCG.
type rng struct{ pcg *rand.PCG }

// newRNG returns the stream with this seed and label. Streams with different labels are
// independent, so adding a stream does not change the others.
func newRNG(seed uint64, label string) *rng {
	return &rng{rand.NewPCG(seed, hash(label))}
}

// hash returns the FNV-1a hash of s.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func (r *rng) uint64() uint64 { return r.pcg.Uint64() }

// below returns a uniform number in 0..n-1, with a bias of n/2^64. n is at least 1.
func (r *rng) below(n int) int {
	hi, _ := bits.Mul64(r.uint64(), uint64(n))
	return int(hi)
}

// chance returns true with a probability of percent/100.
func (r *rng) chance(percent int) bool { return r.below(100) < percent }

// width returns a uniform value with exactly n significant bits, 1 to 64; for n = 1 it
// returns 0 or 1.
func (r *rng) width(n int) uint64 {
	v := r.uint64() >> (64 - n)
	if n > 1 {
		v |= 1 << (n - 1)
	}
	return v
}

// halving returns 0 with probability 1/2, 1 with 1/4, and so on, below n.
func (r *rng) halving(n int) int {
	return bits.TrailingZeros64(r.uint64()) % n
}

// spread returns a value below n whose order of magnitude is roughly uniform: small
// values are as frequent as large ones.
func (r *rng) spread(n int) int {
	w := r.below(bits.Len(uint(n)))
	return r.below(min(n, 2<<w))
}
