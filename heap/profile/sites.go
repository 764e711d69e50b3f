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
	sums := siteSums{rows: rows, dump: last, flat: make([]Value, names.count()), cum: make([]Value, names.count()), open: make([]uint32, names.count())}
	var report SiteReport
	if last >= 0 {
		report.Total, report.Paths = rows.total[last], rows.shown[last]
		p.lastOutline().visit(&sums, 0)
	}
	all := func(yield func(site) bool) {
		for i, cum := range sums.cum {
			if cum.IsZero() {
				continue
			}
			report.Sites++
			if !yield(site{sums.flat[i], cum, uint32(i)}) {
				return
			}
		}
	}
	for _, s := range firstOf(all, n, func(a, b site) int { return a.compare(&b, w, byCum, names) }) {
		report.Rows = append(report.Rows, SiteRow{names.siteAt(s.number), s.flat, s.cum})
	}
	return report
}

// siteSums is a visitor that adds up the rows by call site.
type siteSums struct {
	rows      *rows
	dump      int
	flat, cum []Value  // by site
	open      []uint32 // by site: how often it has been entered and not left
	below     []openSite
}

// openSite is a site that has been entered, and the sum of the rows below it so far.
type openSite struct {
	site uint32
	sum  Value
}

func (s *siteSums) enter(site uint32) {
	s.below = append(s.below, openSite{site: site})
	s.open[site]++
}

func (s *siteSums) item(row uint32) {
	if last := len(s.below) - 1; last >= 0 {
		v := s.rows.value(int(row), s.dump)
		s.flat[s.below[last].site].Add(v)
		s.below[last].sum.Add(v)
	}
}

func (s *siteSums) leave() {
	last := len(s.below) - 1
	x := s.below[last]
	s.below = s.below[:last]
	if s.open[x.site]--; s.open[x.site] == 0 { // a recursive call counts once
		s.cum[x.site].Add(x.sum)
	}
	if last > 0 {
		s.below[last-1].sum.Add(x.sum)
	}
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
