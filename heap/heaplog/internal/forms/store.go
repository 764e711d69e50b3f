package forms

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// identity is what distinguishes the samples of a series from others, besides the host, the position in
// the line and the file.
type identity struct {
	context string // what headings, or the names in a row, say
	words   string // the shape of the line
	tokens  int    // of words
	cell    bool   // of a table, or of an expression
}

// Series are the samples of one identity.
type Series struct {
	identity
	host  string
	pos   int
	Label string // the words before the first number
	class class
	list  []sample
	every int       // each sample whose number is a multiple of this is kept
	Total int       // samples
	shown candidate // if the samples do not count

	// What follows is decided when all samples are there.
	Source   string // whose: a host, a device, a process, as the log has it; "" if all lines are of one
	Heap     string // which of several
	Quantity Quantity
	Unit     string // bytes, or that of which nobody knows the size
	Assumed  bool   // the log says no unit: bytes
	Why      string // the samples do not count, because
	Values   []float64
	At       []Place
	Dropped  int // samples that are no number of the column, or an underflow
}

// sample is a number as it is spelled, and its unit.
type sample struct {
	Place
	raw, unit string
}

// Place is where and when a sample was taken.
type Place struct {
	File     int   // index of the log
	Line     int64 // from 1
	At       int64 // among all samples, from 1
	Boot     int   // from 1
	order    int64 // of the line among all, which may have no line feeds
	boots    int   // that the log shows
	restarts int   // of clocks
	wall, up moment
}

// Date returns the time of the day, or since 1970, counted on from the first sample of the series. ok is
// false if it is not known.
func (p *Place) Date() (at time.Duration, ok bool) {
	return p.wall.duration(), p.wall.clock == dateTime || p.wall.clock == dayTime || p.wall.clock == yearTime
}

// SinceBoot returns the time since the boot. ok is false if it is not known.
func (p *Place) SinceBoot() (at time.Duration, ok bool) {
	if p.up.clock != bootTime && p.wall.clock == bootTime {
		return p.wall.duration(), true
	}
	return p.up.duration(), p.up.clock == bootTime
}

const (
	// maxIdentities is the number of series of all logs together, maxSamples that of the samples that a
	// series keeps, or one whose words say that it does not count.
	maxIdentities = 4096
	maxSamples    = 1 << 13
	maxIdle       = 1 << 8
	// few is the number of samples below which a series may be damage.
	few = 3
)

// store keeps samples by their identity.
type store struct {
	byKey    map[string]*Series
	series   []*Series
	key      []byte
	units    map[string]string // in small letters
	Samples  int               // of all series
	file     int
	line     int64
	order    int64
	boot     int
	overfull int // samples of too many identities
	tooLong  int // lines
}

// put adds a sample.
func (l *Levels) put(at *stamped, id identity, f *field) {
	s := &l.store
	if s.line <= l.quiet {
		return
	}
	s.key = append(append(s.key[:0], at.host...), 0)
	s.key = append(append(s.key, id.context...), 0)
	s.key = append(append(s.key, id.words...), 0, byte(f.pos), byte(f.pos>>8))
	r := s.byKey[string(s.key)]
	if r == nil {
		if len(s.series) >= maxIdentities {
			s.overfull++
			return
		}
		r = &Series{identity: id, host: string(at.host), pos: f.pos, Label: string(f.label), class: *f.class, Quantity: f.q, Unit: "bytes", every: 1}
		s.byKey[string(s.key)] = r
		s.series = append(s.series, r)
	}
	unit, known := s.units[string(f.unit)]
	if !known && len(s.units) < maxClasses {
		unit = strings.ToLower(string(f.unit))
		s.units[string(f.unit)] = unit
	}
	s.Samples++
	if !f.q.level() || f.q == unknown || unit == "" && bytes.IndexByte(f.raw, '.') >= 0 || len(unit) > 1 && units[unit] == 0 { // it may not count
		r.shown.q = l.classify([]byte(r.Label)).q
		r.shown.see(f.label, f.raw, l.scan.line, cmp.Or(string(f.unit), f.class.unit))
	}
	if r.Total++; (r.Total-1)%r.every == 0 {
		p := Place{File: s.file, Line: s.line, At: int64(s.Samples), order: s.order, boots: s.boot, restarts: l.restarts, wall: at.wall, up: at.up}
		r.list = append(r.list, sample{p, string(f.raw), unit})
	}
	if most := maxSamples; len(r.list) >= most || f.q == none && len(r.list) >= maxIdle { // drop every second one
		for i := range r.list[:len(r.list)/2] {
			r.list[i] = r.list[2*i]
		}
		r.list, r.every = r.list[:len(r.list)/2], 2*r.every
	}
}

