package forms

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Heap has the reports on one heap, or on the memory of a process.
type Heap struct {
	Source, Name string
	Label        string // the words before the number
	Used         bool   // the reports say what is used, and not what is free
	Assumed      bool   // the log says no unit: bytes
	Dropped      int    // numbers that are not used
	Underflows   int    // of these, those that are a negative number written unsigned
	Total        int    // reports, of which Reports may have every second, fourth and so on
	Reports      []Report
}

// Report is what the log says of a heap at a time, in bytes. What it does not say is negative.
type Report struct {
	Place
	Free, Used, Largest, Least, Size float64
	peak                             float64
}

// Heaps returns what the logs say of each heap so far, in the order of the first lines, and the series
// that do not count.
func (l *Levels) Heaps() (heaps []Heap, refused []*Series) {
	list, refused := l.seriesOf()
	var firsts, others []*Series
	for _, s := range list {
		if s.Quantity == Free || s.Quantity == Used {
			firsts = append(firsts, s)
		} else {
			others = append(others, s)
		}
	}
	firsts = slices.DeleteFunc(firsts, func(s *Series) bool { return s.Quantity == Free && s.unavailable(firsts) })
	parts, frees := map[*Series][]*Series{}, slices.Clone(firsts)
	firsts = slices.DeleteFunc(firsts, func(s *Series) bool {
		if s.Quantity != Used {
			return false
		}
		of := s.nearest(frees, func(f *Series) bool { return f.Quantity == Free && s.complements(f) })
		if of != nil {
			parts[of] = append(parts[of], s)
		}
		return of != nil
	})
	for _, s := range others {
		if s.bareTotal(list) {
			continue
		}
		if of := s.nearest(firsts, func(f *Series) bool { return s.beside(f) }); of != nil {
			parts[of] = append(parts[of], s)
		}
	}
	for _, s := range firsts {
		heaps = append(heaps, s.heap(parts[s]))
	}
	heaps = slices.DeleteFunc(heaps, func(h Heap) bool { return h.isRegion(heaps) })
	distinguish(heaps)
	return heaps, refused
}

// seriesOf returns the series, and those that do not count.
func (l *Levels) seriesOf() (list, refused []*Series) {
	all, dropped := l.merged()
	l.dropped = dropped
	restarts := l.restarts*8 <= l.ticks // else clocks of several devices alternate
	for _, s := range all {
		if s.Why != "" {
			refused = append(refused, s)
			continue
		}
		s.settle(restarts)
		list = append(list, s)
	}
	return list, refused
}

// reach is the number of lines in which a report may stand.
const reach = 16

// sameOwner reports whether two series are of the same device, and of the same heading or row.
func (s *Series) sameOwner(o *Series) bool {
	return s.raw.host == o.raw.host && s.raw.context == o.raw.context && s.Source == o.Source && s.Heap == o.Heap
}

// sameLine reports whether two series are of the same statement.
func (s *Series) sameLine(o *Series) bool {
	return s.raw.host == o.raw.host && s.raw.context == o.raw.context && (s.raw.cell && o.raw.cell || s.raw.words == o.raw.words)
}

// beside reports whether the samples of s stand in the lines of those of o, or near them.
func (s *Series) beside(o *Series) bool {
	if s.sameLine(o) {
		return true
	}
	if !s.sameOwner(o) && !(s.raw.host == o.raw.host && s.raw.context == o.raw.context && s.Heap == o.Heap) {
		return false
	}
	near, k := 0, 0
	for i := range s.At {
		for k+1 < len(o.At) && abs(o.At[k+1].distance(&s.At[i])) <= abs(o.At[k].distance(&s.At[i])) {
			k++
		}
		if abs(o.At[k].distance(&s.At[i])) <= reach {
			near++
		}
	}
	return 2*near > len(s.At)
}

// distance returns the number of lines from p to o.
func (p *Place) distance(o *Place) int64 { return o.order - p.order }

func abs(n int64) int64 { return max(n, -n) }

// complements reports whether what s has used and what f has free are of one heap, and not of a process: their
// sum stays about the same.
func (s *Series) complements(f *Series) bool {
	if s.ofProcess() || !s.beside(f) || 10*len(s.Values) < 9*len(f.Values) || 10*len(f.Values) < 9*len(s.Values) {
		return false
	}
	n := min(len(s.Values), len(f.Values)) - 1
	first, last := s.Values[0]+f.Values[0], s.Values[n]+f.Values[n]
	part := int64(first / 100)
	if s.sameLine(f) {
		part *= 10
	}
	return abs(int64(first-last)) <= part
}

// bareTotal reports whether a number is called total and nothing else, where the line does not say what is
// used: it may be the total of what is free.
func (s *Series) bareTotal(list []*Series) bool {
	if s.Quantity != Total || s.raw.cell || s.raw.pos%2 == 1 || isMemory([]byte(s.Label)) {
		return false
	}
	return !slices.ContainsFunc(list, func(o *Series) bool { return o.Quantity == Used && o.beside(s) })
}

// ofProcess reports whether the words say that the memory is that of a process.
func (s *Series) ofProcess() bool {
	return slices.ContainsFunc(labelWords(s.Label), func(w string) bool { return is("process", w) })
}

// unavailable reports whether the system says, beside what is free, what is available: memory that caches
// use is available.
func (s *Series) unavailable(list []*Series) bool {
	available := func(x *Series) bool { return strings.Contains(strings.ToLower(x.Label), "avail") }
	return !available(s) && slices.ContainsFunc(list, func(o *Series) bool {
		return o.Quantity == Free && available(o) && s.beside(o) && s.Unit == o.Unit && s.raw.units != nil
	})
}

