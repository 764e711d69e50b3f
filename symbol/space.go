package symbol

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Module is a file that a process loaded.
type Module struct {
	Name    string // path, or what the log calls it
	BuildID string // hexadecimal, "" if not known
}

// Mapping is a piece of a module in memory, [Start, End).
type Mapping struct {
	Start, End uint64
	Exec       bool
	Module     *Module // nil: memory without a file
	// Offset is where Start is in the module's file; or, if Own, which of the
	// module's own addresses it is.
	Offset uint64
	Own    bool
}

// Space is what was where in a process at one moment. It does not change.
type Space struct {
	// ID tells spaces of one [Timeline] apart; it grows with time.
	ID       int
	Mappings []Mapping // by Start, none overlaps

	folded []fold
}

// fold is an executable mapping as far as the low 31 bits tell.
type fold struct {
	low, high uint64 // high may pass 2^31, and then goes on at 0
	reach     uint64 // highest high up to here
	start     uint64
}

// lowMask is the bits of a value that every encoder keeps. (BT-LOSS-1)
const lowMask = 1<<31 - 1

// Find returns the mapping that holds an address, nil if there is none.
func (s *Space) Find(addr uint64) *Mapping {
	i := sort.Search(len(s.Mappings), func(i int) bool { return s.Mappings[i].End > addr })
	if i < len(s.Mappings) && s.Mappings[i].Start <= addr {
		return &s.Mappings[i]
	}
	return nil
}

// Exec says whether an address is executable.
func (s *Space) Exec(addr uint64) bool {
	m := s.Find(addr)
	return m != nil && m.Exec
}

// newSpace sorts mappings; where they overlap, the later one in the list counts,
// as mmap does it.
func newSpace(id int, list []Mapping) *Space {
	s := &Space{ID: id}
	for _, m := range list {
		if m.Start < m.End {
			s.place(m)
		}
	}
	for _, m := range s.Mappings {
		// What is wider than the window is every address of it.
		if m.Exec {
			low := m.Start & lowMask
			s.folded = append(s.folded, fold{low: low, high: low + m.End - m.Start, start: m.Start})
		}
	}
	slices.SortFunc(s.folded, func(a, b fold) int { return cmp.Compare(a.low, b.low) })
	reach := uint64(0)
	for i := range s.folded {
		reach = max(reach, s.folded[i].high)
		s.folded[i].reach = reach
	}
	return s
}

// place puts a mapping into the sorted list and cuts away what it covers.
func (s *Space) place(m Mapping) {
	from := sort.Search(len(s.Mappings), func(i int) bool { return s.Mappings[i].End > m.Start })
	to := from
	var left, right []Mapping
	for ; to < len(s.Mappings) && s.Mappings[to].Start < m.End; to++ {
		old := s.Mappings[to]
		if old.Start < m.Start {
			l := old
			l.End = m.Start
			left = append(left, l)
		}
		if old.End > m.End {
			r := old
			r.Offset += m.End - r.Start
			r.Start = m.End
			right = append(right, r)
		}
	}
	s.Mappings = slices.Replace(s.Mappings, from, to, append(append(left, m), right...)...)
}

// withLow appends every executable address that has the low 31 bits of low.
func (s *Space) withLow(dst []uint64, low uint64) []uint64 {
	low &= lowMask
	for _, at := range [2]uint64{low, low + lowMask + 1} { // in a window, or past its end
		i := sort.Search(len(s.folded), func(i int) bool { return s.folded[i].low > at }) - 1
		for ; i >= 0 && s.folded[i].reach > at; i-- {
			for f, off := &s.folded[i], at-s.folded[i].low; off < f.high-f.low; off += lowMask + 1 {
				if len(dst) == maxCandidates {
					return dst
				}
				if a := f.start + off; !slices.Contains(dst, a) {
					dst = append(dst, a)
				}
			}
		}
	}
	return dst
}

// maxCandidates is the most addresses that are weighed for one.
const maxCandidates = 64

// Timeline is the spaces of a process, one after the other, as a log or files
// tell of them.
type Timeline struct {
	list    []Mapping
	modules map[uint64]*Module
	space   *Space // nil: list changed since
	id      int
	told    bool
}

// Space is what is where now; nil if nothing was ever told.
func (t *Timeline) Space() *Space {
	if !t.told {
		return nil
	}
	if t.space == nil {
		t.id++
		t.space = newSpace(t.id, t.list)
	}
	return t.space
}

// Reset forgets all mappings: a process begins, or everything is told anew.
func (t *Timeline) Reset() {
	t.list, t.modules, t.space, t.told = nil, nil, nil, true
}

// Map adds a mapping; it replaces what was there.
func (t *Timeline) Map(m Mapping) {
	if len(t.list) > 1<<12 { // what was replaced time and again
		t.list = slices.Clone(newSpace(0, t.list).Mappings)
	}
	t.list, t.space, t.told = append(t.list, m), nil, true
}

// Set replaces everything by a snapshot.
func (t *Timeline) Set(list []Mapping) {
	t.Reset()
	t.list = slices.Clone(list)
}

// ReadMaps reads a snapshot of /proc/PID/maps. name is what errors call it.
func ReadMaps(r io.Reader, name string) ([]Mapping, error) {
	var list []Mapping
	modules := map[string]*Module{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" {
			continue
		}
		m, err := parseMapsLine(line, modules)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		list = append(list, m)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no mappings, expected lines as in /proc/PID/maps", name)
	}
	return list, nil
}

// parseMapsLine reads "START-END PERM OFFSET DEV INODE PATH".
func parseMapsLine(line string, modules map[string]*Module) (m Mapping, err error) {
	field := func() (s string) {
		s, line, _ = strings.Cut(strings.TrimLeft(line, " \t"), " ")
		return s
	}
	from, to, ok := strings.Cut(field(), "-")
	perm, offset := field(), field()
	m.Start, err = strconv.ParseUint(from, 16, 64)
	if err == nil {
		m.End, err = strconv.ParseUint(to, 16, 64)
	}
	if err == nil {
		m.Offset, err = strconv.ParseUint(offset, 16, 64)
	}
	if !ok || err != nil || len(perm) != 4 || m.End < m.Start {
		return m, errors.New("expected START-END PERM OFFSET DEV INODE PATH, as in /proc/PID/maps")
	}
	field()
	field()
	m.Exec = perm[2] == 'x'
	path := strings.TrimSpace(line)
	if path == "" {
		return m, nil
	}
	if modules[path] == nil {
		modules[path] = &Module{Name: strings.TrimSuffix(path, " (deleted)")}
	}
	m.Module = modules[path]
	return m, nil
}

// significant is the number of bits a field of v has. (BT-COUNT-1)
func significant(v uint64) int { return bits.Len64(v | 1) }
