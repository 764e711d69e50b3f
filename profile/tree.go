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

// Tree returns the call paths of the last dump merged from the outermost frame inward.
// The root is no call site.
func (p *Profile) Tree(o TreeOptions) *Node {
	_, last := p.last()
	t := &tree{rows: p.rows(), dump: last, TreeOptions: o}
	t.order = stackOrder{at: func(row uint32) []uint32 { return t.rows.stack(int(row)) }, outermost: !o.Callers}
	root := &Node{Total: p.Total(last)}
	t.total = o.Weight.Of(root.Total)
	var list []branch
	for row := range p.lastRows() {
		list = append(list, branch{index: uint32(row)})
	}
	t.grow(root, list, 0)
	return root
}

// tree makes the nodes of a tree.
type tree struct {
	TreeOptions
	rows  *rows
	dump  int
	total uint64
	order stackOrder
}

// grow adds all descendants of a node. depth is the depth of the node, 0 for the root.
func (t *tree) grow(node *Node, list []branch, depth int) {
	type child struct {
		*Node
		branches []branch
		site     uint32
	}
	var children []child
	for site, branches := range t.order.split(list, depth) {
		var total Value
		for _, b := range branches {
			total.Add(t.rows.value(int(b.index), t.dump))
		}
		if 100*float64(t.Weight.Of(total))/max(1, float64(t.total)) < t.Min {
			node.Omitted++
			node.Rest.Add(total)
			continue
		}
		children = append(children, child{&Node{Site: t.rows.names.siteAt(site), Total: total}, branches, site})
	}
	slices.SortFunc(children, func(a, b child) int {
		return cmp.Or(cmp.Compare(t.Weight.Of(b.Total), t.Weight.Of(a.Total)), cmp.Compare(a.Site.String(), b.Site.String()), cmp.Compare(a.site, b.site))
	})
	for _, c := range children {
		node.Children = append(node.Children, c.Node)
		if t.Depth > 0 && depth+1 >= t.Depth {
			c.Below = t.count(c.branches, depth+1)
		} else {
			t.grow(c.Node, c.branches, depth+1)
		}
	}
}

// count returns the number of nodes below a node.
func (t *tree) count(list []branch, depth int) (n int) {
	for _, branches := range t.order.split(list, depth) {
		n += 1 + t.count(branches, depth+1)
	}
	return n
}

// stackOrder orders stacks by their elements, a stack before those that continue it.
type stackOrder struct {
	at        func(index uint32) []uint32 // elements, innermost first
	rank      []uint32                    // by element: sort key; nil to sort by the element itself
	outermost bool                        // the outermost element is the first
}

// branch is the index of a stack and the sort key of the last split: 1 + the rank of the
// stack's element at that depth, or 0 if the stack ends before.
type branch struct{ key, index uint32 }

// split orders a list by the elements at a depth, from 0, and yields each element with its
// stacks. Stacks that end before that depth come first in the list.
func (o *stackOrder) split(list []branch, depth int) iter.Seq2[uint32, []branch] {
	for i := range list {
		list[i].key = 0
		if e, ok := o.element(list[i].index, depth); ok && o.rank != nil {
			list[i].key = o.rank[e] + 1
		} else if ok {
			list[i].key = e + 1
		}
	}
	slices.SortFunc(list, func(a, b branch) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
	})
	return func(yield func(uint32, []branch) bool) {
		for from, to := 0, 0; from < len(list); from = to {
			for to = from; to < len(list) && list[to].key == list[from].key; to++ {
			}
			if e, ok := o.element(list[from].index, depth); ok && !yield(e, list[from:to:to]) {
				return
			}
		}
	}
}

func (o *stackOrder) element(index uint32, depth int) (element uint32, ok bool) {
	stack := o.at(index)
	if depth >= len(stack) {
		return 0, false
	}
	if o.outermost {
		depth = len(stack) - 1 - depth
	}
	return stack[depth], true
}

// sort orders a list by all elements from a depth on.
func (o *stackOrder) sort(list []branch, depth int) {
	for _, same := range o.split(list, depth) {
		if len(same) > 1 {
			o.sort(same, depth+1)
		}
	}
}
