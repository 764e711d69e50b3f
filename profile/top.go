package profile

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
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

// topCount adds up the call sites of a range of call paths.
type topCount struct {
	flat      []Value  // by SiteID
	cum       []cumSum // by SiteID
	total     Value
	stacks    int
	saturated bool
	path      []LocationID
	stack     []SiteID
}

// cumSum is a cumulative sum.
type cumSum struct {
	Value
	last uint32 // 1 + the call path that was added last: recursion counts once
}

func (c *topCount) add(n *Names, d *Dump, from, to int) {
	for id, v := range d.valuesIn(from, to) {
		c.path = n.prof.AppendPath(c.path[:0], id)
		var shown bool
		if c.stack, shown = n.appendPathSites(c.stack[:0], c.path); !shown {
			continue
		}
		c.grow(n.Sites())
		full := c.total.Add(v)
		c.stacks++
		if len(c.stack) > 0 && c.flat[c.stack[0]].Add(v) {
			full = true
		}
		for _, s := range c.stack {
			if t := &c.cum[s]; t.last != uint32(id)+1 {
				t.last = uint32(id) + 1
				if t.Add(v) {
					full = true
				}
			}
		}
		c.saturated = c.saturated || full
	}
}

func (c *topCount) grow(sites int) {
	if more := sites - len(c.cum); more > 0 {
		c.flat = append(c.flat, make([]Value, more)...)
		c.cum = append(c.cum, make([]cumSum, more)...)
	}
}

// take adds what another range has.
func (c *topCount) take(o *topCount) {
	full := c.total.Add(o.total)
	c.stacks += o.stacks
	c.grow(len(o.cum))
	for i := range o.cum {
		flat, cum := c.flat[i].Add(o.flat[i]), c.cum[i].Add(o.cum[i].Value)
		full = full || flat || cum
	}
	c.saturated = c.saturated || o.saturated || full
}

// topRange is how many call paths a goroutine of Top has at least.
const topRange = 1 << 16

// count adds up the call sites of a dump, by several goroutines if it is large.
func (n *Names) count(d *Dump) *topCount {
	all := &topCount{}
	paths := n.prof.Paths()
	parts := min(runtime.GOMAXPROCS(0), paths/topRange)
	if parts < 2 || !n.numberAll() {
		all.add(n, d, 0, paths)
		return all
	}
	counts := make([]topCount, parts)
	var running sync.WaitGroup
	for i := range counts {
		running.Go(func() { counts[i].add(n, d, paths*i/parts, paths*(i+1)/parts) })
	}
	running.Wait()
	for i := range counts {
		all.take(&counts[i])
	}
	return all
}

// Top returns the call sites of a dump, those that hold the most first.
func (n *Names) Top(d *Dump, o TopOptions) *TopReport {
	count := n.count(d)
	n.saturate(count.saturated)
	r := &TopReport{Total: count.total, Stacks: count.stacks}
	keep := o.N
	if keep <= 0 {
		keep = len(count.cum)
	}
	first, second := o.key()
	var floor Row // rows below it cannot be among the first
	for i, flat := range count.flat {
		cum := count.cum[i].Value
		if cum.IsZero() {
			continue
		}
		r.Sites++
		row := Row{Flat: flat, Cum: cum}
		if a, b := first(&row), first(&floor); a < b || a == b && second(&row) < second(&floor) {
			continue
		}
		row.Site = Site{Line: i} // named below
		r.Rows = append(r.Rows, row)
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
