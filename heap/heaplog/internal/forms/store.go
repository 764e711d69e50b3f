package forms

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// identity is what distinguishes the samples of a series from others, besides the host, the position in
// the line and the file.
type identity struct {
	context string // what headings, or the names in a row, say
	words   string // the shape of the line
	tokens  int    // of words
	cell    bool   // of a table, or of an expression
}

// sample is a number as it is spelled.
type sample struct {
	text     int // index of the end of its spelling in the text of its column
	line     int64
	order    int64 // of the line among all, which may have no line feeds
	seq      int64
	file     int32
	boot     int32 // that the log shows
	restarts int32 // of clocks
	wall, up moment
	unit     uint8 // index in the units of the column
}

// rawSeries are the samples of an identity.
type rawSeries struct {
	identity
	host    string
	pos     int
	label   string
	class   class
	samples []sample
	text    []byte
	units   []string
	refused candidate // if the samples do not count
	every   int       // each sample whose number is a multiple of this is kept
	total   int
}

const (
	// maxIdentities is the number of series of all logs together, maxSamples that of the samples that a
	// series keeps, or one whose words say that it does not count.
	maxIdentities = 4096
	maxSamples    = 1 << 13
	maxIdle       = 1 << 8
)

// store keeps samples by their identity.
type store struct {
	byKey    map[string]*rawSeries
	series   []*rawSeries
	key      []byte
	samples  int // of all series
	file     int
	line     int64
	order    int64
	boot     int
	overfull int // samples of too many identities
	tooLong  int // lines
}

// Samples returns the number of samples so far.
func (s *store) Samples() int { return s.samples }

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
		r = &rawSeries{identity: id, host: string(at.host), pos: f.pos, label: string(f.label), class: *f.class, every: 1}
		s.byKey[string(s.key)] = r
		s.series = append(s.series, r)
	}
	if s.samples++; f.mayBeRefused() {
		r.refused.q = l.classify([]byte(r.label)).q
		r.refused.see(f.label, f.raw, l.scan.line, cmp.Or(string(f.unit), f.class.unit))
	}
	r.add(sample{line: s.line, order: s.order, seq: int64(s.samples), file: int32(s.file), boot: int32(s.boot), restarts: int32(l.restarts), wall: at.wall, up: at.up}, f)
}

// mayBeRefused reports whether a number may not count: what is kept of it may be shown.
func (f *field) mayBeRefused() bool {
	return !f.q.level() || f.q == unknown || len(f.unit) == 0 && bytes.IndexByte(f.raw, '.') >= 0 || len(f.unit) > 1 && units[strings.ToLower(string(f.unit))] == 0
}

func (r *rawSeries) add(x sample, f *field) {
	if r.total++; (r.total-1)%r.every != 0 {
		return
	}
	unit := strings.ToLower(string(f.unit))
	k := slices.Index(r.units, unit)
	if k < 0 && len(r.units) < 255 {
		k = len(r.units)
		r.units = append(r.units, unit)
	}
	r.text = append(r.text, f.raw...)
	x.unit, x.text = uint8(max(k, 0)), len(r.text)
	most := maxSamples
	if r.class.q == none {
		most = maxIdle
	}
	if r.samples = append(r.samples, x); len(r.samples) >= most {
		r.thin()
	}
}

// thin drops every second sample.
func (r *rawSeries) thin() {
	raw, text := r.spellings(), []byte(nil)
	kept := r.samples[:0]
	for i := 0; i < len(r.samples); i += 2 {
		x := r.samples[i]
		text = append(text, raw[i]...)
		x.text = len(text)
		kept = append(kept, x)
	}
	r.samples, r.text, r.every = kept, text, 2*r.every
}

// spellings returns the numbers as they are spelled.
func (r *rawSeries) spellings() []string {
	list, from := make([]string, len(r.samples)), 0
	text := string(r.text)
	for i := range r.samples {
		list[i] = text[from:r.samples[i].text]
		from = r.samples[i].text
	}
	return list
}

// merged returns the series of all logs. Words are names until they prove to be noise: series of few samples
// are damaged lines where others of their form have many, and else are joined if half of
// their words are the same.
func (s *store) merged() (list []*Series, dropped int) {
	groups := map[string][]*rawSeries{}
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
		if len(r.samples) >= few {
			samples[r.class.q] += len(r.samples)
		}
	}
	for _, k := range order {
		kept, n := mergeGroup(groups[k], samples[groups[k][0].class.q])
		dropped += n
		list = append(list, nameSeries(kept, len(hosts) > 1)...)
	}
	return list, dropped
}

// few is the number of samples below which a series may be damage.
const few = 3

// mergeGroup merges series of one form. of is the number of samples of their quantity.
func mergeGroup(g []*rawSeries, of int) (kept []*rawSeries, dropped int) {
	var small []*rawSeries
	large, little := 0, 0
	for _, r := range g {
		if len(r.samples) >= few || len(g) <= 3 && of < 20 {
			kept, large = append(kept, r), large+len(r.samples)
		} else {
			small, little = append(small, r), little+len(r.samples)
		}
	}
	if g[0].cell {
		n := len(small)
		small = slices.DeleteFunc(small, func(r *rawSeries) bool {
			return slices.ContainsFunc(kept, func(k *rawSeries) bool { return len(k.samples) >= 10*few && misspelled(r.context, k.context) })
		})
		dropped = n - len(small)
	}
	switch {
	case g[0].cell:
	case len(kept) > 0 && little*10 <= large+little, len(kept) == 0 && of > 0 && little*10 <= of:
		return kept, little
	}
	var joined []*rawSeries
	for _, r := range small {
		i := slices.IndexFunc(joined, func(j *rawSeries) bool { return j.host == r.host && similar(j.words, r.words) })
		if i < 0 {
			joined = append(joined, r)
		} else {
			joined[i] = joined[i].with(r)
		}
	}
	return append(kept, joined...), dropped
}

// misspelled reports whether a name is another one but for one or two characters.
func misspelled(a, b string) bool {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < min(len(a), len(b))-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return a != b && len(a) > 4 && max(len(a), len(b))-n-m <= 2 && strings.Trim(a[n:len(a)-m]+b[n:len(b)-m], "0123456789") != ""
}

// with returns the samples of both series in the order of the logs.
func (r *rawSeries) with(o *rawSeries) *rawSeries {
	both := *r
	both.samples, both.text, both.units = nil, nil, nil
	type spelled struct {
		sample
		raw, unit string
	}
	var list []spelled
	for _, s := range []*rawSeries{r, o} {
		for i, raw := range s.spellings() {
			list = append(list, spelled{s.samples[i], raw, s.units[s.samples[i].unit]})
		}
	}
	slices.SortStableFunc(list, func(a, b spelled) int { return cmp.Compare(a.seq, b.seq) })
	both.total, both.every = 0, 1
	for _, x := range list {
		both.add(x.sample, &field{raw: []byte(x.raw), unit: []byte(x.unit)})
	}
	return &both
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
