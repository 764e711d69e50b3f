package symbol

import (
	"cmp"
	"container/heap"
	"errors"
	"slices"
	"sort"
)

// Mapping is a part of a module in memory, [Start, End).
type Mapping struct {
	Start, End uint64
	Exec       bool
	Module     *Module // nil: memory without a file
	// Offset is the offset in the module's file of the byte at Start; if Relative, it
	// is the module's own address of that byte.
	Offset   uint64
	Relative bool
}

// timeline is the memory map of a process as a log tells of its changes. The zero value
// knows nothing.
type timeline struct {
	now     space
	modules map[uint64]*Module // of markup, by their numbers
	wide    bool               // a mapping passes 32 bits

	changed bool  // since last
	last    space // at the last settle
}

// maxMapped is the most mappings and modules between two resets: as many mappings as
// Linux allows a process.
const maxMapped = 1 << 16

var errTooMany = errors.New("more than 65,536 since the last reset")

// known reports whether anything is known.
func (t *timeline) known() bool { return len(t.now.list)+len(t.now.recent) > 0 }

// settle ends a series of changes. It reports whether the map differs from the one at
// the last settle.
func (t *timeline) settle() bool {
	if !t.changed {
		return false
	}
	t.changed = false
	s := &t.now
	if len(s.recent) > s.maxRecent() || len(s.list) == 0 || len(s.list)+len(s.recent) <= 256 {
		s.consolidate()
	}
	if s.equal(&t.last) {
		t.now = t.last // with its low ranges
		return false
	}
	t.last = *s
	return true
}

// reset forgets everything.
func (t *timeline) reset() {
	t.now, t.modules, t.wide, t.changed = space{}, nil, false, true
}

// add adds a mapping, which replaces what it overlaps. It fails if there are too many.
func (t *timeline) add(m Mapping) error {
	if m.Start >= m.End {
		return nil
	}
	s := &t.now
	if len(s.recent) > s.maxRecent() {
		s.consolidate()
	}
	if len(s.list) >= maxMapped {
		return errTooMany
	}
	s.recent = append(s.recent, m)
	t.changed, t.wide = true, t.wide || m.End > 1<<32
	return nil
}

// set replaces everything by a snapshot.
func (t *timeline) set(list []Mapping) {
	t.reset()
	t.now.list = disjoint(list)
	t.wide = slices.ContainsFunc(list, func(m Mapping) bool { return m.End > max(1<<32, m.Start) })
}

// space is a memory map.
type space struct {
	list   []Mapping  // by Start; none overlaps another
	recent []Mapping  // mapped since list; later ones cover earlier ones
	low    []lowRange // of list, nil until they are needed
}

// maxRecent bounds what find looks through before it searches.
func (s *space) maxRecent() int {
	if len(s.list) == 0 {
		return maxMapped
	}
	return 64 + len(s.list)/32
}

// consolidate makes recent a part of list. Neither is changed: others may share them.
func (s *space) consolidate() {
	*s = space{list: disjoint(slices.Concat(s.list, s.recent))}
}

// equal reports whether two spaces hold the same, told in the same order.
func (s *space) equal(o *space) bool {
	same := func(a, b Mapping) bool {
		if a.Module != b.Module && (a.Module == nil || b.Module == nil || *a.Module != *b.Module) {
			return false
		}
		a.Module, b.Module = nil, nil
		return a == b
	}
	return slices.EqualFunc(s.recent, o.recent, same) && slices.EqualFunc(s.list, o.list, same)
}

// find returns the mapping that holds an address, nil if there is none.
func (s *space) find(addr uint64) *Mapping {
	for i := len(s.recent) - 1; i >= 0; i-- {
		if m := &s.recent[i]; m.Start <= addr && addr < m.End {
			return m
		}
	}
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].End > addr })
	if i < len(s.list) && s.list[i].Start <= addr {
		return &s.list[i]
	}
	return nil
}

// executable reports whether an address is executable.
func (s *space) executable(addr uint64) bool {
	m := s.find(addr)
	return m != nil && m.Exec
}

