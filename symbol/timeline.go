package symbol

import (
	"errors"
	"slices"
)

// Timeline is the memory maps of a process, one after the other, as a log or
// files tell of them. The zero value knows of none.
type Timeline struct {
	base    *spaceBase // nil: empty
	recent  []Mapping  // since base; what is there already is never changed
	modules map[uint64]*Module
	wide    bool   // a mapping passes 32 bits
	space   *Space // nil: to be made
	last    *Space // that was returned
	id      int
}

// maxMapped is the most mappings and modules between two resets: as many
// mappings as Linux allows a process.
const maxMapped = 1 << 16

var errTooMany = errors.New("more than 65,536 since the last reset")

// Space returns what is where now; nil if nothing is known of it.
func (t *Timeline) Space() *Space {
	if t.base == nil && len(t.recent) == 0 {
		return nil
	}
	if t.space != nil {
		return t.space
	}
	if t.base == nil || len(t.recent) > t.maxRecent() || len(t.base.list)+len(t.recent) <= 256 {
		t.consolidate()
	}
	s := &Space{base: t.base, recent: t.recent[:len(t.recent):len(t.recent)]}
	if t.last != nil && s.equal(t.last) {
		s = t.last // told again, as before each dump: what is cached for it stays good
	} else {
		t.id++
		s.ID = t.id
	}
	t.space, t.last = s, s
	return s
}

// maxRecent bounds what [Space.Find] looks through before it searches.
func (t *Timeline) maxRecent() int {
	if t.base == nil {
		return maxMapped
	}
	return 64 + len(t.base.list)/32
}

func (t *Timeline) consolidate() {
	var list []Mapping
	if t.base != nil {
		list = t.base.list
	}
	t.base = &spaceBase{list: disjoint(slices.Concat(list, t.recent))}
	t.recent = nil
}

// equal reports whether two spaces hold the same, told in the same order.
func (s *Space) equal(o *Space) bool {
	same := func(a, b Mapping) bool {
		if a.Module != b.Module && (a.Module == nil || b.Module == nil || *a.Module != *b.Module) {
			return false
		}
		a.Module, b.Module = nil, nil
		return a == b
	}
	return slices.EqualFunc(s.recent, o.recent, same) &&
		(s.base == o.base || slices.EqualFunc(s.base.list, o.base.list, same))
}

// Reset forgets everything: a process begins, or its map is told anew. Until a
// mapping is added, nothing is known, as in the zero value.
func (t *Timeline) Reset() {
	t.base, t.recent, t.modules, t.space, t.wide = nil, nil, nil, nil, false
}

// Word returns how many bits an address has that is mapped: 64 if one passes 32 bits,
// 0 if that is not known.
func (t *Timeline) Word() int {
	if t.wide {
		return 64
	}
	return 0
}

// Map adds a mapping, which replaces what it overlaps. It fails if there are too many.
func (t *Timeline) Map(m Mapping) error {
	if len(t.recent) > t.maxRecent() {
		t.consolidate()
	}
	if t.base != nil && len(t.base.list) >= maxMapped {
		return errTooMany
	}
	t.recent, t.space, t.wide = append(t.recent, m), nil, t.wide || m.End > 1<<32
	return nil
}

// Set replaces everything by a snapshot.
func (t *Timeline) Set(list []Mapping) {
	t.Reset()
	if list = disjoint(list); len(list) > 0 {
		t.base = &spaceBase{list: list}
		t.wide = list[len(list)-1].End > 1<<32
	}
}
