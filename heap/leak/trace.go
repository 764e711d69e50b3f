package leak

// BootTrace is what Judge saw of a boot, for a picture.
type BootTrace struct {
	Boot      int       // index in Series.Boots
	At, Floor []float64 // by bin: times since the boot, and the least value from each on
	Segments  []Segment // of the boots that the rate is of
}

// Segment is a part of a boot with one rate.
type Segment struct {
	From, To   float64 // times since the boot
	Start, End float64 // values at these
	Present    bool    // it is a part of the present growth
}

// Trace returns what Judge saw of a series: the floor of each boot, and the segments of those that j rests on.
func Trace(s Series, j *Judgement) (list []BootTrace) {
	if s.Quantum <= 0 {
		s.Quantum = 8
	}
	s.leaveOutFull()
	var all []*boot
	for i := range s.Boots {
		if b := reduce(&s.Boots[i], i, s.Quantum); b != nil {
			all = append(all, b)
			list = append(list, BootTrace{Boot: i, At: b.at, Floor: b.floor})
		}
	}
	n := min(max(j.Boots, 1), len(all))
	if n == 0 {
		return list
	}
	t := newSet(all[len(all)-n:], s.Quantum)
	if t.total <= 0 || t.span <= 0 {
		return list
	}
	t.segment()
	since := t.window(len(t.cuts) - 2).since
	for b := range t.boots {
		trace := &list[len(list)-n+b]
		for i := range len(t.cuts) - 1 {
			if g, ok := t.part(b, t.cuts[i], t.cuts[i+1]); ok {
				g.Present = t.cuts[i] >= since
				trace.Segments = append(trace.Segments, g)
			}
		}
	}
	return list
}

// part returns the part of a boot in the slots from, inclusive, to, exclusive.
func (s *set) part(boot, from, to int) (g Segment, ok bool) {
	p, q := &s.sums[boot][to], &s.sums[boot][from]
	n := p.n - q.n
	if n < 2 {
		return g, false
	}
	slope := s.fit(from, to).slope
	mean := (p.y-q.y)/n + s.boots[boot].env[0]
	x := (p.x - q.x) / n
	first, last := x-(n-1)/2, x+(n-1)/2
	at := func(x float64) float64 { return s.t0 + x*s.dt }
	return Segment{From: at(first), To: at(last), Start: mean + slope*(first-x), End: mean + slope*(last-x)}, true
}
