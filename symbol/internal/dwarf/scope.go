package dwarf

import (
	std "debug/dwarf"
	"fmt"
)

// scopes holds the functions and inlined calls of a unit. spans maps addresses to innermost
// scopes, by their index in list.
type scopes struct {
	list  []scope
	spans spans
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

// claimed returns the address ranges that belong to a function.
func (s *scopes) claimed() (list []addrRange) {
	for i, p := range s.spans {
		if p.owner >= 0 && i+1 < len(s.spans) {
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
		s.spans = layOut(ranges)
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
	ranges  []ownedRange
	scratch []addrRange

	inside int32   // scope of the current level, -1 if none
	nest   []int32 // scopes of the enclosing levels
}

// readScopes reads all entries of the unit. On an error, it also returns the scopes read so
// far. (DWARF 5, 2.3)
func (u *unit) readScopes() (*scopes, []ownedRange, error) {
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
	if ab.tag == std.TagInlinedSubroutine && w.inside >= 0 {
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
			w.ranges = append(w.ranges, ownedRange{r, own})
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
		case std.AttrLowpc:
			low = u.value(c, a)
		case std.AttrHighpc:
			high = u.value(c, a)
		case std.AttrRanges:
			ranges = u.value(c, a)
		case std.AttrCallFile:
			s.callFile = uint32(u.value(c, a).u)
		case std.AttrCallLine:
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
