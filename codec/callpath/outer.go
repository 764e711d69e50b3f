package callpath

// Outer returns a path without its innermost frame, and that frame. depth is the number of frames
// of the path; if it is 0, outer is the path itself.
func (n *Names) Outer(id ID) (outer ID, f Frame, depth int) {
	n.init()
	x := n.node(id)
	return x.parent, x.frame(), int(x.depth)
}

// Root returns the beginning of a path, without its frames.
func (n *Names) Root(id ID) Path {
	n.init()
	switch root := n.node(id).root; root {
	case wholeRoot:
		return Path{}
	case cutRoot:
		return Path{Base: Cut}
	default:
		return Path{Base: Named, Outer: n.node(root).name}
	}
}
