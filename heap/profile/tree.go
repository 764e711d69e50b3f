package profile

import (
	"cmp"
	"iter"
	"slices"
)

// Node is a call site in the context of its callers, or with [TreeOptions.Callers] of
// its callees.
type Node struct {
	Site
	Total    Value   // of all call paths through here
	Children []*Node // the heaviest first
	Omitted  int     // number of children that hold less than TreeOptions.Min
	Rest     Value   // sum of the omitted children
	Below    int     // nodes below this one that TreeOptions.Depth leaves out
}

// TreeOptions are the options of [Profile.Tree].
type TreeOptions struct {
	Weight  Weight
	Callers bool    // from the innermost frames outward: callers below callees
	Depth   int     // levels of nodes below the root, all if 0 or less
	Min     float64 // nodes that hold less than this part of the total, in percent, are added up
}

// maxNodes is the largest number of nodes of a tree. A node takes 150 bytes, and a few bytes of a
// log may add one, or in a tree with TreeOptions.Callers, whose call paths share no inner frames,
// a thousand.
const maxNodes = 25_000

// Tree returns the call paths of the last dump merged from the outermost frame inward.
// The root is no call site. A tree has 25,000 nodes at most; the others are counted as Below.
func (p *Profile) Tree(o TreeOptions) *Node {
	_, last := p.last()
	root := &Node{Total: p.Total(last)}
	rows := p.rows()
	if o.Callers {
		t := &callersTree{rows, last}
		grow(&treeGrower[[]branch]{o, rows.names, o.Weight.Of(root.Total), maxNodes, t.parts, t.count}, root, t.branches(p), 0)
		return root
	}
	t := newCalleesTree(p.outline())
	grow(&treeGrower[outlinePart]{o, rows.names, o.Weight.Of(root.Total), maxNodes, t.parts, t.count}, root, outlinePart{}, 0)
	return root
}

// treeGrower makes the nodes of a tree. P is a place in the tree.
type treeGrower[P any] struct {
	TreeOptions
	names *names
	total uint64
	left  int                           // number of nodes that may be made
	parts func(P) iter.Seq[treePart[P]] // directly below a place; valid until those of another place that is not below
	count func(P) int                   // of all below a place, whose parts are not used afterwards
}

// treePart is a call site below a place, and its own place.
type treePart[P any] struct {
	site  uint32
	total Value
	at    P
}

// grow adds all descendants of a node. depth is the depth of the node, 0 for the root.
func grow[P any](t *treeGrower[P], node *Node, at P, depth int) {
	for _, c := range t.children(node, t.parts(at)) {
		if t.left == 0 {
			node.Below += 1 + t.count(c.at)
			continue
		}
		t.left--
		child := &Node{Site: t.names.siteAt(c.site), Total: c.total}
		node.Children = append(node.Children, child)
		if t.Depth > 0 && depth+1 >= t.Depth {
			child.Below = t.count(c.at)
		} else {
			grow(t, child, c.at, depth+1)
		}
	}
}

// children returns the parts of a node that hold enough, the heaviest first, and no more than may be
// made. It counts the others.
func (t *treeGrower[P]) children(node *Node, parts iter.Seq[treePart[P]]) []treePart[P] {
	holds := func(c *treePart[P]) bool { return 100*float64(t.Weight.Of(c.total))/max(1, float64(t.total)) >= t.Min }
	n := 0
	for c := range parts {
		if holds(&c) {
			n++
			continue
		}
		node.Omitted++
		node.Rest.Add(c.total)
	}
	enough := func(yield func(treePart[P]) bool) {
		for c := range parts {
			if holds(&c) && !yield(c) {
				return
			}
		}
	}
	if t.left == 0 {
		for c := range enough {
			node.Below += 1 + t.count(c.at)
		}
		return nil
	}
	list := firstOf(enough, t.left, func(a, b treePart[P]) int {
		if c := cmp.Compare(t.Weight.Of(b.total), t.Weight.Of(a.total)); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(t.names.siteAt(a.site).String(), t.names.siteAt(b.site).String()), cmp.Compare(a.site, b.site))
	})
	if n > len(list) {
		made := map[uint32]bool{}
		for _, c := range list {
			made[c.site] = true
		}
		for c := range enough {
			if !made[c.site] {
				node.Below += 1 + t.count(c.at)
			}
		}
	}
	return list
}

