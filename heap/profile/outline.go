package profile

import "slices"

// outline has what is directly below each node of a tree of stacks: the rows with a value in the
// last dump.
type outline struct {
	tree        *stackTree
	child, next []uint32 // by node: its first child, and the next child of its parent; 0 if there is none
	first       []uint32 // by node: 1 + index of its first item
	items       []outlineItem
}

// outlineItem is a row.
type outlineItem struct {
	stack uint32
	next  uint32 // 1 + index of the next item of the same node
	value Value
}

// outline returns the outline of the rows.
func (p *Profile) outline() *outline {
	rows := p.rows()
	o := &outline{tree: rows.stacks, child: make([]uint32, 1), first: make([]uint32, 1)}
	var nodes []uint32 // of the items
	for row := range p.lastRows() {
		stack := rows.stackOf(row.number)
		node, _ := o.tree.stack(stack)
		o.items = append(o.items, outlineItem{stack: stack, value: row.Value})
		nodes = append(nodes, node)
		if n := int(node) + 1; n > len(o.child) {
			o.child, o.first = slices.Grow(o.child, n-len(o.child))[:n], slices.Grow(o.first, n-len(o.first))[:n]
		}
	}
	o.next = make([]uint32, len(o.child))
	for i, node := range slices.Backward(nodes) {
		o.items[i].next, o.first[node] = o.first[node], uint32(i+1)
	}
	// Parents have lower numbers than their children.
	for node := len(o.child) - 1; node > 0; node-- {
		if o.first[node] == 0 && o.child[node] == 0 {
			continue
		}
		parent := o.tree.nodes.at(node).parent
		o.next[node], o.child[parent] = o.child[parent], uint32(node)
	}
	return o
}
