package profile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Against maps: random stacks of few values, whole and below nodes.
func TestStackTree(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var tree stackTree
		ids := map[string]uint32{}
		var stacks [][]uint32
		random := func(n int) []uint32 {
			s := make([]uint32, rng.IntN(n))
			for i := range s {
				s[i] = rng.Uint32N(3)
			}
			return s
		}
		for range 300 {
			tail, outer := random(8), random(5)
			node := tree.node(0, outer)
			whole := slices.Concat(tail, outer)
			id := tree.add(node, tail)
			known, ok := ids[fmt.Sprint(whole)]
			switch {
			case ok && known != id:
				t.Fatalf("seed %d: %v is stack %d, was %d", seed, whole, id, known)
			case !ok && int(id) != len(stacks):
				t.Fatalf("seed %d: %v is stack %d, want %d", seed, whole, id, len(stacks))
			case !ok:
				ids[fmt.Sprint(whole)] = id
				stacks = append(stacks, whole)
			}
			if p, found := tree.find(0, whole); !found || p.id != id {
				t.Fatalf("seed %d: %v not found", seed, whole)
			}
		}
		for id, want := range stacks {
			if got := tree.append(nil, uint32(id)); !slices.Equal(got, want) {
				t.Fatalf("seed %d: stack %d is %v, want %v", seed, id, got, want)
			}
			if v, ok := tree.innermost(uint32(id)); ok != (len(want) > 0) || ok && v != want[0] {
				t.Fatalf("seed %d: innermost of %v is %d", seed, want, v)
			}
		}
	}
}

// A stack that continues another one takes memory for its own values only.
func TestStackTreeSharesOuterValues(t *testing.T) {
	var tree stackTree
	long := make([]uint32, 1001)
	for i := range long {
		long[i] = uint32(i)
	}
	for i := range uint32(10_000) {
		long[0] = 5000 + i
		tree.add(0, long)
	}
	if values := tree.nodes.n + tree.blocks.n*blockSize; tree.size() != 10_000 || values > 20_000 {
		t.Errorf("%d stacks, %d values, want at most 20000", tree.size(), values)
	}
}
