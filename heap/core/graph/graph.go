// Package graph finds out who holds the blocks of a heap.
//
//	Image, Heap ─Build→ Graph ─┬→ Dominators: what would be free without a holder
//	                           └→ Path: the shortest way from a variable to a block
//
// The graph is conservative: each aligned word that holds the address of a byte of a block is an
// edge. Roots are the variables, stacks and registers of the program. A block that a global
// variable reaches is not charged to a stack or register, because those point to most blocks that
// a program works on.
package graph

import (
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// Root is memory outside of the heap that points to blocks.
type Root struct {
	Name  string
	Local bool // a stack or registers
}

// Graph is a heap with the pointers between its blocks. Nodes are numbered: 0 is the program, then
// come the roots, then the blocks.
type Graph struct {
	Heap  *core.Heap
	Roots []Root
	// Types are names of types for the blocks of Heap, "" if not known. They name holders,
	// and change nothing else.
	Types func(block int) string

	pointers *core.Pointers
	start    []uint32 // of the edges of each node, in to
	to       []int32
	parent   []int32 // on a shortest path from a root; none if there is no path
	where    []uint64
}

const none = -1

// Type returns the type of a block, "" if it is not known.
func (g *Graph) Type(block int) string {
	if g.Types == nil {
		return ""
	}
	return g.Types(block)
}

// Build builds the graph of a heap. root names the memory at an address outside of the heap;
// addresses with the same root give the same pointer.
func Build(m *core.Image, h *core.Heap, from core.Roots, root func(addr uint64) *Root) *Graph {
	b := builder{g: &Graph{Heap: h, pointers: m.Pointers(h, from)}, root: root, numbers: map[*Root]int{}}
	b.roots(m)
	b.link()
	b.reach()
	return b.g
}

// builder builds a graph.
type builder struct {
	g       *Graph
	root    func(addr uint64) *Root
	numbers map[*Root]int // index in Roots
	edges   [][]rootEdge  // of each root
}

// rootEdge is a pointer of a root.
type rootEdge struct {
	block int32
	at    uint64 // address of the pointer, 0 in a register
}

func (b *builder) number(r *Root) int {
	n, ok := b.numbers[r]
	if !ok {
		n = len(b.g.Roots)
		b.numbers[r] = n
		b.g.Roots = append(b.g.Roots, *r)
		b.edges = append(b.edges, nil)
	}
	return n
}

// roots finds the pointers outside of blocks.
func (b *builder) roots(m *core.Image) {
	loose, unknown := &Root{Name: "heap memory in no block"}, &Root{Name: "a block of unknown content"}
	add := func(r *Root, block int, at uint64) {
		n := b.number(r)
		if k := len(b.edges[n]); k == 0 || b.edges[n][k-1].block != int32(block) {
			b.edges[n] = append(b.edges[n], rootEdge{int32(block), at})
		}
	}
	b.g.pointers.Roots(func(at uint64, block int, outside bool) {
		if outside {
			add(loose, block, at)
		} else {
			add(b.root(at), block, at)
		}
	})
	for i := range m.Threads {
		r := &Root{Name: "registers", Local: true}
		for _, v := range m.Threads[i].Values {
			if block, ok := b.g.pointers.Block(v); ok {
				add(r, block, 0)
			}
		}
	}
	for i := range b.g.Heap.Blocks {
		if b.g.Heap.Unknown(i) {
			add(unknown, i, 0)
		}
	}
}

// link sets the edges between blocks.
func (b *builder) link() {
	g := b.g
	n := len(g.Heap.Blocks)
	g.start = make([]uint32, g.Nodes()+1)
	at := g.node(0)
	for i := range n {
		first := len(g.to)
		g.pointers.In(i, func(_ uint64, to int) {
			if k := len(g.to); to != i && (k == first || g.to[k-1] != int32(at+to)) {
				g.to = append(g.to, int32(at+to))
			}
		})
		slices.Sort(g.to[first:])
		g.to = g.to[:first+len(slices.Compact(g.to[first:]))]
		g.start[at+i+1] = uint32(len(g.to))
	}
}

// reach finds the shortest paths: first from globals, then from stacks and registers to what is
// left. The edges of the roots follow them: a local root has edges only to what no global reaches.
func (b *builder) reach() {
	g := b.g
	g.parent = slices.Repeat([]int32{none}, g.Nodes())
	g.where = make([]uint64, len(g.Heap.Blocks))
	base := g.node(0)
	kept := make([][]int32, len(g.Roots))
	for _, local := range []bool{false, true} {
		var queue []int32
		before := slices.Clone(g.parent)
		for r := range g.Roots {
			if g.Roots[r].Local != local {
				continue
			}
			for _, e := range b.edges[r] {
				v := int32(base) + e.block
				if before[v] != none {
					continue
				}
				kept[r] = append(kept[r], v)
				if g.parent[v] == none {
					g.parent[v] = int32(1 + r)
					g.where[e.block] = e.at
					queue = append(queue, v)
				}
			}
		}
		for ; len(queue) > 0; queue = queue[1:] {
			v := queue[0]
			for _, w := range g.edges(int(v)) {
				if g.parent[w] == none {
					g.parent[w] = v
					queue = append(queue, w)
				}
			}
		}
	}
	b.merge(kept)
}

// merge puts the edges of the program and of its roots before those of the blocks.
func (b *builder) merge(kept [][]int32) {
	g := b.g
	var head []int32
	start := make([]uint32, 0, len(g.start))
	start = append(start, 0)
	for r := range g.Roots {
		head = append(head, int32(1+r))
	}
	start = append(start, uint32(len(head)))
	for r := range kept {
		slices.Sort(kept[r])
		head = append(head, slices.Compact(kept[r])...)
		start = append(start, uint32(len(head)))
	}
	for _, s := range g.start[len(start):] {
		start = append(start, s+uint32(len(head)))
	}
	g.start, g.to = start, append(head, g.to...)
}

// Nodes returns the number of nodes.
func (g *Graph) Nodes() int { return 1 + len(g.Roots) + len(g.Heap.Blocks) }

// node returns the node of a block.
func (g *Graph) node(block int) int { return 1 + len(g.Roots) + block }

// block returns the block of a node; ok is false if it has none.
func (g *Graph) block(node int) (block int, ok bool) {
	block = node - 1 - len(g.Roots)
	return block, block >= 0
}

func (g *Graph) edges(node int) []int32 { return g.to[g.start[node]:g.start[node+1]] }

// BlockAt returns the block that holds an address.
func (g *Graph) BlockAt(addr uint64) (block int, ok bool) { return g.pointers.Block(addr) }

// Reached reports whether a root reaches a block.
func (g *Graph) Reached(block int) bool { return g.parent[g.node(block)] != none }

// Nearest returns the root of the shortest path to a block. ok is false if no root reaches it.
func (g *Graph) Nearest(block int) (root int, ok bool) {
	v := int32(g.node(block))
	for g.parent[v] != none {
		if v = g.parent[v]; int(v) <= len(g.Roots) {
			return int(v) - 1, true
		}
	}
	return 0, false
}

// Step is a pointer on a path.
type Step struct {
	Block int    // that holds the pointer; -1 if a root does
	Root  int    // index of Graph.Roots, if Block is -1
	At    uint64 // address of the pointer, 0 in a register
}

// Path returns the shortest path to a block, from the pointer to the block back to a root. It is
// empty if no root reaches the block.
func (g *Graph) Path(block int) (path []Step) {
	for v := g.node(block); g.parent[v] != none; {
		p := int(g.parent[v])
		at, _ := g.block(v)
		if p <= len(g.Roots) {
			return append(path, Step{Block: -1, Root: p - 1, At: g.where[at]})
		}
		s := Step{}
		s.Block, _ = g.block(p)
		g.pointers.In(s.Block, func(addr uint64, to int) {
			if to == at && s.At == 0 {
				s.At = addr
			}
		})
		path = append(path, s)
		v = p
	}
	return nil
}