// calleesTree is a tree from the outermost frame inward.
type calleesTree struct {
	*outline
	total []Value // by node
	below []int   // by node: number of call sites below it
}

func newCalleesTree(o *outline) *calleesTree {
	t := &calleesTree{outline: o, total: make([]Value, len(o.child)), below: make([]int, len(o.child))}
	for node := len(o.child) - 1; node >= 0; node-- {
		for p := range o.parts(uint32(node)) {
			t.total[node].Add(t.totalOf(&p))
			if p.value != noValue {
				t.below[node] += 1 + t.count(t.inner(p))
			}
		}
	}
	return t
}

func (t *calleesTree) totalOf(p *outlinePart) Value {
	if p.node != 0 {
		return t.total[p.node]
	}
	return t.items[p.item].value
}

// inner returns the place below a part.
func (t *calleesTree) inner(p outlinePart) outlinePart {
	if p.node == 0 && len(p.tail) > 0 {
		p.tail = p.tail[:len(p.tail)-1]
		if p.value = outermost(p.tail); len(p.tail) == 0 {
			p.node = noValue // nothing is below
		}
	}
	return p
}

// parts yields the call sites directly below a place: a node, or the rest of a tail.
func (t *calleesTree) parts(at outlinePart) iter.Seq[treePart[outlinePart]] {
	return func(yield func(treePart[outlinePart]) bool) {
		switch {
		case at.node == noValue:
		case len(at.tail) > 0:
			yield(treePart[outlinePart]{at.value, t.totalOf(&at), t.inner(at)})
		default:
			for p := range t.outline.parts(at.node) {
				if p.value != noValue && !yield(treePart[outlinePart]{p.value, t.totalOf(&p), t.inner(p)}) {
					return
				}
			}
		}
	}
}

func (t *calleesTree) count(at outlinePart) int {
	switch {
	case at.node == noValue:
		return 0
	case len(at.tail) > 0:
		return len(at.tail)
	}
	return t.below[at.node]
}

// callersTree is a tree from the innermost frame outward.
type callersTree struct {
	rows *rows
	dump int
}

// branch is a row and a place in its stack: the next value is that of its tail, or else of the
// node.
type branch struct {
	row, node uint32
	tail      uint32 // number of values of the tail before the place
	key       uint32 // next value
}

// branches returns the rows with a value in the last dump.
func (t *callersTree) branches(p *Profile) (list []branch) {
	for row := range p.lastRows() {
		node, _ := t.rows.stacks.stack(t.rows.stackOf(row.number))
		list = append(list, branch{row: uint32(row.number), node: node})
	}
	return list
}

// next moves a branch outward, and returns the value that it passes; ok is false at the end.
func (t *callersTree) next(b *branch) (value uint32, ok bool) {
	_, tail := t.rows.stacks.stack(t.rows.stackOf(int(b.row)))
	switch {
	case int(b.tail) < len(tail):
		b.tail++
		return tail[b.tail-1], true
	case b.node == 0:
		return 0, false
	}
	n := t.rows.stacks.nodes.at(int(b.node))
	b.node = n.parent
	return n.value, true
}

// parts moves the branches of a list outward, orders them by the values that they pass, and yields
// each value with its branches.
func (t *callersTree) parts(list []branch) iter.Seq[treePart[[]branch]] {
	n := 0
	for _, b := range list {
		value, ok := t.next(&b)
		if b.key = value; ok {
			list[n] = b
			n++
		}
	}
	list = list[:n]
	slices.SortFunc(list, func(a, b branch) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.row, b.row)) })
	return func(yield func(treePart[[]branch]) bool) {
		for from, to := 0, 0; from < len(list); from = to {
			var total Value
			for to = from; to < len(list) && list[to].key == list[from].key; to++ {
				total.Add(t.rows.value(int(list[to].row), t.dump))
			}
			if !yield(treePart[[]branch]{list[from].key, total, list[from:to:to]}) {
				return
			}
		}
	}
}

func (t *callersTree) count(list []branch) (n int) {
	if len(list) == 1 {
		b := list[0]
		for ok := true; ok; n++ {
			_, ok = t.next(&b)
		}
		return n - 1
	}
	for p := range t.parts(list) {
		n += 1 + t.count(p.at)
	}
	return n
}
