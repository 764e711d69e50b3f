package profile

import "slices"

// translation copies stacks from one tree to another, each value replaced by a list of values:
// addresses by call sites, for example. It translates each node once, so its time depends on the
// sizes of the trees and not on the sum of the lengths of the stacks.
type translation struct {
	from, to *stackTree
	// list returns the values that replace a value, innermost first, valid until the next call.
	list func(value uint32) []uint32
	// fold leaves out the values with starts at the outer end of a stack, if one has no mark, and those
	// with allocates at its inner end, unless all have it.
	fold bool

	known []newNode // by node of from
	buf   []uint32
	parts []translatedPart
}

// newNode is the translation of a node.
type newNode struct {
	node  uint32 // of the other tree
	kept  uint32 // node without the values with allocates at its inner end
	known bool
	keeps bool   // a value has no allocates
	named bool   // a value has no mark
	inner uint32 // if not named: node without the values with starts at its outer end
}

// translatedPart is a node whose list ends at an index of buf.
type translatedPart struct {
	node uint32
	end  int
}

// stack returns the number of the translation of a stack, which it adds if it is new.
func (t *translation) stack(id uint32) uint32 {
	at, tail := t.from.stack(id)
	t.buf = t.buf[:0]
	for _, v := range tail {
		t.buf = append(t.buf, t.list(v)...)
	}
	n := t.node(at)
	node, buf := n.node, t.buf
	if t.fold {
		n, buf = n.withoutStart(buf)
		node = n.node
		switch i := slices.IndexFunc(buf, kept); {
		case i >= 0:
			buf = buf[i:]
		case n.keeps:
			node, buf = n.kept, nil
		}
		unmark(buf)
	}
	return t.to.add(node, buf)
}

// node returns the translation of a node. It asks for the lists of the node and its parents from
// the innermost outward, as in a tail.
func (t *translation) node(node uint32) newNode {
	if node == 0 {
		return newNode{}
	}
	if n := int(node) + 1; n > len(t.known) {
		t.known = slices.Grow(t.known, n-len(t.known))[:n]
	}
	start := len(t.buf)
	t.parts = t.parts[:0]
	for node != 0 && !t.known[node].known {
		n := t.from.nodes.at(int(node))
		t.buf = append(t.buf, t.list(n.value)...)
		t.parts = append(t.parts, translatedPart{node, len(t.buf)})
		node = n.parent
	}
	var n newNode
	if node != 0 {
		n = t.known[node]
	}
	for i, p := range slices.Backward(t.parts) {
		from := start
		if i > 0 {
			from = t.parts[i-1].end
		}
		n = t.below(n, t.buf[from:p.end])
		t.known[p.node] = n
	}
	t.buf = t.buf[:start]
	return n
}

// below returns the translation of a node from that of its parent.
func (t *translation) below(n newNode, list []uint32) newNode {
	if t.fold {
		before := n
		if n, list = n.withoutStart(list); !n.named {
			if rest := slices.Clone(before.outward(list)); len(rest) > 0 {
				unmark(rest)
				n.inner = t.to.node(n.inner, rest)
			}
		}
	}
	n.known = true
	if i := slices.IndexFunc(list, kept); t.fold && i >= 0 {
		unmark(list)
		n.kept, n.keeps = t.to.node(n.node, list[i:]), true
		n.node = t.to.node(n.kept, list[:i])
		return n
	}
	if t.fold {
		unmark(list)
	}
	n.node = t.to.node(n.node, list)
	return n
}

// withoutStart returns a node and the values below it without those with starts at the outer end, if a
// value has no mark.
func (n newNode) withoutStart(list []uint32) (newNode, []uint32) {
	if n.named || !slices.ContainsFunc(list, plain) {
		return n, list
	}
	return newNode{node: n.inner, named: true}, n.outward(list)
}

// outward returns the values below a node without those with starts at the outer end of the stack.
func (n newNode) outward(list []uint32) []uint32 {
	if n.inner != 0 {
		return list
	}
	return withoutStart(list)
}

// unmark removes allocates and starts from values.
func unmark(list []uint32) {
	for i := range list {
		list[i] &^= allocates | starts
	}
}
