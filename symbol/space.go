package symbol

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
	"sync"
)

// Mapping is a part of a module in memory, [Start, End).
type Mapping struct {
	Start, End uint64
	Exec       bool
	Module     *Module // nil: memory without a file
	// Offset is the offset in the module's file of what is at Start; or its
	// address in the module, if Relative.
	Offset   uint64
	Relative bool
}

// Space is the memory map of a process at one moment. It does not
// change.
type Space struct {
	// ID distinguishes the spaces of one [Timeline]; it grows with time.
	ID int

	base   *spaceBase
	recent []Mapping // mapped since base, later ones cover earlier ones
}

// spaceBase is mappings that do not overlap, shared by the spaces that begin
// with them.
type spaceBase struct {
	list []Mapping // by Start

	once  sync.Once
	low31 []low31Range
	reach []uint64 // of each node of an implicit tree over low31: the highest end below it
}

// low31Range is the low 31 bits of the addresses of an executable mapping.
type low31Range struct {
	low, end uint64 // end may pass 2^31, and then goes on at 0
	mapping  int32
}

// low31Mask has the bits of a value that every encoder keeps. (BT-LOSS-1)
const low31Mask = 1<<31 - 1

// Find returns the mapping that holds an address, nil if there is none.
func (s *Space) Find(addr uint64) *Mapping {
	for i := len(s.recent) - 1; i >= 0; i-- {
		if m := &s.recent[i]; m.Start <= addr && addr < m.End {
			return m
		}
	}
	list := s.base.list
	i := sort.Search(len(list), func(i int) bool { return list[i].End > addr })
	if i < len(list) && list[i].Start <= addr {
		return &list[i]
	}
	return nil
}

// Exec reports whether an address is executable.
func (s *Space) Exec(addr uint64) bool {
	m := s.Find(addr)
	return m != nil && m.Exec
}

// Mappings returns all mappings, by address; none overlaps another.
func (s *Space) Mappings() []Mapping {
	if len(s.recent) == 0 {
		return slices.Clone(s.base.list)
	}
	return disjoint(slices.Concat(s.base.list, s.recent))
}

// newSpace returns a space of mappings, of which later ones cover earlier ones as
// mmap does it.
func newSpace(id int, list []Mapping) *Space {
	return &Space{ID: id, base: &spaceBase{list: disjoint(list)}}
}

// disjoint returns mappings by address, of which none overlaps another; where
// they did, the later one in list counts.
func disjoint(list []Mapping) []Mapping {
	order := make([]int, 0, len(list)) // of what is left to begin, by Start
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

// maxCandidates is the most addresses that are weighed for one.
const maxCandidates = 64

// appendMatches appends every executable address that has the low 31 bits of
// low, and reports whether these are all: it stops after maxCandidates mappings.
func (s *Space) appendMatches(dst []uint64, low uint64) (_ []uint64, all bool) {
	low &= low31Mask
	left := maxCandidates // mappings and addresses that may still be looked at
	add := func(m *Mapping) bool {
		for a := m.Start + (low-m.Start)&low31Mask; a >= m.Start && a < m.End; a += low31Mask + 1 {
			if left--; left < 0 {
				return false
			}
			if holder := s.Find(a); holder == m && !slices.Contains(dst, a) {
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
	b := s.base
	b.once.Do(b.index)
	for _, at := range [2]uint64{low, low + low31Mask + 1} { // in a window, or past its end
		if !b.stab(1, 0, len(b.low31), at, func(r low31Range) bool { return add(&b.list[r.mapping]) }) {
			return dst, false
		}
	}
	return dst, true
}

// index sorts the executable mappings by their low 31 bits.
func (b *spaceBase) index() {
	for i, m := range b.list {
		if m.Exec {
			low := m.Start & low31Mask
			b.low31 = append(b.low31, low31Range{low: low, end: low + m.End - m.Start, mapping: int32(i)})
		}
	}
	slices.SortFunc(b.low31, func(a, b low31Range) int { return cmp.Compare(a.low, b.low) })
	b.reach = make([]uint64, 4*len(b.low31))
	b.build(1, 0, len(b.low31))
}

// build fills in reach for node, which stands for low31[from:to].
func (b *spaceBase) build(node, from, to int) uint64 {
	switch to - from {
	case 0:
		return 0
	case 1:
		b.reach[node] = b.low31[from].end
	default:
		mid := (from + to) / 2
		b.reach[node] = max(b.build(2*node, from, mid), b.build(2*node+1, mid, to))
	}
	return b.reach[node]
}

// stab calls each for the ranges that hold at, until it returns false, and
// reports whether it never did.
func (b *spaceBase) stab(node, from, to int, at uint64, each func(low31Range) bool) bool {
	if from >= to || b.reach[node] <= at || b.low31[from].low > at {
		return true
	}
	if to-from == 1 {
		return each(b.low31[from])
	}
	mid := (from + to) / 2
	return b.stab(2*node, from, mid, at, each) && b.stab(2*node+1, mid, to, at, each)
}
