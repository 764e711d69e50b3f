//go:build linux

package record

import (
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
	sum
	x       uint64 // with kind, the step
	parent  pathID
	name    uint32
	depth   uint16 // frames
	kind    stepKind
	defined bool // the recording defines the name
}

// step is the difference between a path and its parent.
type step struct {
	x    uint64
	kind stepKind
}

func (n *node) step() step { return step{n.x, n.kind} }

type stepKind uint8

const (
	inCode  stepKind = iota // a frame: an offset in the code of the boot
	outside                 // a frame outside of the code: its address
	ofSize                  // no frame: x is the size of sampled blocks in bytes
)

// tree is a set of call paths. Its nodes are in chunks, so that they are not copied as the tree
// grows.
type tree struct {
	chunks []*[chunkNodes]node
	n      pathID   // number of nodes
	table  []pathID // by hash of parent and frame; 0 is empty
	shift  uint
}

const chunkNodes = 1 << 10

func (t *tree) reset() {
	*t = tree{chunks: []*[chunkNodes]node{{}}, n: roots, table: make([]pathID, 1<<11), shift: 64 - 11}
	t.node(cutOuter).name = uint32(callpath.Cut)
}

func (t *tree) node(id pathID) *node { return &t.chunks[id/chunkNodes][id%chunkNodes] }

// add adds a node and returns its ID.
func (t *tree) add(n node) pathID {
	id := t.n
	if id%chunkNodes == 0 {
		t.chunks = append(t.chunks, new([chunkNodes]node))
	}
	*t.node(id) = n
	t.n++
	return id
}

// find returns the entry of the table for a parent plus one step. The entry is 0 if there is
// no such path.
func (t *tree) find(parent pathID, s step) *pathID {
	mask := len(t.table) - 1
	i := int((s.x ^ uint64(parent)<<29) * 0x9e3779b97f4a7c15 >> t.shift)
	for ; t.table[i] != 0; i = (i + 1) & mask {
		if n := t.node(t.table[i]); n.parent == parent && n.x == s.x && n.kind == s.kind {
			break
		}
	}
	return &t.table[i]
}

// child returns the path of a parent plus one step.
func (t *tree) child(parent pathID, s step) pathID {
	entry := t.find(parent, s)
	if *entry != 0 {
		return *entry
	}
	outer := t.node(parent)
	n := node{x: s.x, kind: s.kind, parent: parent, depth: outer.depth, name: outer.name}
	if s.kind != ofSize {
		n.depth++
		p := callpath.Path{Base: callpath.Named, Outer: n.name, Frames: []callpath.Frame{s.frame()}}
		n.name = p.Name()
	}
	id := t.add(n)
	*entry = id
	if int(t.n) > len(t.table)/2 {
		t.grow()
	}
	return id
}

func (s step) frame() callpath.Frame { return callpath.Frame{Value: s.x, Escaped: s.kind == outside} }

func (t *tree) grow() {
	t.table = make([]pathID, 2*len(t.table))
	t.shift--
	for id := roots; id < t.n; id++ {
		n := t.node(id)
		*t.find(n.parent, n.step()) = id
	}
}

func (t *tree) depth(id pathID) int { return int(t.node(id).depth) }

// outer returns the outermost frames of a path, as a path.
func (t *tree) outer(id pathID, frames int) pathID {
	for t.depth(id) > frames {
		id = t.node(id).parent
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
	for ; id >= roots; id = t.node(id).parent {
		if s := t.node(id).step(); s.kind != ofSize {
			n--
			p.Frames[n] = s.frame()
		}
	}
	p.Base = callpath.Base(id) // noFrames, cutOuter
}

// adopt adds a path of another tree, with its sums and its outer parts, and returns its ID.
// moved holds the IDs of the paths that were added before, by their ID in the other tree.
func (t *tree) adopt(from *tree, id pathID, moved []pathID) pathID {
	if id < roots {
		return id
	}
	if moved[id] == 0 {
		n := from.node(id)
		to := t.child(t.adopt(from, n.parent, moved), n.step())
		t.node(to).sum, t.node(to).defined = n.sum, n.defined
		moved[id] = to
	}
	return moved[id]
}

// sorted returns the wanted paths. Paths with the same outer frames are adjacent.
func (t *tree) sorted(wanted func(*sum) bool) []pathID {
	const none = 0
	// A node is visited if it is wanted, or one of its children is visited.
	first := make([]pathID, t.n) // child of a node
	next := make([]pathID, t.n)  // sibling
	for id := t.n - 1; id >= roots; id-- {
		if first[id] != none || wanted(&t.node(id).sum) {
			parent := t.node(id).parent
			next[id], first[parent] = first[parent], id
		}
	}
	var list []pathID
	var visit func(pathID)
	visit = func(id pathID) {
		if wanted(&t.node(id).sum) {
			list = append(list, id)
		}
		for child := first[id]; child != none; child = next[child] {
			visit(child)
		}
	}
	visit(noFrames)
	visit(cutOuter)
	return list
}
