package symbol

import (
	"errors"
	"hash/maphash"
	"slices"
	"sort"
)

// Mapping is a part of a module in memory, [Start, End).
type Mapping struct {
	Start, End uint64
	Exec       bool
	Module     *Module // nil: memory without a file
	// Offset is the offset of Start in the module's file, in bytes. If Relative is set, it
	// is the module's own address of Start.
	Offset   uint64
	Relative bool
}

// timeline is the memory map of a process over time. The zero value is an empty map.
type timeline struct {
	space
	told    uint64 // hash of all mappings since the last reset, in order
	settled uint64 // value of told at the last settle
}

// maxMapped is the most mappings of a process. Linux allows as many.
const maxMapped = 1 << 16

var errTooMany = errors.New("more than 65,536 since the last reset")

// known reports whether the map has a mapping.
func (t *timeline) known() bool { return len(t.list) > 0 }

// settle ends a series of changes. It reports whether the log gave other mappings, or
// another order of mappings, than at the last settle.
func (t *timeline) settle() bool {
	changed := t.told != t.settled
	t.settled = t.told
	return changed
}

// reset removes all mappings. It keeps settled.
func (t *timeline) reset() { *t = timeline{settled: t.settled} }

// add adds a mapping, which replaces overlapped parts of others. It returns an error if there
// are more than maxMapped.
func (t *timeline) add(m Mapping) error {
	if len(t.list) >= maxMapped {
		return errTooMany
	}
	t.insert(m)
	return nil
}

// set replaces everything by a snapshot.
func (t *timeline) set(list []Mapping) {
	t.reset()
	for _, m := range list {
		t.insert(m)
	}
}

var hashSeed = maphash.MakeSeed()

// insert is add without the limit.
func (t *timeline) insert(m Mapping) {
	if m.Start >= m.End {
		return
	}
	key := struct {
		told    uint64
		mapping Mapping
		module  Module
	}{t.told, m, Module{}}
	if m.Module != nil { // known by its value
		key.mapping.Module, key.module = nil, *m.Module
	}
	t.told = maphash.Comparable(hashSeed, key)
	t.exec = nil
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].End > m.Start })
	j := i + sort.Search(len(t.list)-i, func(j int) bool { return t.list[i+j].Start >= m.End })
	var parts []*Mapping // m, and the rest of the first and the last that it overlaps
	if i < j && t.list[i].Start < m.Start {
		before := *t.list[i]
		before.End = m.Start
		parts = append(parts, &before)
	}
	parts = append(parts, &m)
	if i < j && t.list[j-1].End > m.End {
		after := *t.list[j-1]
		after.Offset += m.End - after.Start
		after.Start = m.End
		parts = append(parts, &after)
	}
	t.list = slices.Replace(t.list, i, j, parts...)
}

// space is a memory map.
type space struct {
	list []*Mapping // by Start, without overlaps; a Mapping never changes
	exec spans      // the executable ones, nil until needed
}

// find returns the mapping that holds an address, nil if there is none.
func (s *space) find(addr uint64) *Mapping {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].End > addr })
	if i < len(s.list) && s.list[i].Start <= addr {
		return s.list[i]
	}
	return nil
}

// executable reports whether an address is executable.
func (s *space) executable(addr uint64) bool {
	m := s.find(addr)
	return m != nil && m.Exec
}

// low31Mask has the bits of a value that every encoder keeps. (BT-LOSS-1)
const low31Mask = 1<<31 - 1

// maxCandidates is the most candidates for a lossy address.
const maxCandidates = 64

// maxExecutable is the most executable mappings among which lossy addresses are searched.
const maxExecutable = 1 << 12

// appendMatches appends the executable addresses that have the low 31 bits of low. all is
// false if there are more than maxCandidates or maxExecutable.
func (s *space) appendMatches(dst []uint64, low uint64) (_ []uint64, all bool) {
	if s.exec == nil {
		s.exec = spans{}
		for _, m := range s.list {
			if m.Exec {
				s.exec = append(s.exec, span{m.Start, m.End})
			}
		}
	}
	if len(s.exec) > maxExecutable {
		return dst, false
	}
	for _, m := range s.exec {
		for a := m.low + (low-m.low)&low31Mask; a >= m.low && a < m.high; a += low31Mask + 1 {
			if len(dst) == maxCandidates {
				return dst, false
			}
			dst = append(dst, a)
		}
	}
	return dst, true
}
