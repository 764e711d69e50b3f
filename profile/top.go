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
	var rank ranking
	rank.init(o, func(id siteID) Site { return n.Site(SiteID(id.n)) })
	for i, flat := range count.flat {
		rank.add(flat, count.cum[i].Value, siteID{n: uint64(i)})
	}
	r.Rows, r.Sites = rank.finish()
	return r
}

// siteID is what a site is named by, if it is among the rows.
type siteID struct {
	n    uint64
	kind uint8
}

// ranking keeps the call sites that hold the most.
type ranking struct {
	TopOptions
	site  func(siteID) Site
	keep  int // rows, 0 for all
	rows  []rankedRow
	floor rankedRow // rows below it cannot be among the first
	sites int
}

type rankedRow struct {
	flat, cum Value
	id        siteID
}

func (r *ranking) init(o TopOptions, site func(siteID) Site) {
	*r = ranking{TopOptions: o, site: site, keep: max(o.N, 0)}
}

// sums returns what rows are ordered by: first, and second where that is equal.
func (r *ranking) sums(row *rankedRow) (first, second uint64) {
	first, second = r.Weight.Of(row.flat), r.Weight.Of(row.cum)
	if r.Cum {
		first, second = second, first
	}
	return first, second
}

// add adds a call site, unless it holds nothing.
func (r *ranking) add(flat, cum Value, id siteID) {
	if cum.IsZero() {
		return
	}
	r.sites++
	r.insert(rankedRow{flat, cum, id})
}

func (r *ranking) insert(row rankedRow) {
	a, b := r.sums(&row)
	if c, d := r.sums(&r.floor); a < c || a == c && b < d {
		return
	}
	r.rows = append(r.rows, row)
	if r.keep > 0 && (len(r.rows)-1000)/2 >= r.keep { // no sum that could pass the largest int
		r.best()
		r.floor = r.rows[r.keep-1]
	}
}

// take adds the call sites of another ranking, all of which are others.
func (r *ranking) take(o *ranking) {
	r.sites += o.sites
	for _, row := range o.rows {
		r.insert(row)
	}
}

// best orders the rows and keeps the first.
func (r *ranking) best() {
	slices.SortFunc(r.rows, func(a, b rankedRow) int {
		a1, a2 := r.sums(&a)
		b1, b2 := r.sums(&b)
		if c := cmp.Or(cmp.Compare(b1, a1), cmp.Compare(b2, a2)); c != 0 {
			return c
		}
		x, y := r.site(a.id), r.site(b.id)
		return cmp.Or(cmp.Compare(x.Func, y.Func), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line),
			cmp.Compare(x.Module, y.Module), cmp.Compare(a.id.n, b.id.n))
	})
	if r.keep > 0 {
		r.rows = r.rows[:min(r.keep, len(r.rows))]
	}
}

// finish returns the rows, and of how many call sites they are the first.
func (r *ranking) finish() (rows []Row, sites int) {
	r.best()
	for _, row := range r.rows {
		rows = append(rows, Row{Site: r.site(row.id), Flat: row.flat, Cum: row.cum})
	}
	return rows, r.sites
}

func (n *Names) saturate(is bool) { n.prof.Saturated = n.prof.Saturated || is }

// Share returns part of all in percent, 0 of nothing.
func Share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}
