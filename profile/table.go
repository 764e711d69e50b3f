package profile

import (
	"cmp"
	"slices"
)

// Table is the call paths of several dumps as a view shows them: paths that look
// alike are one. Diff, growth and the HTML report are computed from it.
type Table struct {
	Dumps []*Dump
	Sites []Site // by SiteID
	Rows  []TableRow
	Total []Value // by dump, of what the view shows
}

// TableRow is a call path in each dump.
type TableRow struct {
	Stack  []SiteID // innermost first
	Values []Value  // by dump
}

// Table returns the call paths of dumps, in the order in which they were met.
func (n *Names) Table(dumps []*Dump) *Table {
	t := &Table{Dumps: dumps, Total: make([]Value, len(dumps))}
	var known paths
	var stack []SiteID
	var key []LocationID
	for i, d := range dumps {
		for id, v := range d.Values() {
			var shown bool
			if stack, shown = n.AppendStack(stack[:0], id); !shown {
				continue
			}
			key = key[:0]
			for _, s := range stack {
				key = append(key, LocationID(s))
			}
			known.encode(key)
			row, hash, slot, found := known.find()
			if !found {
				row = known.add(hash, slot)
				t.Rows = append(t.Rows, TableRow{slices.Clone(stack), make([]Value, len(dumps))})
			}
			n.saturate(t.Rows[row].Values[i].Add(v))
			n.saturate(t.Total[i].Add(v))
		}
	}
	for s := range n.Sites() {
		t.Sites = append(t.Sites, n.Site(SiteID(s)))
	}
	return t
}

// Names returns the sites of a row, innermost first.
func (t *Table) Names(r *TableRow) []Site {
	list := make([]Site, len(r.Stack))
	for i, s := range r.Stack {
		list[i] = t.Sites[s]
	}
	return list
}

// Change is a call path, or a call site, in two dumps.
type Change struct {
	Stack         []Site // innermost first
	Before, After Value
}

// New reports whether there was nothing before.
func (c *Change) New() bool { return c.Before.IsZero() && !c.After.IsZero() }

// Gone reports whether there is nothing after.
func (c *Change) Gone() bool { return !c.Before.IsZero() && c.After.IsZero() }

// Delta returns the growth of the sum that w asks for.
func (c *Change) Delta(w Weight) Delta { return Sub(w.Of(c.After), w.Of(c.Before)) }

// Diff returns the call paths that differ between two dumps of the table, by their
// index: those that grew the most first, those that shrank the most last.
func (t *Table) Diff(before, after int, w Weight) []Change {
	var list []Change
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Values[before] != r.Values[after] {
			list = append(list, Change{t.Names(r), r.Values[before], r.Values[after]})
		}
	}
	sortChanges(list, w)
	return list
}

// DiffSites does the same by innermost shown frame.
func (t *Table) DiffSites(before, after int, w Weight) []Change {
	bySite := map[SiteID]*Change{}
	var order []SiteID
	for i := range t.Rows {
		r := &t.Rows[i]
		if len(r.Stack) == 0 {
			continue
		}
		s := r.Stack[0]
		if bySite[s] == nil {
			bySite[s] = &Change{Stack: []Site{t.Sites[s]}}
			order = append(order, s)
		}
		bySite[s].Before.Add(r.Values[before])
		bySite[s].After.Add(r.Values[after])
	}
	var list []Change
	for _, s := range order {
		if c := bySite[s]; c.Before != c.After {
			list = append(list, *c)
		}
	}
	sortChanges(list, w)
	return list
}

func sortChanges(list []Change, w Weight) {
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(b.Delta(w).Compare(a.Delta(w)), b.Delta(1-w).Compare(a.Delta(1-w)))
	})
}
