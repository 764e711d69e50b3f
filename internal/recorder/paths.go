//go:build linux

package recorder

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// pathID identifies a call path by the index of its innermost node in a tree. The first two
// paths have no frame.
type pathID uint32

const (
	noFrames = pathID(callpath.Whole) // root of complete paths
	cutOuter = pathID(callpath.Cut)   // root of paths whose outer frames were not captured
	roots    = cutOuter + 1
)

// maxDepth is the largest number of frames of a call path.
const maxDepth = callpath.MaxDepth

// node is a call path: the path of its parent plus one step. A parent has a smaller index
// than its children.
type node struct {
	step
	parent pathID
	depth  uint16 // frames
	name   uint32
}

// step is the difference between a path and its parent.
type step struct {
	x    uint64
	kind stepKind
}

type stepKind uint8

const (
	inCode  stepKind = iota // a frame: an offset in the code of the boot
	outside                 // a frame outside of the code: its address
	ofSize                  // no frame: x is the size of sampled blocks in bytes
)

// tree is a set of call paths.
type tree struct {
	nodes []node
	table []pathID // by hash of parent and frame; 0 is empty
	shift uint
}

func (t *tree) reset() {
	*t = tree{nodes: make([]node, roots, 1<<10), table: make([]pathID, 1<<11), shift: 64 - 11}
	t.nodes[cutOuter].name = uint32(callpath.Cut)
}

func (t *tree) clone() tree {
	return tree{slices.Clone(t.nodes), slices.Clone(t.table), t.shift}
}

func (t *tree) home(parent pathID, x uint64) int {
	return int((x ^ uint64(parent)<<29) * 0x9e3779b97f4a7c15 >> t.shift)
}

// child returns the path of a parent plus one step.
func (t *tree) child(parent pathID, s step) pathID {
	mask := len(t.table) - 1
	i := t.home(parent, s.x)
	for ; t.table[i] != 0; i = (i + 1) & mask {
		if n := &t.nodes[t.table[i]]; n.parent == parent && n.step == s {
			return t.table[i]
		}
	}
	id := pathID(len(t.nodes))
	t.table[i] = id
	n := node{s, parent, t.nodes[parent].depth, t.nodes[parent].name}
	if s.kind != ofSize {
		n.depth++
		p := callpath.Path{Base: callpath.Named, Outer: n.name, Frames: []callpath.Frame{s.frame()}}
		n.name = p.Name()
	}
	t.nodes = append(t.nodes, n)
	if len(t.nodes) > len(t.table)/2 {
		t.grow()
	}
	return id
}

func (s step) frame() callpath.Frame { return callpath.Frame{Value: s.x, Escaped: s.kind == outside} }

func (t *tree) grow() { t.index(2 * len(t.table)) }

// index rebuilds the table with size entries, a power of two.
func (t *tree) index(size int) {
	t.table = make([]pathID, size)
	t.shift = uint(64 - bits.TrailingZeros(uint(len(t.table))))
	mask := len(t.table) - 1
	for id := roots; id < pathID(len(t.nodes)); id++ {
		i := t.home(t.nodes[id].parent, t.nodes[id].x)
		for t.table[i] != 0 {
			i = (i + 1) & mask
		}
		t.table[i] = id
	}
}

func (t *tree) depth(id pathID) int { return int(t.nodes[id].depth) }

// outer returns the outermost frames of a path, as a path.
func (t *tree) outer(id pathID, frames int) pathID {
	for t.depth(id) > frames {
		id = t.nodes[id].parent
	}
	return id
}

// path sets p to a path of the tree. It reuses the memory of p.
func (t *tree) path(p *callpath.Path, id pathID) {
	n := t.depth(id)
	if cap(p.Frames) < n {
		p.Frames = make([]callpath.Frame, maxDepth)
	}
	p.Frames = p.Frames[:n]
	for ; id >= roots; id = t.nodes[id].parent {
		if s := t.nodes[id].step; s.kind != ofSize {
			n--
			p.Frames[n] = s.frame()
		}
	}
	p.Base = callpath.Base(id) // noFrames, cutOuter
}

// prune removes all paths except the wanted ones and their outer parts. It returns the new ID
// of each path, 0 for a removed path. wanted is indexed by path; prune changes it.
func (t *tree) prune(wanted []bool) (moved []pathID) {
	for id := pathID(len(t.nodes) - 1); id >= roots; id-- {
		if wanted[id] {
			wanted[t.nodes[id].parent] = true
		}
	}
	moved = make([]pathID, len(t.nodes))
	nodes := make([]node, roots, 1<<10)
	copy(nodes, t.nodes)
	for id := range roots {
		moved[id] = id
	}
	for id := roots; id < pathID(len(t.nodes)); id++ {
		if wanted[id] {
			n := t.nodes[id]
			n.parent = moved[n.parent]
			moved[id] = pathID(len(nodes))
			nodes = append(nodes, n)
		}
	}
	t.nodes = nodes
	t.index(1 << max(11, bits.Len(uint(2*len(nodes)))))
	return moved
}

// sorted yields the wanted paths. Paths with the same outer frames are adjacent.
func (t *tree) sorted(wanted func(pathID) bool) iter.Seq[pathID] {
	return func(yield func(pathID) bool) {
		const none = 0
		// A node is visited if it is wanted, or one of its children is visited.
		first := make([]pathID, len(t.nodes)) // child of a node
		next := make([]pathID, len(t.nodes))  // sibling
		for id := pathID(len(t.nodes) - 1); id >= roots; id-- {
			if first[id] != none || wanted(id) {
				parent := t.nodes[id].parent
				next[id], first[parent] = first[parent], id
			}
		}
		// after returns the node after a visited one, none after the last.
		after := func(id pathID) pathID {
			if first[id] != none {
				return first[id]
			}
			for id >= roots && next[id] == none {
				id = t.nodes[id].parent
			}
			if id < roots {
				return none
			}
			return next[id]
		}
		for root := range roots {
			if wanted(root) && !yield(root) {
				return
			}
			for id := first[root]; id != none; id = after(id) {
				if wanted(id) && !yield(id) {
					return
				}
			}
		}
	}
}
