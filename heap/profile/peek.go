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
	k := &peek{names: p.names(), match: match, calls: map[call]Value{}}
	k.known = make([]*PeekRow, k.names.count())
	d, _ := p.last()
	for stack, a := range k.names.showing(d.Allocations()) {
		k.add(stack, a.Value)
		if len(k.rows) > maxPeeked {
			return nil, fmt.Errorf("%s matches over %d functions, expected fewer", match, maxPeeked)
		}
	}
	return k.report(w), nil
}

// peek collects the report of Peek.
type peek struct {
	names *names
	match *regexp.Regexp
	known []*PeekRow // by site, nil if not known yet, noMatch if the function does not match
	rows  []*PeekRow // of the sites that match
	calls map[call]Value
}

var noMatch = new(PeekRow)

// call is a pair of a matching site and its caller or callee.
type call struct {
	row    *PeekRow
	other  uint32
	callee bool
}

const otherCalls = 1<<32 - 1 // the value of call.other beyond the limit

// add adds a stack.
func (k *peek) add(stack []uint32, v Value) {
	for i, s := range stack {
		r := k.row(s)
		if r == noMatch || slices.Contains(stack[:i], s) { // a recursive call counts once
			continue
		}
		r.Cum.Add(v)
		if i == 0 {
			r.Flat.Add(v)
		} else {
			k.addCall(call{r, stack[i-1], true}, v)
		}
		if i+1 < len(stack) {
			k.addCall(call{r, stack[i+1], false}, v)
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
			k.rows = append(k.rows, *r)
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
	for _, r := range k.rows {
		slices.SortFunc(r.Callers, order)
		slices.SortFunc(r.Callees, order)
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b PeekRow) int { return order(a.SiteRow, b.SiteRow) })
	return list
}
