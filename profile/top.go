package profile

import (
	"cmp"
	"slices"
)

// Weight is which of its two sums a report orders by.
type Weight uint8

const (
	Bytes Weight = iota
	Count
)

// Of returns the sum of v that w asks for.
func (w Weight) Of(v Value) uint64 {
	if w == Count {
		return v.Count
	}
	return v.Bytes
}

// Row is the memory that a call site holds: flat, where it is the innermost frame that is
// shown, and cumulative, where it is any.
type Row struct {
	Site
	Flat, Cum Value
}

// TopOptions are the options of [Names.Top].
type TopOptions struct {
	N      int // rows, 0 for all
	Cum    bool
	Weight Weight
}

// TopReport is the call sites of a dump that hold the most.
type TopReport struct {
	Rows   []Row
	Total  Value // of the call paths that the view shows
	Stacks int   // distinct call paths in Total
	Sites  int   // distinct call sites, of which Rows has the first
}

type topSums struct {
	flat, cum Value
	last      uint32 // 1 + the call path that was added last: recursion counts once
}

// Top returns the call sites of a dump, those that hold the most first.
func (n *Names) Top(d *Dump, o TopOptions) *TopReport {
	r := &TopReport{}
	var sums array[topSums]
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		stack, shown = n.AppendStack(stack[:0], id)
		if !shown {
			continue
		}
		n.saturate(r.Total.Add(v))
		r.Stacks++
		for i, s := range stack {
			for sums.n <= int(s) {
				sums.push(topSums{})
			}
			t := sums.at(int(s))
			if i == 0 {
				n.saturate(t.flat.Add(v))
			}
			if t.last != uint32(id)+1 {
				t.last = uint32(id) + 1
				n.saturate(t.cum.Add(v))
			}
		}
	}
	keep := o.N
	if keep <= 0 {
		keep = sums.n
	}
	first, second := o.key()
	var floor Row // rows below it cannot be among the first
	for i := range sums.n {
		t := sums.at(i)
		if t.cum.IsZero() {
			continue
		}
		r.Sites++
		row := Row{Flat: t.flat, Cum: t.cum}
		if a, b := first(&row), first(&floor); a < b || a == b && second(&row) < second(&floor) {
			continue
		}
		r.Rows = append(r.Rows, Row{Flat: t.flat, Cum: t.cum, Site: Site{Line: i}}) // named below
		if len(r.Rows) >= 2*keep+1000 {
			r.Rows = n.best(r.Rows, o, keep)
			floor = r.Rows[keep-1]
		}
	}
	r.Rows = n.best(r.Rows, o, keep)
	for i := range r.Rows {
		r.Rows[i].Site = n.Site(SiteID(r.Rows[i].Line))
	}
	return r
}

// key returns what rows are ordered by: first, and second where that is equal.
func (o *TopOptions) key() (first, second func(*Row) uint64) {
	flat := func(r *Row) uint64 { return o.Weight.Of(r.Flat) }
	cum := func(r *Row) uint64 { return o.Weight.Of(r.Cum) }
	if o.Cum {
		return cum, flat
	}
	return flat, cum
}

// best keeps the first rows in order; Line is a SiteID still.
func (n *Names) best(rows []Row, o TopOptions, keep int) []Row {
	first, second := o.key()
	slices.SortFunc(rows, func(a, b Row) int {
		if c := cmp.Or(cmp.Compare(first(&b), first(&a)), cmp.Compare(second(&b), second(&a))); c != 0 {
			return c
		}
		x, y := n.Site(SiteID(a.Line)), n.Site(SiteID(b.Line))
		return cmp.Or(cmp.Compare(x.Func, y.Func), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line),
			cmp.Compare(x.Module, y.Module), cmp.Compare(a.Line, b.Line))
	})
	return rows[:min(keep, len(rows))]
}

func (n *Names) saturate(is bool) { n.prof.Saturated = n.prof.Saturated || is }

// Share returns part of all in percent, 0 of nothing.
func Share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}
