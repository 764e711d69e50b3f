package foreign

import (
	"cmp"
	"slices"
)

// maxHeaps is the number of heaps of a line.
const maxHeaps = 16

// addFound adds what programs' own expressions found in a line: its heaps in the order of the text.
func (s *state) addFound() {
	list := s.found
	s.found = s.found[:0]
	if s.reported || len(list) == 0 {
		return
	}
	list = nameParts(apart(list))
	whole := slices.ContainsFunc(list, func(p part) bool { return p.whole })
	if whole {
		s.flushStats()
	}
	for _, p := range list {
		s.add(p.stats)
	}
	if whole {
		s.reported = true
		s.flushStats()
	}
}

// apart returns the parts that do not overlap, in the order of the text. Expressions that have all
// values of a heap go before those of one value.
func apart(list []part) (kept []part) {
	first := func(a, b part) int { return cmp.Compare(a.groups[0], b.groups[0]) }
	slices.SortStableFunc(list, func(a, b part) int {
		if a.whole != b.whole {
			if a.whole {
				return -1
			}
			return 1
		}
		return first(a, b)
	})
	for _, p := range list {
		if !slices.ContainsFunc(kept, func(k part) bool { return p.groups[0] < k.groups[1] && k.groups[0] < p.groups[1] }) {
			kept = append(kept, p)
		}
	}
	slices.SortFunc(kept, first)
	return kept
}

// nameParts names parts by what stands before them, and returns them by heap, in the order in which
// the line has the heaps. A part without a name is of the heap before it.
func nameParts(list []part) []part {
	sameHeap := func(p *part) func(part) bool {
		return func(q part) bool { return q.named == p.named && q.stats.name == p.stats.name }
	}
	from := 0
	for i := range list {
		p := &list[i]
		if p.key != "" && p.stats.name == "" {
			if name := nameBefore.FindSubmatch(p.line[from:p.groups[0]]); name != nil {
				p.stats.name, p.named, p.heap = heapName(string(name[1])), true, false
			}
		}
		from = p.groups[1]
		isHeap := func(q part) bool { return q.named && q.stats.name == "" }
		switch {
		case p.named || i == 0:
		case p.heap && slices.ContainsFunc(list[:i], isHeap):
			p.named = true
		case !p.heap || list[i-1].stats.name != psram:
			p.stats.name, p.named = list[i-1].stats.name, list[i-1].named
		}
	}
	var byHeap []part
	for i := range list {
		if slices.IndexFunc(list, sameHeap(&list[i])) == i {
			for _, p := range list[i:] {
				if sameHeap(&list[i])(p) {
					byHeap = append(byHeap, p)
				}
			}
		}
	}
	return byHeap
}
