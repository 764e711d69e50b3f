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
	root := &Node{Total: p.Total(last)}
	t := &tree{stackOrder: stackOrder{rows: p.rows(), outermost: !o.Callers}, TreeOptions: o, dump: last, total: o.Weight.Of(root.Total)}
	t.grow(root, p.branches(), 0)
	return root
}

// tree makes the nodes of a tree.
type tree struct {
	TreeOptions
	stackOrder
	dump  int
	total uint64
}

// grow adds all descendants of a node. depth is the depth of the node, 0 for the root.
func (t *tree) grow(node *Node, list []branch, depth int) {
	type child struct {
		*Node
		branches []branch
		site     uint32
	}
	var children []child
	for site, branches := range t.split(list, depth) {
		var total Value
		for _, b := range branches {
			total.Add(t.rows.value(int(b.row), t.dump))
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
	for _, branches := range t.split(list, depth) {
		n += 1 + t.count(branches, depth+1)
	}
	return n
}

// stackOrder orders the stacks of rows by their sites, a stack before those that continue it.
type stackOrder struct {
	rows      *rows
	rank      []uint32 // by site: sort key; nil to sort by the site itself
	outermost bool     // the outermost site is the first
}

// branch is a row and the sort key of the last split: 1 + the site of the row's stack at that
// depth, or 1 + the rank of the site, or 0 if the stack ends before.
type branch struct{ key, row uint32 }

// branches returns the rows with a value in the last dump.
func (p *Profile) branches() (list []branch) {
	for row := range p.lastRows() {
		list = append(list, branch{row: uint32(row.number)})
	}
	return list
}

// split orders a list by the sites at a depth, from 0, and yields each site, or its rank, with
// its rows. Stacks that end before that depth come first in the list.
func (o *stackOrder) split(list []branch, depth int) iter.Seq2[uint32, []branch] {
	for i := range list {
		list[i].key = o.key(list[i].row, depth)
	}
	slices.SortFunc(list, func(a, b branch) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.row, b.row))
	})
	return func(yield func(uint32, []branch) bool) {
		for from, to := 0, 0; from < len(list); from = to {
			key := list[from].key
			for to = from; to < len(list) && list[to].key == key; to++ {
			}
			if key > 0 && !yield(key-1, list[from:to]) {
				return
			}
		}
	}
}

// key returns the sort key of a row at a depth: see branch.
func (o *stackOrder) key(row uint32, depth int) uint32 {
	stack := o.rows.stack(int(row))
	if depth >= len(stack) {
		return 0
	}
	if o.outermost {
		depth = len(stack) - 1 - depth
	}
	if o.rank != nil {
		return 1 + o.rank[stack[depth]]
	}
	return 1 + stack[depth]
}

// sort orders a list by all sites from a depth on.
func (o *stackOrder) sort(list []branch, depth int) {
	for _, same := range o.split(list, depth) {
		if len(same) > 1 {
			o.sort(same, depth+1)
		}
	}
}
