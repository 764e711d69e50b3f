//go:build linux

package recorder

import (
	"iter"
	"math/bits"
)

// pathID is a call path: the index of its innermost frame in a tree. The first two have
// no frame.
type pathID uint32

const (
	noFrames pathID = iota // paths begin here
	cutOuter               // and here those whose outer frames were not captured
	roots
)

// maxDepth is the largest number of frames of a call path.
const maxDepth = 1024

// frame is a return address: an offset in the code of the boot, or an address outside.
type frame struct {
	x       uint64
	outside bool
}

// node is a call path: its parent's, and one more frame. A parent comes before its
// children.
type node struct {
	x       uint64
	parent  pathID
	depth   uint16
	outside bool
}

// tree holds each call path once.
type tree struct {
	nodes []node
	table []pathID // by hash of parent and frame; 0 is empty
	shift uint
}

func (t *tree) reset() {
	*t = tree{nodes: make([]node, roots, 1<<10), table: make([]pathID, 1<<11), shift: 64 - 11}
}

// child returns the path of a parent and one frame further in.
func (t *tree) child(parent pathID, f frame) pathID {
	mask := len(t.table) - 1
	i := int((f.x ^ uint64(parent)<<29) * 0x9e3779b97f4a7c15 >> t.shift)
	for ; t.table[i] != 0; i = (i + 1) & mask {
		if n := &t.nodes[t.table[i]]; n.parent == parent && n.x == f.x && n.outside == f.outside {
			return t.table[i]
		}
	}
	id := pathID(len(t.nodes))
	t.table[i] = id
	t.nodes = append(t.nodes, node{f.x, parent, t.nodes[parent].depth + 1, f.outside})
	if len(t.nodes) > len(t.table)/2 {
		t.grow()
	}
	return id
}

func (t *tree) grow() {
	t.table = make([]pathID, 2*len(t.table))
	t.shift = uint(64 - bits.TrailingZeros(uint(len(t.table))))
	mask := len(t.table) - 1
	for id := roots; id < pathID(len(t.nodes)); id++ {
		n := &t.nodes[id]
		i := int((n.x ^ uint64(n.parent)<<29) * 0x9e3779b97f4a7c15 >> t.shift)
		for t.table[i] != 0 {
			i = (i + 1) & mask
		}
		t.table[i] = id
	}
}

func (t *tree) depth(id pathID) int { return int(t.nodes[id].depth) }

// outer returns the outer part of a path that has a number of frames.
func (t *tree) outer(id pathID, frames int) pathID {
	for t.depth(id) > frames {
		id = t.nodes[id].parent
	}
	return id
}

// frames returns the frames of a path, the outermost first, in memory of dst. cut reports
// whether its outer frames were not captured.
func (t *tree) frames(dst []frame, id pathID) (_ []frame, cut bool) {
	n := t.depth(id)
	dst = append(dst[:0], make([]frame, n)...)
	for ; n > 0; n-- {
		dst[n-1] = frame{t.nodes[id].x, t.nodes[id].outside}
		id = t.nodes[id].parent
	}
	return dst, id == cutOuter
}

// sorted yields the paths that are wanted, with each path next to those that share its
// outer frames.
func (t *tree) sorted(wanted func(pathID) bool) iter.Seq[pathID] {
	return func(yield func(pathID) bool) {
		// A node is on the way to a wanted one if one of its children is.
		const none = 0
		first := make([]pathID, len(t.nodes)) // child of a node
		next := make([]pathID, len(t.nodes))  // sibling
		for id := pathID(len(t.nodes) - 1); id >= roots; id-- {
			if first[id] != none || wanted(id) {
				parent := t.nodes[id].parent
				next[id], first[parent] = first[parent], id
			}
		}
		for root := range roots {
			if wanted(root) && !yield(root) {
				return
			}
			for id := first[root]; id != none; {
				if wanted(id) && !yield(id) {
					return
				}
				if first[id] != none {
					id = first[id]
					continue
				}
				for id >= roots && next[id] == none {
					id = t.nodes[id].parent
				}
				if id < roots {
					break
				}
				id = next[id]
			}
		}
	}
}
