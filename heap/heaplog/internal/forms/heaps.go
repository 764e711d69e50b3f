package forms

import (
	"fmt"
	"slices"
	"strings"
)

// Heap has the reports on one heap, or on the memory of a process.
type Heap struct {
	Source, Name string
	Label        string // the words before the number
	Used         bool   // the reports say what is used, and not what is free
	Dropped      int    // numbers that are not used
	Total        int    // reports, of which Reports may have every second, fourth and so on
	Reports      []Report
}

// Report is what the log says of a heap at a time, in bytes. What it does not say is negative.
type Report struct {
	Place
	Free, Used, Largest, Least, Size float64
	peak                             float64
}

// reach is the number of lines in which a report may stand.
const reach = 16

// Heaps returns what the logs say of each heap so far, in the order of the first lines, and the series
// that do not count.
func (l *Levels) Heaps() (heaps []Heap, refused []*Series) {
	list, refused := l.seriesOf()
	var firsts, others []*Series
	for _, s := range list {
		if s.Quantity == Free || s.Quantity == Used {
			firsts = append(firsts, s)
		} else if !s.bareTotal(list) {
			others = append(others, s)
		}
	}
	firsts = slices.DeleteFunc(firsts, func(s *Series) bool { return s.unavailable(list) })
	parts, frees := map[*Series][]*Series{}, slices.Clone(firsts)
	attach := func(s *Series, list []*Series, may func(*Series) bool) bool {
		of := s.nearest(list, may)
		if of != nil {
			parts[of] = append(parts[of], s)
		}
		return of != nil
	}
	firsts = slices.DeleteFunc(firsts, func(s *Series) bool {
		return attach(s, frees, func(f *Series) bool { return s.Quantity == Used && f.Quantity == Free && s.complements(f) })
	})
	for _, s := range others {
		attach(s, firsts, s.beside)
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

// sameLine reports whether two series are of the same statement.
func (s *Series) sameLine(o *Series) bool {
	return s.host == o.host && s.context == o.context && (s.cell && o.cell || s.words == o.words)
}

// beside reports whether the samples of s stand in the lines of those of o, or near them.
func (s *Series) beside(o *Series) bool {
	if s.sameLine(o) {
		return true
	}
	if s.host != o.host || s.context != o.context || s.Heap != o.Heap {
		return false
	}
	near, k := 0, 0
	for i := range s.At {
		var d int64
		if k, d = o.nearestTo(&s.At[i], k, false); d <= reach {
			near++
		}
	}
	return 2*near > len(s.At)
}

// nearestTo returns the sample that is the fewest lines from a place, searching from one on, and how many. Of two it is the last
// one, or with first the first.
func (s *Series) nearestTo(p *Place, k int, first bool) (int, int64) {
	distance := func(k int) int64 { return max(s.At[k].order-p.order, p.order-s.At[k].order) }
	for k+1 < len(s.At) && (distance(k+1) < distance(k) || !first && distance(k+1) == distance(k)) {
		k++
	}
	return k, distance(k)
}

// complements reports whether what s has used and what f has free are of one heap, and not of a process: their
// sum stays about the same.
func (s *Series) complements(f *Series) bool {
	if s.ofProcess() || !s.beside(f) || 10*len(s.Values) < 9*len(f.Values) || 10*len(f.Values) < 9*len(s.Values) {
		return false
	}
	n := min(len(s.Values), len(f.Values)) - 1
	first, last := s.Values[0]+f.Values[0], s.Values[n]+f.Values[n]
	part := first / 100
	if s.sameLine(f) {
		part *= 10
	}
	return max(first-last, last-first) <= part
}

// bareTotal reports whether a number is called total and nothing else, where the line does not say what is
// used: it may be the total of what is free.
func (s *Series) bareTotal(list []*Series) bool {
	return s.Quantity == Total && !s.cell && s.pos%2 == 0 && !isMemory([]byte(s.Label)) &&
		!slices.ContainsFunc(list, func(o *Series) bool { return o.Quantity == Used && o.beside(s) })
}

// ofProcess reports whether the words say that the memory is that of a process.
func (s *Series) ofProcess() bool {
	return slices.ContainsFunc(labelWords(s.Label), func(w string) bool { return is("process", w) })
}

// unavailable reports whether the system says, beside what is free, what is available: memory that caches
// use is available.
func (s *Series) unavailable(list []*Series) bool {
	available := func(x *Series) bool { return x.Quantity == Free && strings.Contains(strings.ToLower(x.Label), "avail") }
	return s.Quantity == Free && !available(s) && slices.ContainsFunc(list, func(o *Series) bool { return available(o) && s.beside(o) })
}

// nearest returns the series of a list whose label has most of the words of s, and of these the one
// before it in the line. nil if there is none.
func (s *Series) nearest(list []*Series, may func(*Series) bool) (best *Series) {
	most, mine := 0, labelWords(s.Label)
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
			if n += 2; o.pos < s.pos {
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
	h := Heap{Source: s.Source, Name: s.Heap, Label: s.Label, Used: s.Quantity == Used, Dropped: s.Dropped, Total: s.Total}
	at := make([]int, len(parts))
	limited, sized := false, true
	for _, p := range parts { // a limit, or a size that never changes: not what a process has taken from the system so far
		limited = limited || p.Quantity == Limit || p.Quantity == Total && !s.ofProcess() && len(p.Values) > few && slices.Min(p.Values) == slices.Max(p.Values)
	}
	for i, v := range s.Values {
		r := Report{s.At[i], -1, -1, -1, -1, -1, -1}
		*r.of(s.Quantity) = v
		for k, p := range parts {
			var d int64
			if at[k], d = p.nearestTo(&r.Place, at[k], p.At[0].order < s.At[0].order); d <= reach {
				*r.of(p.Quantity) = p.Values[at[k]]
			}
		}
		if h.Used && !limited {
			r.Size = -1
		}
		sized = sized && (r.Size < 0 || r.Size > r.Free) // else it is the total of something else
		h.Reports = append(h.Reports, r)
	}
	for i := range h.Reports {
		h.Reports[i].complete(sized)
	}
	if h.Used && h.Source+h.Name == "" {
		h.Name = h.Words()
	}
	return h
}

// of returns the value of a quantity.
func (r *Report) of(q Quantity) *float64 {
	return [...]*float64{&r.Free, &r.Used, &r.Largest, &r.Least, &r.peak, &r.Size, &r.Size}[slices.Index(levelQuantities, q)]
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
	count := map[[2]string]int{}
	for _, h := range heaps {
		count[[2]string{h.Source, h.Name}]++
	}
	for i := range heaps {
		if h := &heaps[i]; count[[2]string{h.Source, h.Name}] > 1 {
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
	add := func(n int, one, more, what string) {
		if n == 1 {
			list = append(list, "1 "+one+what)
		} else if n > 1 {
			list = append(list, fmt.Sprint(n, " ", more, what))
		}
	}
	add(l.dropped, "number in a line", "numbers in lines", " like no other: damaged, and not used")
	add(l.tooLong, "line longer than 64 KiB, which is", "lines longer than 64 KiB, which are", " not read")
	add(l.overfull, "number beyond 4,096 series, which is", "numbers beyond 4,096 series, which are", " not read")
	return list
}
