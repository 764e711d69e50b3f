package dwarf

import std "debug/dwarf"

// scopes holds the functions and inlined calls of a unit. spans maps addresses to innermost
// scopes, by their index in list. err is what ended the reading of the unit, if anything.
type scopes struct {
	list  []scope
	spans spans
	err   error
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

// scopeBytes is the memory per scope in bytes, including the growth of slices.
const scopeBytes = 64

// removed is the scope around what is in a function that the linker has removed.
const removed = -2

// maxNesting limits the nesting of entries. maxInlined limits the nesting of inlined calls,
// and so the frames per address. Real programs have a few dozen.
const (
	maxNesting = 1 << 12
	maxInlined = 1 << 8
)

// scopeWalk is the state of a walk through the entries of a unit.
type scopeWalk struct {
	cursor
	u       *unit
	table   abbrevTable
	list    []scope
	ranges  []ownedRange
	scratch []addrRange
}

// loadScopes reads the unit's entries, once. (DWARF 5, 2.3)
func (u *unit) loadScopes() *scopes {
	if u.scopes != nil {
		return u.scopes
	}
	w := scopeWalk{u: u, cursor: u.d.within(Info, u.die, u.end)}
	if w.table, w.err = u.table(); w.err == nil {
		w.level(-1, 0)
	}
	u.scopes = &scopes{list: w.list, spans: layOut(w.ranges), err: w.err}
	return u.scopes
}

// level reads the entries of a level and of those below it. outer is the scope around them,
// -1 if none.
func (w *scopeWalk) level(outer int32, nesting int) {
	for w.err == nil && w.off < len(w.b) {
		die := uint64(w.off)
		code := w.uleb()
		if code == 0 {
			return
		}
		ab := w.table.get(code)
		if ab == nil {
			w.fail("abbreviation %d is not in the table at %#x", code, w.u.abbrevOff)
			return
		}
		var e entry
		w.u.readEntry(&w.cursor, ab.attrs, &e)
		scope := outer
		if w.err == nil && outer != removed && (ab.tag == std.TagSubprogram || ab.tag == std.TagInlinedSubroutine) {
			scope = w.scope(die, &e, outer, ab.tag == std.TagInlinedSubroutine)
		}
		switch {
		case !ab.children:
		case nesting == maxNesting:
			w.fail("entries nest deeper than %d", maxNesting)
		default:
			w.level(scope, nesting+1)
		}
		if nesting == 0 { // after the root
			return
		}
	}
}

// scope adds a function or an inlined call, and returns the scope that its children are in:
// its own if it has code. GNU ld leaves removed functions at address 0, where firmware has code;
// of those, a function has a symbol there.
func (w *scopeWalk) scope(die uint64, e *entry, outer int32, inlined bool) int32 {
	list, err := w.u.appendRanges(w.scratch[:0], e)
	w.scratch = list
	if w.err = err; err != nil || len(list) == 0 {
		return outer
	}
	if !inlined && list[0].low == 0 && w.d.Symbol != nil && w.d.Symbol(0) == "" {
		return removed
	}
	s := scope{die: die, low: list[0].low, parent: -1, callFile: uint32(e[atCallFile].u), callLine: uint32(e[atCallLine].u)}
	if inlined && outer >= 0 {
		s.parent, s.depth = outer, w.list[outer].depth+1
	}
	if s.depth > maxInlined {
		w.fail("calls are inlined into each other deeper than %d", maxInlined)
	}
	w.spend(0, int64(scopeBytes+2*rangeBytes*len(list)))
	w.list = append(w.list, s)
	w.ranges = w.d.claim(w.ranges, list, len(w.list)-1)
	return int32(len(w.list) - 1)
}
