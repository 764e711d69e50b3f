package profile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// PeekRow is a call site with its callers and callees.
type PeekRow struct {
	SiteRow
	// In Callers and Callees, Cum is the sum of the call paths with this call, and Flat is 0.
	// Calls beyond 2,000,000 are added up as "(other calls)".
	Callers, Callees []SiteRow
}

// Limits of Peek: matching sites, and calls counted separately.
const (
	maxPeeked = 10_000
	maxCalls  = 2_000_000
)

// Peek returns the call sites of the last dump whose function matches, each with its
// callers and callees, the heaviest first. It fails if more than 10,000 sites match.
func (p *Profile) Peek(match *regexp.Regexp, w Weight) ([]PeekRow, error) {
	if match == nil {
		return nil, fmt.Errorf("profile: expected a regular expression")
	}
	rows := p.rows()
	_, last := p.last()
	k := &peek{names: rows.names, rows: rows, dump: last, match: match, calls: map[call]Value{}}
	k.known, k.innermost = make([]*PeekRow, k.names.count()), make([]int, k.names.count())
	if last >= 0 {
		p.lastOutline().visit(k, 0)
	}
	if len(k.found) > maxPeeked {
		return nil, fmt.Errorf("%s matches over %d functions, expected fewer", match, maxPeeked)
	}
	return k.report(w), nil
}

// peek is a visitor that collects the report of Peek.
type peek struct {
	names *names
	rows  *rows
	dump  int
	match *regexp.Regexp
	known []*PeekRow // by site, nil if not known yet, noMatch if the function does not match
	found []*PeekRow // of the sites that match
	calls map[call]Value

	open      []openCall
	innermost []int // by site: 1 + index of the innermost one in open
}

var noMatch = new(PeekRow)

// call is a pair of a matching site and its caller or callee.
type call struct {
	row    *PeekRow
	other  uint32
	callee bool
}

const otherCalls = 1<<32 - 1 // the value of call.other beyond the limit

// openCall is a call site that has been entered. A recursive call counts once, where it is
// innermost: so own leaves out the rows in which the same site is below.
type openCall struct {
	site  uint32
	outer int // 1 + index of the same site outside of this one, 0 if there is none
	own   wide
	all   wide // all rows below
	again wide // of the callee that is open: rows in which this site is below
}

func (k *peek) enter(site uint32) {
	k.open = append(k.open, openCall{site: site, outer: k.innermost[site]})
	k.innermost[site] = len(k.open)
}

func (k *peek) item(row uint32) {
	if last := len(k.open) - 1; last >= 0 {
		v := k.rows.value(int(row), k.dump)
		x := &k.open[last]
		x.own.add(wideOf(v))
		x.all.add(wideOf(v))
		if r := k.row(x.site); r != noMatch {
			r.Flat.Add(v)
		}
	}
}

func (k *peek) leave() {
	last := len(k.open) - 1
	x := k.open[last]
	k.open = k.open[:last]
	k.innermost[x.site] = x.outer
	r := k.row(x.site)
	if own := x.own.value(); r != noMatch && !own.IsZero() {
		r.Cum.Add(own)
		if last > 0 {
			k.addCall(call{r, k.open[last-1].site, false}, own)
		}
	}
	if x.outer > 0 {
		k.open[x.outer-1].again.add(x.all)
	}
	if last == 0 {
		return
	}
	caller := &k.open[last-1]
	caller.all.add(x.all)
	through := x.all
	through.sub(caller.again)
	caller.again = wide{}
	caller.own.add(through)
	if v := through.value(); !v.IsZero() {
		if r := k.row(caller.site); r != noMatch {
			k.addCall(call{r, x.site, true}, v)
		}
	}
}

// row returns the row of a site, or noMatch.
func (k *peek) row(number uint32) *PeekRow {
	r := &k.known[number]
	if *r == nil {
		*r = noMatch
		if site := k.names.siteAt(number); k.match.MatchString(site.Func) {
			*r = &PeekRow{SiteRow: SiteRow{Site: site}}
			k.found = append(k.found, *r)
		}
	}
	return *r
}

func (k *peek) addCall(c call, v Value) {
	sum, known := k.calls[c]
	if !known && len(k.calls) >= maxCalls {
		c.other = otherCalls
		sum = k.calls[c]
	}
	sum.Add(v)
	k.calls[c] = sum
}

// report returns the rows in order.
func (k *peek) report(w Weight) (list []PeekRow) {
	for c, v := range k.calls {
		r, s := c.row, Site{Func: "(other calls)"}
		if c.other != otherCalls {
			s = k.names.siteAt(c.other)
		}
		if c.callee {
			r.Callees = append(r.Callees, SiteRow{Site: s, Cum: v})
		} else {
			r.Callers = append(r.Callers, SiteRow{Site: s, Cum: v})
		}
	}
	order := func(a, b SiteRow) int {
		return cmp.Or(cmp.Compare(w.Of(b.Cum), w.Of(a.Cum)), cmp.Compare(a.Site.String(), b.Site.String()))
	}
	for _, r := range k.found {
		slices.SortFunc(r.Callers, order)
		slices.SortFunc(r.Callees, order)
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b PeekRow) int { return order(a.SiteRow, b.SiteRow) })
	return list
}
