package dwarf

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// scopes holds the functions and inlined calls of a unit. spans maps addresses to innermost
// scopes and does not overlap.
type scopes struct {
	list  []scope
	spans []span // by start; each ends where the next begins
}

// scope is a function or an inlined call.
type scope struct {
	die      uint64 // its entry, in info
	low      uint64 // where its code begins
	parent   int32  // scope it was inlined into, -1 for a function
	callFile uint32 // of an inlined call
	callLine uint32
	depth    uint32 // number of enclosing scopes
}

type span struct {
	start uint64
	scope int32 // -1: no code of this unit
}

// scopeRange is a range of a scope before ranges are laid out.
type scopeRange struct {
	addrRange
	scope int32
}

// innermost finds the scope of an address.
func (s *scopes) innermost(pc uint64) int32 {
	i := sort.Search(len(s.spans), func(i int) bool { return s.spans[i].start > pc })
	if i == 0 {
		return -1
	}
	return s.spans[i-1].scope
}

// claimed returns the address ranges that belong to a function.
func (s *scopes) claimed() (list []addrRange) {
	for i, p := range s.spans {
		if p.scope >= 0 && i+1 < len(s.spans) {
			list = append(list, addrRange{p.start, s.spans[i+1].start})
		}
	}
	return list
}

// loadScopes reads the unit's entries, once.
func (u *unit) loadScopes() (*scopes, error) {
	if u.scopes == nil {
		s, ranges, err := u.readScopes()
		u.scopeErr = err
		s.layOut(ranges)
		u.scopes = s
	}
	return u.scopes, u.scopeErr
}

// scopeBytes is the memory per scope in bytes, including the growth of slices.
const scopeBytes = 64

// maxNesting limits the nesting of entries. maxInlined limits the nesting of inlined calls,
// and so the frames per address. Real programs have a few dozen.
const (
	maxNesting = 1 << 12
	maxInlined = 1 << 8
)

// scopeWalk is the state of a walk through the entries of a unit.
type scopeWalk struct {
	*unit
	cursor
	scopes  *scopes
	ranges  []scopeRange
	scratch []addrRange

	inside int32   // scope of the current level, -1 if none
	nest   []int32 // scopes of the enclosing levels
}

// readScopes reads all entries of the unit. On an error, it also returns the scopes read so
// far. (DWARF 5, 2.3)
func (u *unit) readScopes() (*scopes, []scopeRange, error) {
	w := scopeWalk{unit: u, scopes: &scopes{}, inside: -1}
	t, err := u.table()
	if err != nil {
		return w.scopes, nil, err
	}
	w.cursor = u.d.at(u.d.Info[:u.end], u.die)
	for more := true; more && uint64(w.cursor.off) < u.end; {
		if more, err = w.entry(t); err != nil {
			break
		}
	}
	return w.scopes, w.ranges, err
}

// entry reads an entry, and reports whether another one follows.
func (w *scopeWalk) entry(t *abbrevTable) (more bool, err error) {
	if !w.d.Budget.Step(1) {
		return false, ErrBudget
	}
	die := uint64(w.cursor.off)
	code := w.uleb()
	if code == 0 { // the end of a level
		if len(w.nest) == 0 {
			return false, nil
		}
		w.inside, w.nest = w.nest[len(w.nest)-1], w.nest[:len(w.nest)-1]
		return true, nil
	}
	ab := t.get(code)
	if ab == nil {
		return false, fmt.Errorf(".debug_info %#x: abbreviation %d is not in the table at %#x", die, code, w.abbrevOff)
	}
	child := w.inside
	switch {
	case ab.code:
		child, err = w.scope(die, ab)
	case ab.size >= 0:
		w.cursor.skip(uint64(ab.size))
	default:
		w.skipEntry(&w.cursor, ab)
	}
	switch {
	case err != nil:
		return false, err
	case w.bad:
		return false, fmt.Errorf(".debug_info %#x: entry ends beyond its unit", die)
	case !ab.children:
		return len(w.nest) > 0, nil // a root may have no children
	case len(w.nest) == maxNesting:
		return false, fmt.Errorf(".debug_info %#x: entries nest deeper than %d", die, maxNesting)
	}
	w.nest = append(w.nest, w.inside)
	w.inside = child
	return true, nil
}

