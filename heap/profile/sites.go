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
	rows := p.rows()
	names := rows.names
	_, last := p.last()
	sums := siteSums{sites: make([]siteSum, names.count())}
	var report SiteReport
	if last >= 0 {
		report.Total, report.Paths = rows.total[last], rows.shown[last]
		sums.outline = p.outline()
		sums.below(0)
	}
	all := func(yield func(site) bool) {
		for i, sum := range sums.sites {
			if sum.cum.IsZero() {
				continue
			}
			report.Sites++
			if !yield(site{sum.flat, sum.cum, uint32(i)}) {
				return
			}
		}
	}
	for _, s := range firstOf(all, n, func(a, b site) int { return a.compare(&b, w, byCum, names) }) {
		report.Rows = append(report.Rows, SiteRow{names.siteAt(s.number), s.flat, s.cum})
	}
	return report
}

// siteSums adds up the rows of an outline by call site.
type siteSums struct {
	*outline
	sites []siteSum
}

// siteSum has the sums of a call site.
type siteSum struct {
	flat, cum Value
	open      uint32 // how often it is at the node that is added and its parents
	item      uint32 // 1 + index of the last item whose tail has it
}

// below adds all rows below a node, and returns their sum. A site that calls itself counts once.
func (s *siteSums) below(node uint32) (sum Value) {
	for i := s.first[node]; i != 0; i = s.items[i-1].next {
		v := s.items[i-1].value
		_, tail := s.tree.stack(s.items[i-1].stack)
		switch {
		case len(tail) > 0:
			s.sites[tail[0]].flat.Add(v)
		case node != 0:
			s.sites[s.tree.nodes.at(int(node)).value].flat.Add(v)
		}
		for _, number := range tail {
			if site := &s.sites[number]; site.open == 0 && site.item != i {
				site.item = i
				site.cum.Add(v)
			}
		}
		sum.Add(v)
	}
	for c := s.child[node]; c != 0; c = s.next[c] {
		site := &s.sites[s.tree.nodes.at(int(c)).value]
		site.open++
		v := s.below(c)
		if site.open--; site.open == 0 {
			site.cum.Add(v)
		}
		sum.Add(v)
	}
	return sum
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
