package profile

import (
	"math/bits"
	"slices"
)

// stacks numbers distinct stacks of sites. It keeps no stack: a row is known by the
// first call path that shows it.
type stacks struct {
	// expand appends the sites of a call path.
	expand func(dst []SiteID, id PathID) []SiteID
	first  array[PathID] // by row
	index  hashTable
	buf    []SiteID
}

// row returns the number of a stack that the call path id shows; it is new if it is
// the number of rows that there were.
func (s *stacks) row(stack []SiteID, id PathID) int {
	t := &s.index
	t.reserve()
	hash := hashSites(stack)
	slot := t.start(hash)
	for ; t.slots[slot].number != 0; slot = t.next(slot) {
		if t.slots[slot].hash != hash {
			continue
		}
		i := int(t.slots[slot].number - 1)
		if s.buf = s.append(s.buf[:0], i); slices.Equal(s.buf, stack) {
			return i
		}
	}
	t.put(slot, hash, uint32(s.first.n))
	s.first.push(id)
	return s.first.n - 1
}

// append appends the stack of a row.
func (s *stacks) append(dst []SiteID, row int) []SiteID { return s.expand(dst, *s.first.at(row)) }

// rows returns how many stacks there are.
func (s *stacks) rows() int { return s.first.n }

func hashSites(stack []SiteID) uint32 {
	h := uint64(len(stack)) + 0x9e3779b97f4a7c15
	for _, s := range stack {
		hi, lo := bits.Mul64(h^uint64(s), 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	return uint32(h ^ h>>32)
}

// stackSums is what each distinct stack of a dump holds.
type stackSums struct {
	stacks
	sums array[Value] // by row
}

// add adds to the stack that a call path shows, and returns its row.
func (s *stackSums) add(stack []SiteID, id PathID, v Value) (row int, saturated bool) {
	row = s.row(stack, id)
	if row == s.sums.n {
		s.sums.push(Value{})
	}
	return row, s.sums.at(row).Add(v)
}

// stacks merges the call paths of a dump that look alike in the view, in the order in
// which they were met. Their sites are innermost first.
func (n *Names) stacks(d *Dump) *stackSums {
	s := &stackSums{stacks: stacks{expand: n.appendShown}}
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		if stack, shown = n.AppendStack(stack[:0], id); shown {
			_, saturated := s.add(stack, id, v)
			n.saturate(saturated)
		}
	}
	return s
}

// appendShown is AppendStack of a call path that is known to be shown.
func (n *Names) appendShown(dst []SiteID, id PathID) []SiteID {
	dst, _ = n.AppendStack(dst, id)
	return dst
}

// appendSites appends the sites of a stack by their numbers.
func (n *Names) appendSites(dst []Site, stack []SiteID) []Site {
	for _, s := range stack {
		dst = append(dst, n.Site(s))
	}
	return dst
}
