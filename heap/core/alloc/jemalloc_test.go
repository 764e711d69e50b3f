package alloc

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestDamageOfJemalloc flips bits in words of the tree and in descriptions of extents: where the heap is still proven, no block
// is missing, and none is called leaked that is not.
func TestDamageOfJemalloc(t *testing.T) {
	p := aborted(t, "model.c", jemallocLibrary(t))
	p.readTruth(t)
	m, program := p.open(t)
	j := &jemalloc{finder: &finder{m: m, p: program, ptr: 8, budget: probes(m), blocks: core.MaxBlocks}, extents: map[uint64]*jeExtent{}}
	if !j.findRoot() {
		t.Fatal("no tree")
	}
	var words []uint64
	seen := map[uint64]bool{}
	j.words(j.root, j.root+jeLeaf, func(_, leaf uint64) bool {
		if leaf != 0 {
			j.words(leaf, leaf+jeLeaf, func(addr, v uint64) bool {
				e, ok := j.extent(v)
				if ok {
					words = append(words, addr)
				}
				if ok && !seen[e.at] {
					seen[e.at] = true
					words = append(words, e.at, e.at+8, e.at+16, e.at+jeBitmap)
				}
				return true
			})
		}
		return true
	})
	slices.Sort(words)
	runs := 20
	if cmdtest.Full() {
		runs = 200
	}
	r, detected := rand.New(rand.NewPCG(1, 1)), 0
	for range runs {
		at := words[r.IntN(len(words))] + uint64(r.IntN(8))
		b, _ := m.Uint(at, 1)
		now, program := p.open(t, patch{at, []byte{byte(b) ^ 1<<r.IntN(8)}})
		heaps, err := Find(now, program, JeMalloc)
		if err != nil || !heaps[0].Proven() {
			detected++
			now.Close()
			continue
		}
		h := Core(now, heaps)
		l := now.FindLeaks(h, core.Roots{Data: program.Data})
		for _, x := range p.truth {
			if i, ok := now.BlockAt(h, x.addr); !ok || h.Blocks[i].Addr != x.addr || l.Reach[i] == core.Leaked && !x.leaked {
				t.Errorf("byte at %#x: the block at %#x; proven", at, x.addr)
			}
		}
		now.Close()
	}
	t.Logf("%d of %d detected", detected, runs)
	if detected == 0 {
		t.Error("nothing is detected")
	}
}
