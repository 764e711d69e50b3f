package export

import (
	"iter"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// tree numbers stacks, which are lists of numbers, outermost first. Stacks share the nodes of what
// they have in common. Node 0 is the root. The number of a parent is lower than those of its children.
type tree struct {
	nodes []treeNode
	index map[treeNode]uint32
}

type treeNode struct{ parent, value uint32 }

func newTree() *tree { return &tree{nodes: make([]treeNode, 1), index: map[treeNode]uint32{}} }

// below returns the node of a value below another node.
func (t *tree) below(parent, value uint32) uint32 {
	n := treeNode{parent, value}
	id, known := t.index[n]
	if !known {
		id = uint32(len(t.nodes))
		t.nodes = append(t.nodes, n)
		t.index[n] = id
	}
	return id
}

// append appends the values of a node and its parents, innermost first.
func (t *tree) append(dst []uint32, node uint32) []uint32 {
	for ; node != 0; node = t.nodes[node].parent {
		dst = append(dst, t.nodes[node].value)
	}
	return dst
}

// ordered yields the nodes by their stacks: by the outermost value first, and a stack before those
// that continue it.
func (t *tree) ordered() iter.Seq[uint32] {
	children := make([][]uint32, len(t.nodes))
	for i, n := range t.nodes[1:] {
		children[n.parent] = append(children[n.parent], uint32(i+1))
	}
	var visit func(node uint32, yield func(uint32) bool) bool
	visit = func(node uint32, yield func(uint32) bool) bool {
		if !yield(node) {
			return false
		}
		slices.SortFunc(children[node], func(a, b uint32) int { return int(t.nodes[a].value) - int(t.nodes[b].value) })
		for _, c := range children[node] {
			if !visit(c, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func(uint32) bool) { visit(0, yield) }
}

// siteTree has the call sites of the rows of a profile. It follows what rows have in common once.
type siteTree struct {
	*tree
	p     *profile.Profile
	sites []profile.Site
	index map[profile.Site]uint32
	known map[uint32]uint32 // nodes by the nodes of the profile
}

func newSiteTree(p *profile.Profile) *siteTree {
	return &siteTree{tree: newTree(), p: p, index: map[profile.Site]uint32{}, known: map[uint32]uint32{0: 0}}
}

// site returns the number of a call site.
func (t *siteTree) site(s profile.Site) uint32 {
	n, known := t.index[s]
	if !known {
		n = uint32(len(t.sites))
		t.sites = append(t.sites, s)
		t.index[s] = n
	}
	return n
}

// row returns the node of a row's stack.
func (t *siteTree) row(r profile.Row) uint32 {
	at, inner := r.Place()
	node := t.node(at)
	for _, s := range slices.Backward(inner) {
		node = t.below(node, t.site(s))
	}
	return node
}

// node returns the node that has the call sites of a node of the profile.
func (t *siteTree) node(at uint32) uint32 {
	type step struct {
		at   uint32
		site profile.Site
	}
	var steps []step
	node, known := t.known[at]
	for !known {
		outer, site := t.p.Caller(at)
		steps = append(steps, step{at, site})
		at = outer
		node, known = t.known[at]
	}
	for _, s := range slices.Backward(steps) {
		node = t.below(node, t.site(s.site))
		t.known[s.at] = node
	}
	return node
}