// disjoint returns mappings by address, of which none overlaps another; where
// they did, the later one in list counts.
func disjoint(list []Mapping) []Mapping {
	order := make([]int, 0, len(list)) // indices of mappings that have not begun, by Start
	edges := make([]uint64, 0, 2*len(list))
	for i, m := range list {
		if m.Start < m.End {
			order = append(order, i)
			edges = append(edges, m.Start, m.End)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(list[a].Start, list[b].Start) })
	slices.Sort(edges)
	edges = slices.Compact(edges)
	out := make([]Mapping, 0, len(order))
	var active latest
	last := -1 // index of the mapping that out ends with
	for e := 0; e+1 < len(edges); e++ {
		at, next := edges[e], edges[e+1]
		for len(order) > 0 && list[order[0]].Start <= at {
			heap.Push(&active, order[0])
			order = order[1:]
		}
		for len(active) > 0 && list[active[0]].End <= at {
			heap.Pop(&active)
		}
		if len(active) == 0 {
			last = -1
			continue
		}
		if active[0] == last {
			out[len(out)-1].End = next
			continue
		}
		last = active[0]
		m := list[last]
		m.Offset += at - m.Start
		m.Start, m.End = at, next
		out = append(out, m)
	}
	return slices.Clip(out)
}

// latest is a heap of indices, the highest first.
type latest []int

func (l latest) Len() int           { return len(l) }
func (l latest) Less(i, j int) bool { return l[i] > l[j] }
func (l latest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *latest) Push(x any)        { *l = append(*l, x.(int)) }
func (l *latest) Pop() any {
	n := len(*l) - 1
	x := (*l)[n]
	*l = (*l)[:n]
	return x
}

// low31Mask has the bits of a value that every encoder keeps. (BT-LOSS-1)
const low31Mask = 1<<31 - 1

// maxCandidates is the most addresses that are weighed for one.
const maxCandidates = 64

// appendMatches appends every executable address that has the low 31 bits of
// low, and reports whether these are all: it stops after maxCandidates mappings.
func (s *space) appendMatches(dst []uint64, low uint64) (_ []uint64, all bool) {
	low &= low31Mask
	left := maxCandidates // mappings and addresses that may still be looked at
	add := func(m *Mapping) bool {
		for a := m.Start + (low-m.Start)&low31Mask; a >= m.Start && a < m.End; a += low31Mask + 1 {
			if left--; left < 0 {
				return false
			}
			if s.find(a) == m && !slices.Contains(dst, a) {
				dst = append(dst, a)
			}
		}
		return true
	}
	for i := range s.recent {
		if m := &s.recent[i]; m.Exec && !add(m) {
			return dst, false
		}
	}
	if s.low == nil {
		s.low = lowRanges(s.list)
	}
	for _, at := range [2]uint64{low, low + low31Mask + 1} { // in a window, or past its end
		r := s.low
		i := sort.Search(len(r), func(i int) bool { return r[i].low > at }) - 1
		for looked := 0; i >= 0 && r[i].reach > at; i, looked = i-1, looked+1 {
			if looked == maxLooked || r[i].end > at && !add(&s.list[r[i].mapping]) {
				return dst, false
			}
		}
	}
	return dst, true
}

// maxLooked is how many mappings are looked at for one address in a window.
const maxLooked = 1 << 10

// lowRange is the low 31 bits of the addresses of an executable mapping.
type lowRange struct {
	low, end uint64 // end may pass 2^31, and then goes on at 0
	reach    uint64 // the highest end of the ranges up to this one
	mapping  int32
}

// lowRanges returns the ranges of executable mappings, by low.
func lowRanges(list []Mapping) []lowRange {
	ranges := make([]lowRange, 0, len(list))
	for i, m := range list {
		if m.Exec {
			low := m.Start & low31Mask
			ranges = append(ranges, lowRange{low: low, end: low + m.End - m.Start, mapping: int32(i)})
		}
	}
	slices.SortFunc(ranges, func(a, b lowRange) int { return cmp.Compare(a.low, b.low) })
	reach := uint64(0)
	for i := range ranges {
		reach = max(reach, ranges[i].end)
		ranges[i].reach = reach
	}
	return ranges
}
