package profile

import (
	"cmp"
	"regexp"
	"slices"
)

// Node is a call site in the context of its callers.
type Node struct {
	Site
	Total    Value // of all call paths through here
	Self     Value // of those that end here
	Children []*Node

	id    SiteID
	index map[SiteID]*Node
}

// TreeOptions are the options of [Names.Tree].
type TreeOptions struct {
	Weight   Weight
	Inverted bool // from the innermost frames outward: callers below callees
}

// Tree returns the call paths of a dump merged from the outermost frame inward,
// the heaviest children first.
func (n *Names) Tree(d *Dump, o TreeOptions) *Node {
	root := &Node{}
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		stack, shown = n.AppendStack(stack[:0], id)
		if !shown {
			continue
		}
		if !o.Inverted {
			slices.Reverse(stack)
		}
		at := root
		n.saturate(at.Total.Add(v))
		for _, s := range stack {
			at = at.child(s)
			n.saturate(at.Total.Add(v))
		}
		at.Self.Add(v)
	}
	n.finish(root, o.Weight)
	return root
}

func (t *Node) child(s SiteID) *Node {
	if c := t.index[s]; c != nil {
		return c
	}
	c := &Node{id: s}
	if t.index == nil {
		t.index = map[SiteID]*Node{}
	}
	t.index[s] = c
	t.Children = append(t.Children, c)
	return c
}

// finish names and orders the children of t, and theirs. Paths of a log are at most
// 32 frames and what is inlined deep.
func (n *Names) finish(t *Node, w Weight) {
	t.index = nil
	for _, c := range t.Children {
		c.Site = n.Site(c.id)
		n.finish(c, w)
	}
	slices.SortFunc(t.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(w.Of(b.Total), w.Of(a.Total)), cmp.Compare(a.Site.String(), b.Site.String()), cmp.Compare(a.id, b.id))
	})
}

// PeekReport is a call site with its callers and callees.
type PeekReport struct {
	Row
	Callers, Callees []Row // Flat is unused; Cum is the memory of paths with this call
}

// Peek returns the call sites whose function matches, each with who called it and
// whom it called, the heaviest first, and the total that the view shows.
func (n *Names) Peek(d *Dump, match *regexp.Regexp, w Weight) (list []PeekReport, total Value) {
	type edges struct {
		row              Row
		callers, callees map[SiteID]*Value
	}
	byID := map[SiteID]*edges{}
	matches := map[SiteID]bool{}
	add := func(m map[SiteID]*Value, s SiteID, v Value) {
		if m[s] == nil {
			m[s] = &Value{}
		}
		m[s].Add(v)
	}
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		if stack, shown = n.AppendStack(stack[:0], id); !shown {
			continue
		}
		total.Add(v)
		for i, s := range stack {
			hit, ok := matches[s]
			if !ok {
				hit = match.MatchString(n.Site(s).Func)
				matches[s] = hit
			}
			if !hit || slices.Contains(stack[:i], s) { // a recursive call counts once
				continue
			}
			e := byID[s]
			if e == nil {
				e = &edges{row: Row{Site: n.Site(s)}, callers: map[SiteID]*Value{}, callees: map[SiteID]*Value{}}
				byID[s] = e
			}
			e.row.Cum.Add(v)
			if i == 0 {
				e.row.Flat.Add(v)
			} else {
				add(e.callees, stack[i-1], v)
			}
			if i+1 < len(stack) {
				add(e.callers, stack[i+1], v)
			}
		}
	}
	rows := func(m map[SiteID]*Value) (out []Row) {
		for s, v := range m {
			out = append(out, Row{Site: n.Site(s), Cum: *v})
		}
		slices.SortFunc(out, func(a, b Row) int {
			return cmp.Or(cmp.Compare(w.Of(b.Cum), w.Of(a.Cum)), cmp.Compare(a.Site.String(), b.Site.String()))
		})
		return out
	}
	for _, e := range byID {
		list = append(list, PeekReport{e.row, rows(e.callers), rows(e.callees)})
	}
	slices.SortFunc(list, func(a, b PeekReport) int {
		return cmp.Or(cmp.Compare(w.Of(b.Cum), w.Of(a.Cum)), cmp.Compare(a.Site.String(), b.Site.String()))
	})
	return list, total
}
