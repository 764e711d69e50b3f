package graph

import "slices"

// Tree is the dominator tree of a graph: the parent of a node is the last node that all paths to it
// share. Without it, no root would reach the node.
type Tree struct {
	g      *Graph
	order  []int32 // nodes in depth-first order
	idom   []int32 // of each node; none if no root reaches it
	bytes  []uint64
	blocks []int32
}

// Dominators computes the dominator tree by the algorithm Semi-NCA of Georgiadis: semidominators as
// Lengauer and Tarjan define them, then nearest common ancestors.
func (g *Graph) Dominators() *Tree {
	t := &Tree{g: g}
	d := newDFS(g)
	t.order = d.order
	n := len(d.order)
	semi, label, idom, ancestor := make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range n {
		semi[i], label[i], idom[i], ancestor[i] = int32(i), int32(i), d.parent[i], none
	}
	var path []int32
	eval := func(v int32) int32 { // with compression, without recursion
		if ancestor[v] == none {
			return label[v]
		}
		path = path[:0]
		u := v
		for ; ancestor[ancestor[u]] != none; u = ancestor[u] {
			path = append(path, u)
		}
		for i := len(path) - 1; i >= 0; i-- {
			w := path[i]
			if a := ancestor[w]; semi[label[a]] < semi[label[w]] {
				label[w] = label[a]
			}
			ancestor[w] = ancestor[ancestor[w]]
		}
		return label[v]
	}
	for w := int32(n - 1); w > 0; w-- {
		for _, v := range d.before(w) {
			semi[w] = min(semi[w], semi[eval(v)])
		}
		ancestor[w] = d.parent[w]
	}
	t.idom = slices.Repeat([]int32{none}, g.Nodes())
	for w := 1; w < n; w++ {
		for idom[w] > semi[w] {
			idom[w] = idom[idom[w]]
		}
		t.idom[d.order[w]] = d.order[idom[w]]
	}
	t.sum()
	return t
}

// sum adds up the blocks below each node.
func (t *Tree) sum() {
	t.bytes, t.blocks = make([]uint64, t.g.Nodes()), make([]int32, t.g.Nodes())
	for i := len(t.order) - 1; i >= 0; i-- {
		v := t.order[i]
		if b, ok := t.g.block(int(v)); ok {
			t.blocks[v]++
			t.bytes[v] = plus(t.bytes[v], t.g.Heap.Blocks[b].Size)
		}
		if i > 0 {
			up := t.idom[v]
			t.blocks[up] += t.blocks[v]
			t.bytes[up] = plus(t.bytes[up], t.bytes[v])
		}
	}
}

// plus returns a + b, saturated at 2^64-1.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// Retained returns the blocks that are reachable only through a node, with its own.
func (t *Tree) Retained(node int) (bytes uint64, blocks int) {
	return t.bytes[node], int(t.blocks[node])
}

// dfs is a depth-first numbering of the nodes that the program reaches.
type dfs struct {
	order  []int32  // node by number
	parent []int32  // by number
	start  []uint32 // of the predecessors of each number, in from
	from   []int32  // numbers
}

func newDFS(g *Graph) *dfs {
	d := &dfs{}
	number := slices.Repeat([]int32{none}, g.Nodes())
	type visit struct {
		node int32
		edge int
	}
	number[0] = 0
	d.order, d.parent = []int32{0}, []int32{none}
	for stack := []visit{{0, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		edges := g.edges(int(top.node))
		if top.edge == len(edges) {
			stack = stack[:len(stack)-1]
			continue
		}
		w := edges[top.edge]
		top.edge++
		if number[w] == none {
			number[w] = int32(len(d.order))
			d.order = append(d.order, w)
			d.parent = append(d.parent, number[top.node])
			stack = append(stack, visit{w, 0})
		}
	}
	d.invert(g, number)
	return d
}

// invert sets the predecessors.
func (d *dfs) invert(g *Graph, number []int32) {
	d.start = make([]uint32, len(d.order)+1)
	for _, v := range d.order {
		for _, w := range g.edges(int(v)) {
			d.start[number[w]+1]++
		}
	}
	for i := range d.order {
		d.start[i+1] += d.start[i]
	}
	d.from = make([]int32, d.start[len(d.order)])
	next := slices.Clone(d.start)
	for i, v := range d.order {
		for _, w := range g.edges(int(v)) {
			n := number[w]
			d.from[next[n]] = int32(i)
			next[n]++
		}
	}
}

func (d *dfs) before(w int32) []int32 { return d.from[d.start[w]:d.start[w+1]] }
