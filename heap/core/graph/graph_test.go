package graph

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
)

// random returns a graph of roots and blocks with random edges.
func random(r *rand.Rand, roots, blocks, edges int) *Graph {
	g := &Graph{Heap: &core.Heap{Blocks: make([]core.Block, blocks)}}
	for i := range blocks {
		g.Heap.Blocks[i].Size = uint64(1 + r.IntN(100))
	}
	for range roots {
		g.Roots = append(g.Roots, Root{Name: string(rune('a' + len(g.Roots)))})
	}
	out := make([][]int32, g.Nodes())
	for i := range roots {
		out[0] = append(out[0], int32(1+i))
	}
	for range edges {
		from := 1 + r.IntN(g.Nodes()-1)
		out[from] = append(out[from], int32(g.node(r.IntN(blocks))))
	}
	g.parent = slices.Repeat([]int32{none}, g.Nodes())
	g.start = []uint32{0}
	for _, list := range out {
		slices.Sort(list)
		g.to = append(g.to, slices.Compact(list)...)
		g.start = append(g.start, uint32(len(g.to)))
	}
	for queue := []int32{0}; len(queue) > 0; queue = queue[1:] {
		for _, w := range g.edges(int(queue[0])) {
			if g.parent[w] == none && int(w) > roots {
				g.parent[w] = queue[0]
			}
			if int(w) <= roots && queue[0] == 0 || int(w) > roots && g.parent[w] == queue[0] && !slices.Contains(queue, w) {
				queue = append(queue, w)
			}
		}
	}
	return g
}

// reach returns the nodes that the program reaches without passing a node.
func (g *Graph) reach(without int) []bool {
	seen := make([]bool, g.Nodes())
	if without == 0 {
		return seen
	}
	seen[0] = true
	for work := []int32{0}; len(work) > 0; {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, w := range g.edges(int(v)) {
			if !seen[w] && int(w) != without {
				seen[w] = true
				work = append(work, w)
			}
		}
	}
	return seen
}

// The retained bytes of a node are those of the blocks that are not reachable without it.
func TestDominatorsEqualThoseOfRemovedNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	checked := 0
	for range 300 {
		n := 1 + r.IntN(40)
		g := random(r, 1+r.IntN(4), n, r.IntN(3*n+1))
		tree := g.Dominators()
		all := g.reach(-1)
		for v := 1; v < g.Nodes(); v++ {
			var want uint64
			count := 0
			for w, still := range g.reach(v) {
				if b, ok := g.block(w); ok && all[w] && !still && all[v] {
					want, count = want+g.Heap.Blocks[b].Size, count+1
				}
			}
			if bytes, blocks := tree.Retained(v); bytes != want || blocks != count {
				t.Fatalf("node %d of %d: %d bytes in %d blocks, want %d in %d", v, g.Nodes(), bytes, blocks, want, count)
			}
			checked++
		}
		var reached, held uint64
		for i := range g.Heap.Blocks {
			if all[g.node(i)] {
				reached += g.Heap.Blocks[i].Size
			}
		}
		for _, h := range tree.Holders() {
			held += h.Bytes
		}
		if held != reached {
			t.Fatalf("holders have %d bytes; %d are reached", held, reached)
		}
	}
	if checked < 5000 {
		t.Errorf("%d nodes", checked)
	}
}

// A list of a million blocks needs no recursion, and a moment.
func TestDominatorsOfALongList(t *testing.T) {
	const n = 1 << 20
	g := &Graph{Heap: &core.Heap{Blocks: make([]core.Block, n)}, Roots: []Root{{Name: "list"}}, parent: slices.Repeat([]int32{none}, n+2)}
	g.start = []uint32{0}
	for v := range n + 2 {
		if v <= n {
			g.to = append(g.to, int32(v+1))
		}
		if v > 2 { // and back
			g.to = append(g.to, int32(v-1))
		}
		if v >= 2 {
			g.Heap.Blocks[v-2].Size = 1
			g.parent[v] = int32(v - 1)
		}
		g.start = append(g.start, uint32(len(g.to)))
	}
	tree := g.Dominators()
	for _, v := range []int{1, 2, n / 2, n + 1} {
		if bytes, _ := tree.Retained(v); bytes != uint64(min(n, n+2-v)) {
			t.Errorf("node %d retains %d bytes, want %d", v, bytes, min(n, n+2-v))
		}
	}
	if h := tree.Holders(); len(h) != 1 || h[0].Blocks != n {
		t.Errorf("%d holders", len(h))
	}
}

func BenchmarkDominators(b *testing.B) {
	g := random(rand.New(rand.NewPCG(1, 2)), 10, 20000, 50000)
	b.ReportAllocs()
	for b.Loop() {
		g.Dominators()
	}
}
