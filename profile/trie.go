package profile

import (
	"cmp"
	"iter"
	"slices"
)

// trie is call paths as a tree. It holds no nodes: a node is a range of branches, the
// call paths that begin with the same elements.
type trie struct {
	branches []branch
	paths    array[triePath]
	elements array[SiteID] // of all paths, those at the root first
}

// branch is the index of a path in a trie and, since the last split, 1 + its element
// there, 0 if it has none.
type branch struct{ element, index uint32 }

// triePath is a call path, and where its elements begin.
type triePath struct {
	path  uint32
	start int
}

// add adds a call path.
func (t *trie) add(path uint32, elements []SiteID) {
	t.branches = append(t.branches, branch{index: uint32(t.paths.n)})
	t.paths.push(triePath{path, t.elements.n})
	for _, e := range elements {
		t.elements.push(e)
	}
}

// path returns the call path of a branch.
func (t *trie) path(b branch) uint32 { return t.paths.at(int(b.index)).path }

// split orders a node's branches by their element at depth: those that have none first.
func (t *trie) split(node []branch, depth int) {
	for i := range node {
		index := int(node[i].index)
		at, end := t.paths.at(index).start+depth, t.elements.n
		if index+1 < t.paths.n {
			end = t.paths.at(index + 1).start
		}
		node[i].element = 0
		if at < end {
			node[i].element = uint32(*t.elements.at(at)) + 1
		}
	}
	if len(node) > 1 {
		slices.SortFunc(node, func(a, b branch) int {
			return cmp.Or(cmp.Compare(a.element, b.element), cmp.Compare(a.index, b.index))
		})
	}
}

// children returns the nodes below a node that was split: by element, the branches.
func children(node []branch) iter.Seq2[SiteID, []branch] {
	return func(yield func(SiteID, []branch) bool) {
		for from, to := 0, 0; from < len(node); from = to {
			element := node[from].element
			for to = from; to < len(node) && node[to].element == element; to++ {
			}
			if element != 0 && !yield(SiteID(element-1), node[from:to:to]) {
				return
			}
		}
	}
}

// order orders branches as a walk through the tree meets them: by their elements from
// the root on, a path before those that continue it.
func (t *trie) order(node []branch, depth int) {
	t.split(node, depth)
	for _, child := range children(node) {
		if len(child) > 1 {
			t.order(child, depth+1)
		}
	}
}