// scope reads a function or an inlined call, and returns the scope that its children
// are in: its own if it has code.
func (w *scopeWalk) scope(die uint64, ab *abbrev) (int32, error) {
	s, list, err := w.readScope(&w.cursor, ab, w.scratch[:0])
	w.scratch = list
	if err != nil || len(list) == 0 {
		return w.inside, err
	}
	s.die, s.parent, s.low = die, -1, list[0].low
	if ab.tag == tagInlinedSubroutine && w.inside >= 0 {
		s.parent, s.depth = w.inside, w.scopes.list[w.inside].depth+1
	}
	if s.depth > maxInlined {
		return 0, fmt.Errorf(".debug_info %#x: calls are inlined into each other deeper than %d", die, maxInlined)
	}
	if !w.d.Budget.Alloc(int64(scopeBytes + 2*rangeBytes*len(list))) {
		return 0, ErrBudget
	}
	own := int32(len(w.scopes.list))
	w.scopes.list = append(w.scopes.list, s)
	for _, r := range list {
		if w.d.loaded(r) {
			w.ranges = append(w.ranges, scopeRange{r, own})
		}
	}
	return own, nil
}

// skipEntry moves past an entry's attributes.
func (u *unit) skipEntry(c *cursor, ab *abbrev) {
	u.d.Budget.Step(len(ab.attrs))
	for _, a := range ab.attrs {
		u.skip(c, a)
	}
}

// readScope reads the attributes of a function or an inlined call and appends
// its ranges to list.
func (u *unit) readScope(c *cursor, ab *abbrev, list []addrRange) (s scope, _ []addrRange, err error) {
	var low, high, ranges value
	u.d.Budget.Step(len(ab.attrs))
	for _, a := range ab.attrs {
		switch a.attr {
		case attrLowPC:
			low = u.value(c, a)
		case attrHighPC:
			high = u.value(c, a)
		case attrRanges:
			ranges = u.value(c, a)
		case attrCallFile:
			s.callFile = uint32(u.value(c, a).u)
		case attrCallLine:
			s.callLine = uint32(u.value(c, a).u)
		default:
			u.skip(c, a)
		}
	}
	if c.bad || low.form == 0 && ranges.form == 0 {
		return s, list, nil
	}
	list, err = u.appendRanges(list, low, high, ranges)
	return s, list, err
}

// layOut converts nested ranges to spans. If two ranges are equal, the scope of the later
// entry is the inner one.
func (s *scopes) layOut(ranges []scopeRange) {
	slices.SortFunc(ranges, func(a, b scopeRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.high, a.high), cmp.Compare(a.scope, b.scope))
	})
	s.spans = make([]span, 0, len(ranges)+len(ranges)/4)
	begin := func(at uint64, scope int32) {
		n := len(s.spans)
		switch {
		case n > 0 && s.spans[n-1].start == at:
			s.spans[n-1].scope = scope
		case n > 0 && s.spans[n-1].scope == scope:
		default:
			s.spans = append(s.spans, span{at, scope})
		}
	}
	var open []scopeRange
	closeUntil := func(at uint64) {
		for len(open) > 0 && open[len(open)-1].high <= at {
			end := open[len(open)-1].high
			open = open[:len(open)-1]
			outer := int32(-1)
			if len(open) > 0 {
				outer = open[len(open)-1].scope
			}
			begin(end, outer)
		}
	}
	for _, r := range ranges {
		if r.low >= r.high {
			continue
		}
		closeUntil(r.low)
		if len(open) > 0 {
			r.high = min(r.high, open[len(open)-1].high)
		}
		begin(r.low, r.scope)
		open = append(open, r)
	}
	closeUntil(^uint64(0))
}
