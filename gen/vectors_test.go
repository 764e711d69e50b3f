package gen

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// hashStacks returns a hash of all IDs, sizes and addresses.
func hashStacks(stacks []NamedStack) uint64 {
	h := fnv.New64a()
	for _, s := range stacks {
		fmt.Fprintf(h, "%s\t%x\t%x\n", s.ID, s.Stack.Size, s.Stack.PCs)
	}
	return h.Sum64()
}

func TestVectorStacksStayTheSame(t *testing.T) {
	for _, tt := range []struct {
		word int
		seed uint64
		want uint64
	}{
		{64, 1, 0xfcbd133e367a1763},
		{32, 1, 0xd92f4176a5b7933f},
	} {
		if got := hashStacks(VectorStacks(tt.word, tt.seed)); got != tt.want {
			t.Errorf("VectorStacks(%d, %d) hash to %#x, want %#x: recorded vectors no longer match",
				tt.word, tt.seed, got, tt.want)
		}
	}
}

func TestVectorStacksHoldWhatTheyPromise(t *testing.T) {
	for _, word := range []int{32, 64} {
		stacks := VectorStacks(word, 1)
		ids := map[string]bool{}
		var depths, widths, sizes [65]bool
		families := map[string]int{}
		for _, s := range stacks {
			if ids[s.ID] {
				t.Errorf("word %d: ID %s twice", word, s.ID)
			}
			ids[s.ID] = true
			family, _, _ := strings.Cut(s.ID, "/")
			families[family]++
			if len(s.Stack.PCs) > codec.MaxDepth {
				t.Errorf("word %d: %s has %d frames", word, s.ID, len(s.Stack.PCs))
				continue
			}
			depths[len(s.Stack.PCs)] = true
			sizes[bits.Len64(s.Stack.Size)] = true
			for _, pc := range append([]uint64{s.Stack.Size}, s.Stack.PCs...) {
				if bits.Len64(pc) > word {
					t.Errorf("word %d: %s has %#x", word, s.ID, pc)
				}
			}
			if family == "delta-width" {
				widths[bits.Len64(s.Stack.PCs[3]-s.Stack.PCs[2])] = true
			}
		}
		{
			s := byID(t, stacks, "depth/longest-lws")
			m := map[int]codec.Machine{32: codec.MachineExact32, 64: codec.MachineExact64}[word]
			n, err := codec.Encoder{Machine: m}.Bits(&s)
			if want := map[int]int{32: 1420, 64: 2476}[word]; err != nil || n != want {
				t.Errorf("word %d: depth/longest-lws takes %d bits (%v), want %d", word, n, err, want)
			}
		}
		if len(stacks) < 240 {
			t.Errorf("word %d: %d stacks, want at least 240", word, len(stacks))
		}
		for n := range codec.MaxDepth + 1 {
			if !depths[n] {
				t.Errorf("word %d: no stack of depth %d", word, n)
			}
		}
		for n := 1; n <= word; n++ {
			if !widths[n] || !sizes[n] {
				t.Errorf("word %d: width %d: delta %v, size %v", word, n, widths[n], sizes[n])
			}
		}
		for _, f := range []string{"tie", "base-frame-0", "back-8", "back-9", "boundary"} {
			if families[f] == 0 {
				t.Errorf("word %d: no stacks of family %s", word, f)
			}
		}
		t.Logf("word %d: %d stacks, %v", word, len(stacks), families)
	}
}

func byID(t *testing.T, stacks []NamedStack, id string) codec.Stack {
	for _, s := range stacks {
		if s.ID == id {
			return s.Stack
		}
	}
	t.Fatalf("no stack %s", id)
	return codec.Stack{}
}
