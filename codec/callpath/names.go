package callpath

import (
	"hash/maphash"
	"slices"
)

// Names finds call paths by their names, within a boot. It keeps the paths that are added
// in one tree, in which paths share their outer frames. A later path resolves earlier uses
// of its name. The zero Names is ready for use. (BT-NAME-2)
type Names struct {
	nodes    []node
	children table
	roots    map[uint32]ID // by name of the outer part
	named    map[uint32]ID // the path that a name stands for, or ambiguous

	// Results of Resolve since named last changed for the name of a root; nil if there are none.
	outer  map[ID]ID // by root
	grafts map[ID]ID // by path of a multiple of graftStep frames
}

// ID identifies a path of a Names. Paths with the same base and frames have the same ID.
// If a path is written differently, such as by name, [Names.Resolve] returns the same ID,
// as far as names are known.
type ID uint32

// node is a path: the path of its parent and one more frame. A root has no frame.
type node struct {
	value   uint64 // of the frame
	parent  ID
	root    ID
	name    uint32
	depth   uint16 // frames from the root on
	escaped bool
	told    bool // by a line, not only as the result of Resolve
}

func (x *node) frame() Frame { return Frame{x.value, x.escaped} }

// IDs of the roots without frames, and the value in Names.named of a name of two paths.
const (
	wholeRoot ID = 0
	cutRoot   ID = 1
	ambiguous ID = 1<<32 - 1
)

func (n *Names) init() {
	if n.nodes != nil {
		return
	}
	n.nodes = []node{{}, {parent: cutRoot, root: cutRoot, name: uint32(Cut)}}
	n.roots = map[uint32]ID{uint32(Whole): wholeRoot, uint32(Cut): cutRoot}
	n.named = map[uint32]ID{}
}

// Add returns the ID of a path, and records the names of the path and of its outer
// parts. It does not retain p. (BT-NAME-2)
func (n *Names) Add(p *Path) ID {
	n.init()
	id := n.rootOf(p)
	for _, f := range p.Frames {
		id = n.Extend(id, f)
	}
	return id
}

// Extend returns the ID of the path id and one more frame, and records its name, as Add does.
func (n *Names) Extend(id ID, f Frame) ID {
	n.init()
	if id = n.child(id, f); !n.nodes[id].told {
		n.nodes[id].told = true
		n.tell(id)
	}
	return id
}

// rootOf returns the ID of the path p without its frames.
func (n *Names) rootOf(p *Path) ID {
	name := p.root()
	id, ok := n.roots[name]
	if !ok {
		id = ID(len(n.nodes))
		n.roots[name] = id
		n.nodes = append(n.nodes, node{parent: id, root: id, name: name})
	}
	return id
}

// child returns the path that consists of a parent and one more frame.
func (n *Names) child(parent ID, f Frame) ID {
	at := n.children.find(n.nodes, parent, f)
	if id := n.children.slots[at]; id != 0 {
		return id
	}
	id := ID(len(n.nodes))
	p := &n.nodes[parent]
	n.nodes = append(n.nodes, node{value: f.Value, escaped: f.Escaped, parent: parent, root: p.root, name: f.mix(p.name), depth: p.depth + 1})
	n.children.insert(n.nodes, at, id)
	return id
}

// tell records that a line told a path. A path that begins with its own name tells nothing.
// Of paths that do not differ, the name stands for the whole one, or else for the one with
// the most frames. (BT-NAME-2)
func (n *Names) tell(id ID) {
	x := &n.nodes[id]
	if !n.known(id) && n.nodes[x.root].name == x.name {
		return
	}
	best, ok := n.named[x.name]
	switch {
	case !ok:
		n.named[x.name] = id
	case best == ambiguous:
		return
	case n.differ(best, id):
		n.named[x.name] = ambiguous
	case n.known(id) || !n.known(best) && x.depth > n.nodes[best].depth:
		n.named[x.name] = id
	default:
		return
	}
	if _, used := n.roots[x.name]; used {
		n.outer, n.grafts = nil, nil
	}
}

// differ reports whether two paths with one name are different paths: neither has the other's
// frames as its innermost frames, or a path whose frames are all known is the shorter one.
// Paths with one name and the same frames begin alike, because mix maps different names of
// outer parts to different names. (BT-NAME-2)
func (n *Names) differ(a, b ID) bool {
	for a != b {
		x, y := &n.nodes[a], &n.nodes[b]
		switch {
		case x.depth == 0:
			return n.known(a)
		case y.depth == 0:
			return n.known(b)
		case x.value != y.value || x.escaped != y.escaped:
			return true
		}
		a, b = x.parent, y.parent
	}
	return false
}

