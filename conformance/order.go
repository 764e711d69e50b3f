package conformance

import (
	"math/rand/v2"
	"slices"
)

// simple lists the groups of vectors that other groups build on, in the order to ask them, which
// is that of the specification.
var simple = []string{"depth", "literal", "size", "count", "field", "blob", "delta", "back", "text", "decoded", "scan",
	"machine", "lws", "best", "user", "event", "header", "log", "pname", "pline", "vline", "pdumps"}

// simpleFirst sorts vectors: first the simple groups, then all others in their order.
func simpleFirst(vectors []*Vector) []*Vector {
	rank := func(v *Vector) int {
		if i := slices.Index(simple, v.Group()); i >= 0 {
			return i
		}
		return len(simple)
	}
	vectors = slices.Clone(vectors)
	slices.SortStableFunc(vectors, func(a, b *Vector) int { return rank(a) - rank(b) })
	return vectors
}

// passes returns the cases to ask, in order: in the first pass each vector as written, in
// the second pass all cases in shuffled order.
func (r *run) passes() [2][]int32 {
	var passes [2][]int32
	for i, c := range r.cases {
		if c.how.kind == asWritten {
			passes[0] = append(passes[0], int32(i))
		} else {
			passes[1] = append(passes[1], int32(i))
		}
		passes[1] = append(passes[1], int32(i))
	}
	rng := rand.New(rand.NewPCG(r.Seed, 1))
	rng.Shuffle(len(passes[1]), func(i, j int) { passes[1][i], passes[1][j] = passes[1][j], passes[1][i] })
	return passes
}
