package profile

import "cmp"

// SiteRow holds the values of a call site: Flat, from call paths in which the site is the
// innermost frame shown, and Cum, from all call paths that contain the site.
type SiteRow struct {
	Site
	Flat Value `json:"flat"`
	Cum  Value `json:"cum"`
}

// SiteReport holds the heaviest call sites of a dump.
type SiteReport struct {
	Rows  []SiteRow
	Total Value // of the call paths that the view shows
	Paths int   // number of call paths that the view shows
	Sites int   // number of call sites in these call paths; Rows has the first of them
}

// Sites returns the n heaviest call sites of the last dump, the heaviest first, or all if n
// is 0 or less. They are ordered by cumulative value if byCum is set, else by flat value.
func (p *Profile) Sites(w Weight, byCum bool, n int) SiteReport {
	names := p.names()
	d, _ := p.last()
	flat, cum := make([]Value, names.count()), make([]cumSum, names.count())
	var report SiteReport
	for stack, a := range names.showing(d.Allocations()) {
		report.Total.Add(a.Value)
		report.Paths++
		if len(stack) > 0 {
			flat[stack[0]].Add(a.Value)
		}
		for _, s := range stack {
			if sum := &cum[s]; sum.paths != report.Paths { // a recursive call counts once
				sum.paths = report.Paths
				sum.Add(a.Value)
			}
		}
	}
	all := func(yield func(site) bool) {
		for i := range cum {
			if cum[i].IsZero() {
				continue
			}
			report.Sites++
			if !yield(site{flat[i], cum[i].Value, uint32(i)}) {
				return
			}
		}
	}
	for _, s := range firstOf(all, n, func(a, b site) int { return a.compare(&b, w, byCum, names) }) {
		report.Rows = append(report.Rows, SiteRow{names.siteAt(s.number), s.flat, s.cum})
	}
	return report
}

// cumSum is a cumulative sum.
type cumSum struct {
	Value
	paths int // SiteReport.Paths after the last addition
}

// site is a site with its sums.
type site struct {
	flat, cum Value
	number    uint32
}

// compare orders sites by descending value, then by name.
func (a *site) compare(b *site, w Weight, byCum bool, n *names) int {
	c := cmp.Or(cmp.Compare(w.Of(b.flat), w.Of(a.flat)), cmp.Compare(w.Of(b.cum), w.Of(a.cum)))
	if byCum {
		c = cmp.Or(cmp.Compare(w.Of(b.cum), w.Of(a.cum)), cmp.Compare(w.Of(b.flat), w.Of(a.flat)))
	}
	if c != 0 {
		return c
	}
	x, y := n.siteAt(a.number), n.siteAt(b.number)
	return cmp.Or(cmp.Compare(x.Func, y.Func), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line),
		cmp.Compare(x.Module, y.Module), cmp.Compare(a.number, b.number))
}