// known reports whether all captured frames of a path are known.
func (n *Names) known(id ID) bool { return n.nodes[id].root <= cutRoot }

// Name returns the name of a path. (BT-NAME-1)
func (n *Names) Name(id ID) uint32 { n.init(); return n.nodes[id].name }

// Resolve replaces the name of the outer part of a path by its frames, if the name is known
// by now, and returns the ID of the result. Equal paths then have equal IDs. The result may
// change as paths are added. If the result had more than MaxDepth frames, as with names that
// lead to each other, Resolve returns id. (BT-NAME-2)
func (n *Names) Resolve(id ID) ID {
	n.init()
	if n.known(id) {
		return id
	}
	if n.outer == nil {
		n.outer, n.grafts = map[ID]ID{}, map[ID]ID{}
	}
	root := n.nodes[id].root
	outer, ok := n.outer[root]
	if !ok {
		outer = n.resolveRoot(root)
		n.outer[root] = outer
	}
	if outer == root || int(n.nodes[outer].depth)+int(n.nodes[id].depth) > MaxDepth {
		return id
	}
	return n.graft(outer, id)
}

// resolveRoot is Resolve for the root of a path.
func (n *Names) resolveRoot(root ID) ID {
	outer, depth := root, 0
	var chain []ID
	for !n.known(outer) {
		next, ok := n.named[n.nodes[n.nodes[outer].root].name]
		if !ok || next == ambiguous {
			break
		}
		if depth += int(n.nodes[next].depth); depth > MaxDepth {
			return root
		}
		chain = append(chain, outer)
		outer = next
	}
	var frames []Frame
	for _, part := range slices.Backward(chain) {
		frames = n.frames(frames[:0], part)
		for _, f := range frames {
			outer = n.child(outer, f)
		}
	}
	return outer
}

// graftStep is the number of frames after which the result of graft is kept.
const graftStep = 16

// graft returns the path outer, to which the root of id resolves, followed by the frames of id.
func (n *Names) graft(outer, id ID) ID {
	var below []ID // innermost first
	for ; n.nodes[id].depth > 0; id = n.nodes[id].parent {
		if n.nodes[id].depth%graftStep == 0 {
			if known, ok := n.grafts[id]; ok {
				outer = known
				break
			}
		}
		below = append(below, id)
	}
	for _, id := range slices.Backward(below) {
		outer = n.child(outer, n.nodes[id].frame())
		if n.nodes[id].depth%graftStep == 0 {
			n.grafts[id] = outer
		}
	}
	return outer
}

// frames appends the frames of a path from its root on, outermost first.
func (n *Names) frames(dst []Frame, id ID) []Frame {
	start := len(dst)
	for ; n.nodes[id].depth > 0; id = n.nodes[id].parent {
		dst = append(dst, n.nodes[id].frame())
	}
	slices.Reverse(dst[start:])
	return dst
}

// Path returns the resolved path of id; see [Names.Resolve]. It uses buf for the frames if
// they fit. The base is Whole or Cut, or Named if the name of the outer part is not known.
func (n *Names) Path(id ID, buf []Frame) Path {
	id = n.Resolve(id)
	p := Path{Frames: n.frames(buf[:0], id)}
	switch root := n.nodes[id].root; root {
	case wholeRoot:
	case cutRoot:
		p.Base = Cut
	default:
		p.Base, p.Outer = Named, n.nodes[root].name
	}
	return p
}

// table finds nodes by parent and frame. It takes 4 bytes per slot, a map about 45 per node.
// The seed keeps a log from choosing frames that collide.
type table struct {
	seed  maphash.Seed
	slots []ID // 0 if free; the length is a power of 2
	used  int
}

type edge struct {
	parent ID
	frame  Frame
}

// find returns the slot of a child, or a free slot if there is no such child.
func (t *table) find(nodes []node, parent ID, f Frame) int {
	if t.slots == nil {
		t.seed, t.slots = maphash.MakeSeed(), make([]ID, 16)
	}
	mask := len(t.slots) - 1
	at := int(maphash.Comparable(t.seed, edge{parent, f})) & mask
	for id := t.slots[at]; id != 0; id = t.slots[at] {
		if x := &nodes[id]; x.parent == parent && x.value == f.Value && x.escaped == f.Escaped {
			break
		}
		at = (at + 1) & mask
	}
	return at
}

// insert puts a node into a free slot that find returned.
func (t *table) insert(nodes []node, at int, id ID) {
	t.slots[at] = id
	if t.used++; 4*t.used <= 3*len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]ID, 2*len(old))
	for _, id := range old {
		if id != 0 {
			t.slots[t.find(nodes, nodes[id].parent, nodes[id].frame())] = id
		}
	}
}
