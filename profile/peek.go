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
	k := &peek{names: p.names(), match: match, rows: map[uint32]*PeekRow{}, calls: map[call]Value{}}
	k.matches = make([]uint8, k.names.count())
	rows := p.rows()
	for row, v := range p.lastRows() {
		if !k.add(rows.stack(row), v) {
			return nil, fmt.Errorf("%s matches over %d functions, expected fewer", match, maxPeeked)
		}
	}
	return k.report(w), nil
}

// peek collects the report of Peek.
type peek struct {
	names   *names
	match   *regexp.Regexp
	matches []uint8 // by site
	rows    map[uint32]*PeekRow
	calls   map[call]Value
}

// Values of peek.matches.
const (
	notTried uint8 = iota
	hit
	miss
)

// call is a pair of a matching site and its caller or callee.
type call struct {
	site, other uint32
	callee      bool
}

const otherCalls = 1<<32 - 1 // the value of call.other beyond the limit

// add adds a stack. It returns false if too many sites match.
func (k *peek) add(stack []uint32, v Value) bool {
	for i, s := range stack {
		if !k.hit(s) || slices.Contains(stack[:i], s) { // a recursive call counts once
			continue
		}
		r := k.rows[s]
		if r == nil {
			if len(k.rows) == maxPeeked {
				return false
			}
			r = &PeekRow{SiteRow: SiteRow{Site: k.names.siteAt(s)}}
			k.rows[s] = r
		}
		r.Cum.Add(v)
		if i == 0 {
			r.Flat.Add(v)
		} else {
			k.addCall(call{s, stack[i-1], true}, v)
		}
		if i+1 < len(stack) {
			k.addCall(call{s, stack[i+1], false}, v)
		}
	}
	return true
}

// hit reports whether the function of a site matches.
func (k *peek) hit(site uint32) bool {
	m := &k.matches[site]
	if *m == notTried {
		*m = miss
		if k.match.MatchString(k.names.siteAt(site).Func) {
			*m = hit
		}
	}
	return *m == hit
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
		r, s := k.rows[c.site], Site{Func: "(other calls)"}
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