// merged returns the series of all logs. Words are names until they prove to be noise: series of few samples
// are damaged lines where others of their form have many, and else are joined if half of
// their words are the same.
func (s *store) merged() (list []*Series, dropped int) {
	groups := map[string][]*Series{}
	var order []string
	hosts := map[string]bool{}
	samples := map[Quantity]int{} // of series that are more than an accident
	for _, r := range s.series {
		k := fmt.Sprint(r.class.q, r.class.why, r.pos, r.tokens, r.cell)
		hosts[r.host] = true
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
		if len(r.list) >= few {
			samples[r.class.q] += len(r.list)
		}
	}
	for _, k := range order {
		kept, n := mergeGroup(groups[k], samples[groups[k][0].class.q])
		dropped += n
		list = append(list, nameSeries(kept, len(hosts) > 1)...)
	}
	return list, dropped
}

// mergeGroup merges series of one form. of is the number of samples of their quantity.
func mergeGroup(g []*Series, of int) (kept []*Series, dropped int) {
	var small []*Series
	large, little := 0, 0
	for _, r := range g {
		if len(r.list) >= few || len(g) <= 3 && of < 20 {
			kept, large = append(kept, r), large+len(r.list)
		} else {
			small, little = append(small, r), little+len(r.list)
		}
	}
	if g[0].cell {
		n := len(small)
		small = slices.DeleteFunc(small, func(r *Series) bool {
			return slices.ContainsFunc(kept, func(k *Series) bool { return len(k.list) >= 10*few && misspelled(r.context, k.context) })
		})
		dropped = n - len(small)
	}
	if !g[0].cell && (len(kept) > 0 && little*10 <= large+little || len(kept) == 0 && of > 0 && little*10 <= of) {
		return kept, little
	}
	var joined []*Series
	for _, r := range small {
		i := slices.IndexFunc(joined, func(j *Series) bool { return j.host == r.host && similar(j.words, r.words) })
		if i < 0 {
			joined = append(joined, r)
			continue
		}
		both := *joined[i]
		both.list = append(slices.Clone(both.list), r.list...)
		both.Total = len(both.list)
		slices.SortStableFunc(both.list, func(a, b sample) int { return cmp.Compare(a.At, b.At) })
		joined[i] = &both
	}
	return append(kept, joined...), dropped
}

// misspelled reports whether a name is another one but for one or two characters that are no digits.
func misspelled(a, b string) bool {
	n, m := 0, 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for m < min(len(a), len(b))-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return a != b && len(a) > 4 && max(len(a), len(b))-n-m <= 2 && strings.Trim(a[n:len(a)-m]+b[n:len(b)-m], "0123456789") != ""
}

// similar reports whether half of the words of two shapes are the same.
func similar(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	same := 0
	for i := range min(len(x), len(y)) {
		if x[i] == y[i] {
			same++
		}
	}
	return len(x) == len(y) && 2*same >= len(x)
}

// nameSeries decides on the series of one form, each with the names that distinguish it: the host if there are
// several, and words that vary.
func nameSeries(g []*Series, hosts bool) (list []*Series) {
	varies := map[int]bool{}
	for _, r := range g {
		first := strings.Fields(g[0].words)
		for k, w := range strings.Fields(r.words) {
			varies[k] = varies[k] || k < len(first) && w != first[k]
		}
	}
	for _, r := range g {
		var source, heap []string
		if hosts {
			source = append(source, r.host)
		}
		if strings.HasPrefix(r.words, "column ") {
			source = append(source, r.context)
		} else {
			heap = append(heap, heapName(r.context))
		}
		shape := strings.Fields(r.words)
		for k, w := range shape {
			switch {
			case r.cell || !varies[k] && !strings.HasPrefix(w, "0x"):
			case values["heap "+strings.ToLower(w)] != "" || isDigit(w[0]) && (k == 0 || !is("name", strings.ToLower(shape[k-1]))):
				heap = append(heap, heapName(w))
			default:
				source = append(source, w)
			}
		}
		s := *r
		s.Source, s.Heap = joinFields(source), cmp.Or(joinFields(heap), heapIn(r.Label))
		s.decide()
		list = append(list, &s)
	}
	return list
}