// nearest returns the series of a list whose label has most of the words of s, and of these the one
// before it in the line. nil if there is none.
func (s *Series) nearest(list []*Series, may func(*Series) bool) (best *Series) {
	most := 0
	mine := labelWords(s.Label)
	for _, o := range list {
		if o == s || !may(o) {
			continue
		}
		n := 2
		for _, w := range labelWords(o.Label) {
			if slices.Contains(mine, w) {
				n += 4
			}
		}
		if s.sameLine(o) {
			n += 2
			if o.raw.pos < s.raw.pos {
				n++
			}
		}
		if n >= most {
			best, most = o, n
		}
	}
	return best
}

// heap returns the reports of a series, with what other series say beside it.
func (s *Series) heap(parts []*Series) Heap {
	h := Heap{Source: s.Source, Name: s.Heap, Label: s.Label, Used: s.Quantity == Used, Assumed: s.Assumed, Dropped: s.Dropped, Underflows: s.Underflows, Total: s.raw.total}
	at := make([]int, len(parts))
	first := make([]bool, len(parts)) // the part stands before the number
	for k, p := range parts {
		first[k] = p.At[0].order < s.At[0].order
	}
	for i, v := range s.Values {
		r := Report{s.At[i], -1, -1, -1, -1, -1, -1}
		*r.of(s.Quantity) = v
		for k, p := range parts {
			j := at[k]
			for j+1 < len(p.At) {
				next, this := abs(p.At[j+1].distance(&r.Place)), abs(p.At[j].distance(&r.Place))
				if next > this || next == this && first[k] {
					break
				}
				j++
			}
			if at[k] = j; abs(p.At[j].distance(&r.Place)) <= reach {
				*r.of(p.Quantity) = p.Values[j]
			}
		}
		h.Reports = append(h.Reports, r)
	}
	if h.Used && !s.limited(parts) {
		for i := range h.Reports {
			h.Reports[i].Size = -1
		}
	}
	sized := !slices.ContainsFunc(h.Reports, func(r Report) bool { return r.Size >= 0 && r.Size <= r.Free }) // else it is the total of something else
	for i := range h.Reports {
		h.Reports[i].complete(sized)
	}
	if h.Used && h.Source+h.Name == "" {
		h.Name = h.Words()
	}
	return h
}

// limited reports whether the size beside what is used is a limit, or never changes: not what a process has
// taken from the system so far.
func (s *Series) limited(parts []*Series) bool {
	for _, p := range parts {
		if p.Quantity == Limit || p.Quantity == Total && !s.ofProcess() && len(p.Values) > few && slices.Min(p.Values) == slices.Max(p.Values) {
			return true
		}
	}
	return false
}

// of returns the value of a quantity.
func (r *Report) of(q Quantity) *float64 {
	switch q {
	case Free:
		return &r.Free
	case Used:
		return &r.Used
	case Largest:
		return &r.Largest
	case Least:
		return &r.Least
	case Peak:
		return &r.peak
	}
	return &r.Size // Total, Limit
}

// complete computes the size, and drops values that contradict what is free.
func (r *Report) complete(sized bool) {
	if r.Free < 0 {
		return
	}
	if !sized {
		r.Size = -1
	}
	if r.Size < 0 && r.Used >= 0 {
		r.Size = r.Free + r.Used
	}
	if r.Least < 0 && r.peak >= 0 && r.Size >= r.peak {
		r.Least = r.Size - r.peak
	}
	for _, v := range []*float64{&r.Largest, &r.Least} {
		if *v > r.Free {
			*v = -1
		}
	}
}

// isRegion reports whether a heap is a region, by its address, of one whose sum the log says.
func (h *Heap) isRegion(list []Heap) bool {
	return slices.ContainsFunc(list, func(o Heap) bool {
		rest, ok := strings.CutPrefix(h.Name, o.Name+" ")
		return ok && o.Name != "" && o.Source == h.Source && isAddress([]byte(rest))
	})
}

// distinguish gives heaps of the same name the words of their numbers, too.
func distinguish(heaps []Heap) {
	same := func(a, b *Heap) int { return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name)) }
	clash := make([]bool, len(heaps))
	for i := range heaps {
		for k := range heaps[:i] {
			if same(&heaps[i], &heaps[k]) == 0 {
				clash[i], clash[k] = true, true
			}
		}
	}
	for i := range heaps {
		if h := &heaps[i]; clash[i] {
			h.Name = strings.TrimSpace(h.Name + " " + h.Words())
		}
	}
}

// Words returns the words before the numbers.
func (h *Heap) Words() string {
	return strings.Join(strings.FieldsFunc(h.Label, func(c rune) bool { return strings.ContainsRune(" \t:=\"'{}[](),", c) }), " ")
}

// Losses returns what of the lines is not used.
func (l *Levels) Losses() (list []string) {
	for _, x := range []struct {
		n         int
		one, more string
	}{
		{l.dropped, "number in a line like no other: damaged, and not used", "numbers in lines like no other: damaged, and not used"},
		{l.tooLong, "line longer than 64 KiB, which is not read", "lines longer than 64 KiB, which are not read"},
		{l.overfull, "number beyond 4,096 series, which is not read", "numbers beyond 4,096 series, which are not read"},
	} {
		switch {
		case x.n == 1:
			list = append(list, "1 "+x.one)
		case x.n > 1:
			list = append(list, fmt.Sprintf("%d %s", x.n, x.more))
		}
	}
	return list
}
