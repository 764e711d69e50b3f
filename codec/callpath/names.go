package callpath

import "slices"

// Names finds call paths by their names, within a boot. It keeps all paths that are added,
// and knows a name if exactly one added path, or outer part of a path, has that name.
// A later definition resolves earlier uses. The zero Names is ready for use.
// (BT-NAME-2)
type Names struct {
	nodes    []node
	children map[edge]ID
	roots    map[uint32]ID // by name of the outer part
	named    map[uint32]ID // first candidate of a name; node.next leads to the others
}

// ID identifies a path of a Names. Lines that write a path with the same base and frames get
// the same ID. If they write it differently, such as by name, [Names.Resolve] returns the
// same ID, as far as names are known.
type ID uint32

// node is a path: the path of its parent and one more frame. A root has no frame.
type node struct {
	parent ID
	root   ID
	frame  Frame
	name   uint32
	depth  uint16 // frames from the root on
	next   ID     // next candidate of the same name, 0 if none
}

type edge struct {
	parent ID
	frame  Frame
}

// IDs of the roots without frames.
const (
	wholeRoot ID = 0
	cutRoot   ID = 1
)

// maxCandidates limits the number of paths that are compared for one name.
const maxCandidates = 16

func (n *Names) init() {
	if n.nodes != nil {
		return
	}
	*n = Names{
		nodes:    []node{{}, {parent: cutRoot, root: cutRoot, name: uint32(Cut)}},
		children: map[edge]ID{},
		roots:    map[uint32]ID{},
		named:    map[uint32]ID{uint32(Whole): wholeRoot, uint32(Cut): cutRoot},
	}
}

// Add returns the ID of a path, and records the names of the path and of its outer
// parts. It does not retain p. (BT-NAME-2)
func (n *Names) Add(p *Path) ID {
	n.init()
	id := ID(p.Base)
	if p.Base == Named {
		var ok bool
		if id, ok = n.roots[p.Outer]; !ok {
			id = ID(len(n.nodes))
			n.roots[p.Outer] = id
			n.nodes = append(n.nodes, node{parent: id, root: id, name: p.Outer})
		}
	}
	for _, f := range p.Frames {
		id = n.child(id, f)
	}
	return id
}

// Extend returns the ID of a path and one more frame, as Add does.
func (n *Names) Extend(id ID, f Frame) ID { return n.child(id, f) }

// child returns the path that consists of a parent and one more frame.
func (n *Names) child(parent ID, f Frame) ID {
	e := edge{parent, f}
	if id, ok := n.children[e]; ok {
		return id
	}
	id := ID(len(n.nodes))
	p := &n.nodes[parent]
	n.nodes = append(n.nodes, node{parent: parent, root: p.root, frame: f, name: f.mix(p.name), depth: p.depth + 1})
	n.children[e] = id
	n.candidate(id)
	return id
}

// candidate adds a path to the list of paths with its name.
func (n *Names) candidate(id ID) {
	name := n.nodes[id].name
	first, ok := n.named[name]
	if !ok {
		n.named[name] = id
		return
	}
	last, count, known := first, 1, 0
	for c := first; ; c = n.nodes[c].next {
		if n.known(c) {
			known++
		}
		last = c
		if n.nodes[c].next == 0 {
			break
		}
		count++
	}
	// Two known paths make the name ambiguous; a third one changes nothing.
	if n.known(id) && known < 2 || count < maxCandidates {
		n.nodes[last].next = id
	}
}

// known reports whether all captured frames of a path are known.
func (n *Names) known(id ID) bool { return n.nodes[id].root <= cutRoot }

// Name returns the name of a path. (BT-NAME-1)
func (n *Names) Name(id ID) uint32 { n.init(); return n.nodes[id].name }

// Resolve replaces the name of the outer part of a path by its frames, if the name is known
// by now, and returns the ID of the result. Equal paths then have equal IDs. The result may
// change as paths are added. (BT-NAME-2)
func (n *Names) Resolve(id ID) ID {
	n.init()
	if n.known(id) {
		return id
	}
	chain, depth := []ID{id}, int(n.nodes[id].depth)
	outer := id
	for !n.known(outer) {
		next, ok := n.find(n.nodes[n.nodes[outer].root].name)
		if !ok {
			break
		}
		if depth += int(n.nodes[next].depth); depth > MaxDepth {
			return id // too deep, or names that refer to each other
		}
		outer = next
		chain = append(chain, outer)
	}
	for i := len(chain) - 2; i >= 0; i-- {
		outer = n.graft(outer, chain[i])
	}
	return outer
}

// graft returns the path outer, followed by the frames of id.
func (n *Names) graft(outer, id ID) ID {
	for _, f := range n.frames(nil, id) {
		outer = n.child(outer, f)
	}
	return outer
}

// frames appends the frames of a path from its root on, outermost first.
func (n *Names) frames(dst []Frame, id ID) []Frame {
	start := len(dst)
	for ; n.nodes[id].depth > 0; id = n.nodes[id].parent {
		dst = append(dst, n.nodes[id].frame)
	}
	slices.Reverse(dst[start:])
	return dst
}

// find returns the only path with a name: a known path, or else the path with the most
// frames. ok is false if paths with the name differ. Two paths with one name are equal if
// their innermost frames are equal, up to the length of the shorter path, because mix maps
// different names of outer parts to different names. (BT-NAME-2)
func (n *Names) find(name uint32) (best ID, ok bool) {
	first, ok := n.named[name]
	if !ok {
		return 0, false
	}
	best = first
	for c := n.nodes[first].next; c != 0; c = n.nodes[c].next {
		if !n.same(best, c) {
			return 0, false
		}
		if n.known(c) || !n.known(best) && n.nodes[c].depth > n.nodes[best].depth {
			best = c
		}
	}
	return best, true
}

// same reports whether two paths with one name can be the same path.
func (n *Names) same(a, b ID) bool {
	for a != b {
		x, y := &n.nodes[a], &n.nodes[b]
		switch {
		case x.depth == 0 && y.depth == 0:
			return !n.known(a) || !n.known(b)
		case x.depth == 0:
			return !n.known(a)
		case y.depth == 0:
			return !n.known(b)
		case x.frame != y.frame:
			return false
		}
		a, b = x.parent, y.parent
	}
	return true
}

// Path returns the resolved path of id; see [Names.Resolve]. It uses buf for the frames if
// they fit. The base is Whole or Cut, or Named if the name of the outer part is not known.
func (n *Names) Path(id ID, buf []Frame) Path {
	id = n.Resolve(id)
	root := &n.nodes[n.nodes[id].root]
	p := Path{Frames: n.frames(buf[:0], id)}
	switch n.nodes[id].root {
	case wholeRoot:
	case cutRoot:
		p.Base = Cut
	default:
		p.Base, p.Outer = Named, root.name
	}
	return p
}
