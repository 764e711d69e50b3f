package profile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Node is a call site in the context of its callers.
type Node struct {
	Site
	Total Value // of all call paths through here

	tree  *tree
	id    SiteID
	paths []branch
	depth int
}

// tree is what the nodes of a tree share.
type tree struct {
	trie
	names  *Names
	dump   *Dump
	weight Weight
}

// TreeOptions are the options of [Names.Tree].
type TreeOptions struct {
	Weight   Weight
	Inverted bool // from the innermost frames outward: callers below callees
}

// Tree returns the call paths of a dump merged from the outermost frame inward. It
// takes 4 bytes per frame: nodes are made when asked for.
func (n *Names) Tree(d *Dump, o TreeOptions) *Node {
	t := &tree{names: n, dump: d, weight: o.Weight}
	root := &Node{tree: t}
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		if stack, shown = n.AppendStack(stack[:0], id); !shown {
			continue
		}
		if !o.Inverted {
			slices.Reverse(stack)
		}
		t.add(uint32(id), stack)
		n.saturate(root.Total.Add(v))
	}
	root.paths = t.branches
	return root
}

// Children returns the calls below t for whose total keep returns true, the heaviest
// first, and the number and the sum of the others. Nodes that an earlier call for t
// returned must not be used any more.
func (t *Node) Children(keep func(Value) bool) (list []*Node, others int, rest Value) {
	n := t.tree.names
	t.tree.split(t.paths, t.depth)
	for id, paths := range children(t.paths) {
		var total Value
		for _, p := range paths {
			n.saturate(total.Add(t.tree.dump.Value(PathID(t.tree.path(p)))))
		}
		if !keep(total) {
			others++
			n.saturate(rest.Add(total))
			continue
		}
		list = append(list, &Node{n.Site(id), total, t.tree, id, paths, t.depth + 1})
	}
	w := t.tree.weight
	slices.SortFunc(list, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(w.Of(b.Total), w.Of(a.Total)), cmp.Compare(a.Site.String(), b.Site.String()), cmp.Compare(a.id, b.id))
	})
	return list, others, rest
}

// Below returns how many nodes are below t.
func (t *Node) Below() int { return t.tree.count(t.paths, t.depth) }

func (t *tree) count(node []branch, depth int) (n int) {
	t.split(node, depth)
	for _, child := range children(node) {
		n += 1 + t.count(child, depth+1)
	}
	return n
}

// PeekReport is a call site with its callers and callees.
type PeekReport struct {
	Row
	Callers, Callees []Row // Flat is unused; Cum is the memory of paths with this call
}

// Limits of Peek: functions that match, and callers and callees that are kept apart.
const (
	maxPeeked = 10_000
	maxCalls  = 2_000_000
)

// OtherCalls is the name of the callers or callees of a function past the limit.
const OtherCalls = "(other calls)"

// Peek returns the call sites whose function matches, each with its callers and
// callees, the heaviest first, and the total that the view shows. It fails if over
// 10,000 functions match.
func (n *Names) Peek(d *Dump, match *regexp.Regexp, w Weight) (list []PeekReport, total Value, err error) {
	type call struct {
		site, other SiteID
		callee      bool
	}
	const others = SiteID(1<<32 - 1)
	rows := map[SiteID]*PeekReport{}
	calls := map[call]Value{}
	add := func(c call, v Value) {
		sum, known := calls[c]
		if !known && len(calls) >= maxCalls {
			c.other = others
			sum = calls[c]
		}
		n.saturate(sum.Add(v))
		calls[c] = sum
	}
	const unknown, hit, miss = 0, 1, 2
	var matches array[uint8] // by SiteID
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		if stack, shown = n.AppendStack(stack[:0], id); !shown {
			continue
		}
		n.saturate(total.Add(v))
		for i, s := range stack {
			for matches.n <= int(s) {
				matches.push(unknown)
			}
			m := matches.at(int(s))
			if *m == unknown {
				*m = miss
				if match.MatchString(n.Site(s).Func) {
					*m = hit
				}
			}
			if *m == miss || slices.Contains(stack[:i], s) { // a recursive call counts once
				continue
			}
			r := rows[s]
			if r == nil {
				if len(rows) == maxPeeked {
					return nil, total, fmt.Errorf("%s matches over %d functions, expected fewer", match, maxPeeked)
				}
				r = &PeekReport{Row: Row{Site: n.Site(s)}}
				rows[s] = r
			}
			n.saturate(r.Cum.Add(v))
			if i == 0 {
				n.saturate(r.Flat.Add(v))
			} else {
				add(call{s, stack[i-1], true}, v)
			}
			if i+1 < len(stack) {
				add(call{s, stack[i+1], false}, v)
			}
		}
	}
	for c, v := range calls {
		r, site := rows[c.site], Site{Func: OtherCalls}
		if c.other != others {
			site = n.Site(c.other)
		}
		if c.callee {
			r.Callees = append(r.Callees, Row{Site: site, Cum: v})
		} else {
			r.Callers = append(r.Callers, Row{Site: site, Cum: v})
		}
	}
	order := func(a, b *Row) int {
		return cmp.Or(cmp.Compare(w.Of(b.Cum), w.Of(a.Cum)), cmp.Compare(a.Site.String(), b.Site.String()))
	}
	for _, r := range rows {
		for _, calls := range [][]Row{r.Callers, r.Callees} {
			slices.SortFunc(calls, func(a, b Row) int { return order(&a, &b) })
		}
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b PeekReport) int { return order(&a.Row, &b.Row) })
	return list, total, nil
}
