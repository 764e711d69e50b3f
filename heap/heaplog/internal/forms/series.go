package forms

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

// Series are the samples of one identity.
type Series struct {
	Source     string // whose: a host, a device, a process, as the log has it; "" if all lines are of one
	Heap       string // which of several
	Quantity   Quantity
	Unit       string // bytes, or that of which nobody knows the size
	Assumed    bool   // the log says no unit: bytes
	Label      string // the words before the first number
	Why        string // the samples do not count, because
	Values     []float64
	At         []Place
	Dropped    int // samples that are no number of the column, or an underflow
	Underflows int

	raw *rawSeries
}

// Place is where and when a sample was taken.
type Place struct {
	File     int   // index of the log
	Line     int64 // from 1
	At       int64 // among all samples, from 1
	Boot     int   // from 1
	order    int64 // of the line among all
	wall, up moment
	sample   int // index in the samples of its series
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

// nameSeries returns the series of one form, each with the names that distinguish it: the host if there are
// several, and words
// that vary.
func nameSeries(g []*rawSeries, hosts bool) (list []*Series) {
	var first []string
	varies := map[int]bool{}
	for i, r := range g {
		w := strings.Fields(r.words)
		if i == 0 {
			first = w
		}
		for k := range min(len(w), len(first)) {
			varies[k] = varies[k] || w[k] != first[k]
		}
	}
	for _, r := range g {
		source, heap := []string{}, []string{}
		if hosts && r.host != "" {
			source = append(source, r.host)
		}
		if strings.HasPrefix(r.words, "column ") {
			source = append(source, strings.Fields(r.context)...)
		} else if r.context != "" {
			heap = append(heap, heapName(r.context))
		}
		words := strings.Fields(r.words)
		for k, w := range words {
			switch {
			case r.cell || !varies[k] && !strings.HasPrefix(w, "0x"):
			case values["heap "+strings.ToLower(w)] != "" || isDigit(w[0]) && (k == 0 || !is("name", strings.ToLower(words[k-1]))):
				heap = append(heap, heapName(w))
			default:
				source = append(source, w)
			}
		}
		s := r.decide()
		if name := heapIn(r.label); len(heap) == 0 && name != "" {
			heap = append(heap, name)
		}
		s.Source, s.Heap = strings.Join(source, " "), strings.Join(heap, " ")
		list = append(list, s)
	}
	return list
}

// heapName returns the name of a heap as all lines have it.
func heapName(text string) string {
	if name, ok := values["heap "+strings.ToLower(text)]; ok {
		return name
	}
	return text
}

// heapIn returns the name of a heap that a label has, "" if it has none.
func heapIn(label string) string {
	for _, w := range labelWords(label) {
		if name, ok := values["heap "+w]; ok {
			return name
		}
	}
	return ""
}

// decide reads the numbers of a series.
func (r *rawSeries) decide() *Series {
	s := &Series{Quantity: r.class.q, Unit: "bytes", Label: r.label, raw: r}
	factors, whole := make([]float64, len(r.samples)), true
	lost := r.lostUnits()
	for i := range r.samples {
		u := r.unitOf(i)
		factors[i] = 1
		f, known := units[u]
		if n, err := strconv.ParseFloat(u, 64); err == nil { // of --heap-line: free_4096
			f, known = n, true
		}
		switch {
		case lost[u]:
			factors[i] = 0
		case !known:
			s.Assumed = true
		case f == 0:
			s.Unit = u
			whole = false
		default:
			factors[i] = f
			whole = whole && f == 1
		}
	}
	k := bytesScale
	if !whole {
		k = largerScale
	} else if s.Assumed {
		k = anyScale
	}
	raw := r.spellings()
	v, bad, why := readColumn(raw, k)
	switch {
	case s.Quantity == none || s.Quantity == unknown:
		s.Why = r.class.why
	case s.Unit != "bytes":
		s.Why = "in " + s.Unit + ", whose size is not said"
	default:
		s.Why = why
	}
	s.Underflows = underflows(v, bad)
	pointed := 0
	for i := range v {
		if bad[i] || factors[i] == 0 {
			s.Dropped++
			continue
		}
		if strings.Contains(raw[i], ".") && !strings.ContainsAny(raw[i], "eE") && (v[i] < 10000 || v[i] != float64(int64(v[i]))) {
			pointed++
		}
		x := &r.samples[i]
		s.Values = append(s.Values, v[i]*factors[i])
		s.At = append(s.At, Place{int(x.file), x.line, x.seq, 0, x.order, x.wall, x.up, i})
	}
	switch {
	case s.Why != "":
	case s.Assumed && s.ofProcess() && !inPages(v):
		s.Why = "bytes or KiB is not said"
	case s.Assumed && pointed*2 > len(v):
		s.Why = fractions
	case len(s.Values) == 0:
		s.Why = "no number that can be one of bytes"
	}
	return s
}

// unitOf returns the unit of a sample, "" if the line does not say it.
func (r *rawSeries) unitOf(i int) string {
	if u := r.units[r.samples[i].unit]; u != "" {
		return u
	}
	return r.class.unit
}

// lostUnits returns the units of no known size, or none, of so few samples that these are of damaged lines.
func (r *rawSeries) lostUnits() map[string]bool {
	n := map[string]int{}
	for i := range r.samples {
		n[r.unitOf(i)]++
	}
	lost := map[string]bool{}
	for u, k := range n {
		lost[u] = 10*k <= len(r.samples) && units[u] == 0 && !allDigits([]byte(cmp.Or(u, "x")))
	}
	return lost
}

// inPages reports whether all numbers are whole pages: bytes, and not KiB.
func inPages(v []float64) bool {
	for _, x := range v {
		if math.Mod(x, 4096) != 0 {
			return false
		}
	}
	return true
}

// settle unwraps the times of the samples, drops those that do not fit their neighbours, and numbers the boots. A boot
// begins where the log shows one, where a clock begins again, and with a log, unless both have dates.
// restarts says that those of the clocks of all lines count.
func (s *Series) settle(restarts bool) {
	s.unwrap(func(p *Place) *moment { return &p.wall })
	s.unwrap(func(p *Place) *moment { return &p.up })
	boot := 1
	for i := range s.At {
		p := &s.At[i]
		if i > 0 {
			a, b := &s.At[i-1], &s.raw.samples[p.sample]
			x := &s.raw.samples[a.sample]
			again := a.up.clock == bootTime && p.up.clock == bootTime && p.up.at < a.up.at-0.5
			dated := a.wall.clock == dateTime && p.wall.clock == dateTime
			if again || x.boot != b.boot || restarts && x.restarts != b.restarts || a.File != p.File && !dated {
				boot++
			}
		}
		p.Boot = boot
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
			if more := wrap(b.clock, a.at-add, b.at-add); more > 0 {
				add += more
				b.at += more
			}
		}
	}
	for i := 1; i+1 < len(s.At); i++ {
		a, b, c := of(&s.At[i-1]), of(&s.At[i]), of(&s.At[i+1])
		if a.clock == c.clock && b.clock == a.clock && a.at <= c.at && (b.at < a.at || b.at > c.at) {
			b.clock = noClock
		}
	}
}