func joinFields(list []string) string {
	return strings.Join(strings.Fields(strings.Join(list, " ")), " ")
}

// heapName returns the name of a heap as all lines have it.
func heapName(text string) string { return cmp.Or(values["heap "+strings.ToLower(text)], text) }

// heapIn returns the name of a heap that a label has, "" if it has none.
func heapIn(label string) string {
	for _, w := range labelWords(label) {
		if name := values["heap "+w]; name != "" {
			return name
		}
	}
	return ""
}

// decide reads the numbers of a series.
func (s *Series) decide() {
	factors, raw := make([]float64, len(s.list)), make([]string, len(s.list))
	count := map[string]int{} // by unit
	for _, x := range s.list {
		count[cmp.Or(x.unit, s.class.unit)]++
	}
	k := bytesScale
	for i, x := range s.list {
		unit := cmp.Or(x.unit, s.class.unit)
		f, known := units[unit]
		if n, err := strconv.ParseFloat(unit, 64); err == nil { // of --heap-line: free_4096
			f, known = n, true
		}
		raw[i], factors[i] = x.raw, f
		switch {
		case f == 0 && 10*count[unit] <= len(s.list): // of damaged lines
		case !known:
			s.Assumed, factors[i] = true, 1
		case f == 0:
			s.Unit, factors[i], k = unit, 1, largerScale
		case f != 1:
			k = largerScale
		}
	}
	if s.Assumed && k == bytesScale {
		k = anyScale
	}
	v, bad, why := readColumn(raw, k)
	underflows(v, bad)
	pointed, pages := 0, true
	for i := range v {
		pages = pages && math.Mod(v[i], 4096) == 0
		if bad[i] || factors[i] == 0 {
			s.Dropped++
			continue
		}
		if strings.Contains(raw[i], ".") && !strings.ContainsAny(raw[i], "eE") && (v[i] < 10000 || v[i] != math.Trunc(v[i])) {
			pointed++
		}
		s.Values, s.At = append(s.Values, v[i]*factors[i]), append(s.At, s.list[i].Place)
	}
	switch {
	case s.Quantity == none || s.Quantity == unknown:
		s.Why = s.class.why
	case s.Unit != "bytes":
		s.Why = "in " + s.Unit + ", whose size is not said"
	case why != "":
		s.Why = why
	case s.Assumed && s.ofProcess() && !pages:
		s.Why = "bytes or KiB is not said"
	case s.Assumed && pointed*2 > len(v):
		s.Why = fractions
	case len(s.Values) == 0:
		s.Why = "no number that can be one of bytes"
	}
}

// settle unwraps the times of the samples, drops those that do not fit their neighbours, and numbers the boots. A boot
// begins where the log shows one, where a clock begins again, and with a log, unless both have dates.
// restarts says that those of the clocks of all lines count.
func (s *Series) settle(restarts bool) {
	s.unwrap(func(p *Place) *moment { return &p.wall })
	s.unwrap(func(p *Place) *moment { return &p.up })
	for i := range s.At {
		p := &s.At[i]
		if p.Boot = 1; i == 0 {
			continue
		}
		a := &s.At[i-1]
		again := a.up.clock == bootTime && p.up.clock == bootTime && p.up.at < a.up.at-0.5
		dated := a.wall.clock == dateTime && p.wall.clock == dateTime
		if p.Boot = a.Boot; again || a.boots != p.boots || restarts && a.restarts != p.restarts || a.File != p.File && !dated {
			p.Boot++
		}
	}
}

// unwrap adds what a clock has lost where it was full, and drops times that lie before or behind those of both
// neighbours.
func (s *Series) unwrap(of func(*Place) *moment) {
	add := 0.0
	for i := 1; i < len(s.At); i++ {
		a, b := of(&s.At[i-1]), of(&s.At[i])
		if a.clock != b.clock {
			continue
		}
		if b.at += add; b.at < a.at {
			more := wrap(b.clock, a.at-add, b.at-add)
			add += more
			b.at += more
		}
	}
	for i := 1; i+1 < len(s.At); i++ {
		a, b, c := of(&s.At[i-1]), of(&s.At[i]), of(&s.At[i+1])
		if a.clock == c.clock && b.clock == a.clock && a.at <= c.at && (b.at < a.at || b.at > c.at) {
			b.clock = noClock
		}
	}
}
