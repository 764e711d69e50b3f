package callpath

import "slices"

// Names finds call paths by their names, within a boot. It keeps the paths that are added
// in one tree, in which paths share their outer frames. A later path resolves earlier uses
// of its name. The zero Names is ready for use. (BT-NAME-2)
type Names struct {
	nodes    list[node]
	children index         // of nodes, by parent and frame
	named    index         // of the paths that names stand for, by name
	roots    map[uint32]ID // by name of the outer part
	version  int           // how often a name of a root became known or unknown
	copied   int           // paths that Apply may copy: see copyPerChange

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
	told    telling
}

// telling is what the lines tell of a path.
type telling uint8

const (
	untold    telling = iota // it is only the result of Resolve
	told                     // a line has it
	ambiguous                // and its name is unknown, because a path that differs has this name, too
)

func (x *node) frame() Frame { return Frame{x.value, x.escaped} }

// IDs of the roots without frames.
const (
	wholeRoot ID = 0
	cutRoot   ID = 1
)

// node returns the path with an ID.
func (n *Names) node(id ID) *node { return n.nodes.at(int(id)) }

func (n *Names) init() {
	if n.nodes.n > 0 {
		return
	}
	n.nodes.push(node{})
	n.nodes.push(node{parent: cutRoot, root: cutRoot, name: uint32(Cut)})
	n.roots = map[uint32]ID{uint32(Whole): wholeRoot, uint32(Cut): cutRoot}
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
	id = n.child(id, f)
	if x := n.node(id); x.told == untold {
		x.told = told
		n.tell(id)
	}
	return id
}

// rootOf returns the ID of the path p without its frames.
func (n *Names) rootOf(p *Path) ID {
	name := p.root()
	id, ok := n.roots[name]
	if !ok {
		id = ID(n.nodes.n)
		n.roots[name] = id
		n.nodes.push(node{parent: id, root: id, name: name})
	}
	return id
}

// child returns the path that consists of a parent and one more frame.
func (n *Names) child(parent ID, f Frame) ID {
	known, ok := n.children.find(hashChild(parent, f), func(number uint32) bool {
		x := n.node(ID(number))
		return x.parent == parent && x.value == f.Value && x.escaped == f.Escaped
	})
	if ok {
		return ID(known)
	}
	id := ID(n.nodes.n)
	p := n.node(parent)
	n.nodes.push(node{value: f.Value, escaped: f.Escaped, parent: parent, root: p.root, name: f.mix(p.name), depth: p.depth + 1})
	n.children.add(uint32(id), func(number uint32) uint32 {
		x := n.node(ID(number))
		return hashChild(x.parent, x.frame())
	})
	return id
}

func hashChild(parent ID, f Frame) uint32 {
	at := uint64(parent) << 1
	if f.Escaped {
		at |= 1
	}
	return hash2(at, f.Value)
}

// tell records that a line told a path. A path that begins with its own name tells nothing.
// Of paths that do not differ, the name stands for the whole one, or else for the one with
// the most frames. (BT-NAME-2)
func (n *Names) tell(id ID) {
	x := n.node(id)
	if !n.known(id) && n.node(x.root).name == x.name {
		return
	}
	best, ok := n.find(x.name)
	switch {
	case !ok:
		n.named.add(uint32(id), func(number uint32) uint32 { return hash2(uint64(n.node(ID(number)).name), 0) })
	case n.node(best).told == ambiguous:
		return
	case n.differ(best, id):
		n.node(best).told = ambiguous
	case n.known(id) || !n.known(best) && x.depth > n.node(best).depth:
		n.named.replace(hash2(uint64(x.name), 0), uint32(best), uint32(id))
	default:
		return
	}
	if _, used := n.roots[x.name]; used {
		n.outer, n.grafts = nil, nil
		n.version++
	}
}

// find returns the path that a name stands for, which may be ambiguous; ok is false if no line has
// told it.
func (n *Names) find(name uint32) (id ID, ok bool) {
	number, ok := n.named.find(hash2(uint64(name), 0), func(number uint32) bool { return n.node(ID(number)).name == name })
	return ID(number), ok
}

// differ reports whether two paths with one name are different paths: neither has the other's
// frames as its innermost frames, or a path whose frames are all known is the shorter one.
// Paths with one name and the same frames begin alike, because mix maps different names of
// outer parts to different names. (BT-NAME-2)
func (n *Names) differ(a, b ID) bool {
	for a != b {
		x, y := n.node(a), n.node(b)
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
func (n *Names) known(id ID) bool { return n.node(id).root <= cutRoot }

// Name returns the name of a path. (BT-NAME-1)
func (n *Names) Name(id ID) uint32 { n.init(); return n.node(id).name }

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
	root := n.node(id).root
	outer, ok := n.outer[root]
	if !ok {
		outer = n.resolveRoot(root)
		n.outer[root] = outer
	}
	if outer == root || int(n.node(outer).depth)+int(n.node(id).depth) > MaxDepth {
		return id
	}
	return n.graft(outer, id)
}

// resolveRoot is Resolve for the root of a path.
func (n *Names) resolveRoot(root ID) ID {
	outer, depth := root, 0
	var chain []ID
	for !n.known(outer) {
		next, ok := n.find(n.node(n.node(outer).root).name)
		if !ok || n.node(next).told == ambiguous {
			break
		}
		if depth += int(n.node(next).depth); depth > MaxDepth {
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
	for ; n.node(id).depth > 0; id = n.node(id).parent {
		if n.node(id).depth%graftStep == 0 {
			if known, ok := n.grafts[id]; ok {
				outer = known
				break
			}
		}
		below = append(below, id)
	}
	for _, id := range slices.Backward(below) {
		outer = n.child(outer, n.node(id).frame())
		if n.node(id).depth%graftStep == 0 {
			n.grafts[id] = outer
		}
	}
	return outer
}

// frames appends the frames of a path from its root on, outermost first.
func (n *Names) frames(dst []Frame, id ID) []Frame {
	start := len(dst)
	for ; n.node(id).depth > 0; id = n.node(id).parent {
		dst = append(dst, n.node(id).frame())
	}
	slices.Reverse(dst[start:])
	return dst
}

// Path returns the resolved path of id; see [Names.Resolve]. It uses buf for the frames if
// they fit. The base is Whole or Cut, or Named if the name of the outer part is not known.
func (n *Names) Path(id ID, buf []Frame) Path {
	id = n.Resolve(id)
	p := Path{Frames: n.frames(buf[:0], id)}
	switch root := n.node(id).root; root {
	case wholeRoot:
	case cutRoot:
		p.Base = Cut
	default:
		p.Base, p.Outer = Named, n.node(root).name
	}
	return p
}
