package leak

import "math"

// window is the present growth: the last segment, and those before it with growth of a similar rate.
type window struct {
	slope, sxx float64 // per unit of time
	from       int     // slot since which the slope is the present one
	since      int     // slot since which it grows
	to         int
	rises      float64 // rise within the segments from since on, per boot, without the jumps between them
	rest, n    float64
	late       float64 // the rise of the second half as a part of it
	steep      float64 // logarithm of how much steeper the segment before it is, times its length
	idle       int     // slots without growth just before it
	faster     float64 // how much the rate at the end may be above slope, if it grows
}

// Largest ratios of the slopes before and after a change within one growth: a start-up is steeper.
const (
	steeper      = 2.5
	steeperStart = 1.4
	slowest      = 0.2  // the least one
	samePart     = 0.75 // slopes that are nearer are pooled
)

// part is a segment of a window.
type part struct {
	from, to int
	slope    float64
}

// window returns the growth that ends with a segment.
func (s *set) window(last int) window {
	f := s.fit(s.cuts[last], s.cuts[last+1])
	w := window{from: s.cuts[last], since: s.cuts[last], to: s.cuts[last+1], slope: f.slope, sxx: f.sxx, rest: f.rest, n: f.n}
	w.rises = f.slope * float64(w.to-w.from-1)
	parts := []part{{w.from, w.to, f.slope}}
	same, slower := true, -1
	for i := last - 1; i >= 0 && f.slope > 0; i-- {
		g := s.fit(s.cuts[i], s.cuts[i+1])
		n := s.cuts[i+1] - s.cuts[i]
		if n < 4 && 10*n < s.slots { // a jump, or the start-up
			continue
		}
		limit := steeper
		if 10*s.cuts[i+1] < 3*s.slots {
			limit = steeperStart
		}
		if g.slope < f.slope*slowest || g.slope > f.slope*limit {
			if g.slope < f.slope*slowest {
				w.idle = n
				for k := i - 1; k >= 0 && s.fit(s.cuts[k], s.cuts[k+1]).slope < f.slope*slowest; k-- {
					w.idle += s.cuts[k+1] - s.cuts[k]
				}
			}
			if g.slope > 0 {
				w.steep = math.Log(math.Max(1, g.slope/f.slope)) * math.Min(1, 5*float64(n)/float64(s.slots))
			}
			break
		}
		w.since = s.cuts[i]
		w.rises += g.slope * float64(n-1)
		parts = append(parts, part{s.cuts[i], s.cuts[i+1], g.slope})
		w.rest, w.n = w.rest+g.rest, w.n+g.n
		if slower < 0 {
			slower = i
		}
		if same = same && g.slope > samePart*f.slope && g.slope < f.slope/samePart; same {
			w.slope = (w.slope*w.sxx + g.slope*g.sxx) / (w.sxx + g.sxx)
			w.sxx += g.sxx
			w.from = s.cuts[i]
		}
	}
	if slower >= 0 && w.from == s.cuts[last] { // the rate changed within the growth: does it still?
		n1, n2 := float64(s.cuts[slower+1]-s.cuts[slower]), float64(w.to-w.from)
		before := (f.slope - s.fit(s.cuts[slower], s.cuts[slower+1]).slope) * n2 / (n1 + n2)
		half := (w.from + w.to) / 2
		within := s.fit(half, w.to).slope - s.fit(w.from, half).slope
		w.faster = math.Max(0, math.Min(before, within)) / s.dt
	}
	w.slope /= s.dt
	w.late = lateRise(parts, w.since, w.to)
	return w
}

// lateRise returns the rise in the second half of a window as a part of the whole, without the jumps
// between the parts.
func lateRise(parts []part, from, to int) float64 {
	var early, late float64
	half := float64(from+to) / 2
	for _, p := range parts {
		a, b := float64(p.from), float64(p.to)
		early += p.slope * math.Max(0, math.Min(b, half)-a)
		late += p.slope * math.Max(0, b-math.Max(a, half))
	}
	return ratio(late, early+late, 0.5)
}

// evidence is what a window is weighed by.
type evidence struct {
	Z      float64 // intervals in which the floor rose, less the number expected in random order, in standard deviations
	Bend   float64 // usual distance of the envelope from straight lines, as a part of the rise
	Share  float64 // of the time of the boots
	Late   float64 // the rise of the second half as a part of the rise: 0.5 is even
	Last   float64 // slope of the last quarter as a part of that of the window
	Fall   float64 // largest fall below an earlier level in the window, as a part of the rise
	Below  float64 // what of the rise is no more than the levels before the window, after the start-up: 1 if none of it is new
	Boots  float64 // boots in which the floor rose in the window
	Points float64 // intervals between bins in the window
	Jumps  float64 // rise of the jumps in the window, as a part of the rise
	Curve  float64 // how far Late is below even, in standard errors
	Steep  float64 // how much steeper the growth before the window is
	Idle   float64 // time without growth just before the window, as a part of the uptime
	Tail   float64 // how the levels went on after the last slot that is used, in deviations: less than 0 if slower
	Rivals float64 // call paths of the log that grow
	Whole  bool    // the window is all of the boots
	Random float64 // variance of the rises as a part of that of blocks which come at random

	other  string  // why the growth may be another shape than a leak
	daily  float64 // the largest rate beside a daily cycle that is likely
	uneven bool    // some of the points look like a leak
	least  float64 // the bound is at least this
	gain   float64 // rise, added up over the boots
	margin float64 // half of the 90 % interval of the slope
}

// tally adds up what the boots show of a window.
type tally struct {
	rose, chance, variance, fall, below, boots, points, total, share float64
}

// evidence weighs a window.
func (s *set) evidence(w window) (e evidence) {
	rise := w.rises // per boot
	var t tally
	for b := range s.boots {
		t.add(s, b, w)
	}
	n := float64(len(s.boots))
	if t.variance > 0 {
		e.Z = (t.rose - t.chance) / math.Sqrt(t.variance)
	}
	e.Boots, e.Points, e.Share = t.boots, t.points, t.share/s.span
	e.Whole = e.Share > 0.9
	if rise > 0 {
		e.Bend, e.Fall, e.Below = math.Sqrt(w.rest/math.Max(1, w.n))/rise, t.fall/rise, t.below/rise
		e.Jumps = math.Max(0, t.total/n/rise-1)
		half := (w.from + w.to) / 2
		a, b := s.fit(w.from, half), s.fit(half, w.to)
		e.Late = w.late + (ratio(b.slope, a.slope+b.slope, 0.5)-0.5)*float64(w.to-w.from)/float64(w.to-w.since)
		e.Steep = w.steep
		e.Tail = s.tail(w)
		e.Idle = float64(w.idle) / float64(s.slots)
		e.Curve = (0.5 - e.Late) / (math.Sqrt(s.rough(w))/rise/n + 0.015)
		e.Random = s.scattered(w) / (s.quantum * rise * n)
		e.Last = ratio(s.fit(max(w.from, w.to-max(3, (w.to-w.from)/4)), w.to).slope/s.dt, w.slope, 1)
	}
	e.gain = rise * n
	// The rise comes at random, and the ends of the window are uncertain by the distances from the line.
	length := float64(max(2, w.to-w.from)) * s.dt
	white := w.rest/math.Max(1, w.n-2)*12/math.Max(1, math.Min(w.n, t.points)/2) + 2*square(s.lost)/n
	e.margin = student90(t.points-t.boots) * marginFactor * math.Sqrt(white/square(length)+s.scattered(w)/square(length*n)+square(s.quantum/length)/12)
	return e
}

// add adds what a boot shows of a window.
func (t *tally) add(s *set, boot int, w window) {
	b := s.boots[boot]
	from, to := s.inside(w.since, w.to)
	lo, hi := -1, -1
	before := math.Inf(-1)
	for i, at := range b.at {
		if at < from {
			if at > b.at[0]+startUp*b.span() {
				before = math.Max(before, b.level[i])
			}
		} else if lo < 0 {
			lo = i
		}
		if at <= to {
			hi = i
		}
	}
	if hi == len(b.at)-1-b.hook || w.to >= s.hi[boot] {
		hi = len(b.at) - 1
	}
	if lo < 0 || hi-lo < 1 {
		return
	}
	changes, rose := 0, 0.0
	high := b.level[lo]
	for i := lo + 1; i <= hi; i++ {
		if b.floor[i]-b.floor[i-1] > s.quantum/2 {
			rose++
		}
		if math.Abs(b.level[i]-b.level[i-1]) > s.quantum/2 {
			changes++
		}
		t.fall = math.Max(t.fall, high-b.level[i])
		high = math.Max(high, b.level[i])
	}
	if 2*changes >= hi-lo || changes == 0 { // that a value which seldom changes rises each time is no accident
		changes = hi - lo
	}
	for k := 2.0; k <= float64(changes+1); k++ { // the k-th value from the end is a new minimum with probability 1/k
		t.chance, t.variance = t.chance+1/k, t.variance+1/k-1/(k*k)
	}
	if t.rose += rose; rose > 0 {
		t.boots++
	}
	t.total += b.floor[hi] - b.floor[lo]
	t.points += float64(hi - lo)
	t.share += b.at[hi] - b.at[lo]
	if !math.IsInf(before, -1) {
		t.below = math.Max(t.below, w.rises-(high-before))
	}
}

// minTail is the least number of bins of the hook, and of those before it, that tell how the levels went on.
const minTail = 4

// tail compares the levels of the hook with the slope of a window: those of its second half with those of its first,
// in units of how much such differences were off within the window. A plateau of a noisy memory is in the hook.
func (s *set) tail(w window) float64 {
	sum, boots := 0.0, 0.0
	for i, b := range s.boots {
		n, half := len(b.at), b.hook/2
		if b.hook < minTail || w.to < s.hi[i] {
			continue
		}
		from, _ := s.inside(w.since, w.to)
		first := 0
		for first < n && b.at[first] < from {
			first++
		}
		off := func(k int) float64 { // of the bins before and after k
			return mean(b.level[k:k+half]) - mean(b.level[k-half:k]) - w.slope*(mean(b.at[k:k+half])-mean(b.at[k-half:k]))
		}
		var squares, of float64
		for k := first + half; k+half <= n-b.hook; k++ {
			squares, of = squares+square(off(k)), of+1
		}
		if of < minTail {
			continue
		}
		sum += off(n-half) / math.Sqrt(squares/of+square(s.quantum))
		boots++
	}
	return sum / math.Sqrt(math.Max(1, boots))
}

// inside returns times just before and after those of slots.
func (s *set) inside(from, to int) (a, b float64) {
	return s.t0 + (float64(from)-0.01)*s.dt, s.t0 + (float64(to)-0.99)*s.dt
}

// touches calls each with the rise and the time between each two bins of a boot, one after the other,
// that touch the floor, from slot from to slot to.
func (s *set) touches(from, to int, each func(first bool, rise, time float64)) {
	a, z := s.inside(from, to)
	for _, b := range s.boots {
		last, first := -1, true
		for i, touches := range b.touch {
			if !touches || b.at[i] < a || b.at[i] > z {
				continue
			}
			if last >= 0 {
				each(first, b.floor[i]-b.floor[last], b.at[i]-b.at[last])
				first = false
			}
			last = i
		}
	}
}

// scattered returns the sum of the squares of how far the rises are from the slope of a window.
func (s *set) scattered(w window) (sum float64) {
	most := square(outlying * s.typical)
	s.touches(w.from, w.to, func(_ bool, rise, time float64) {
		sum += math.Min(most, square(rise-w.slope*time))
	})
	return sum
}

// rough returns the sum of the squares of how far the rises are from what their neighbours predict: noise,
// without slow curvature.
func (s *set) rough(w window) (sum float64) {
	most := square(outlying * s.typical)
	var x, g [3]float64
	n := 0
	s.touches(w.since, w.to, func(first bool, rise, time float64) {
		if first {
			n = 0
		}
		x, g = [3]float64{x[1], x[2], rise}, [3]float64{g[1], g[2], time}
		if n++; n >= 3 {
			sum += math.Min(most, square(x[1]-g[1]*(x[0]+x[2])/(g[0]+g[2]))/1.5)
		}
	})
	return sum
}

// marginFactor is chosen so that nine of ten intervals have the true rate.
const marginFactor = 1.12

// student90 returns the factor of a 90 % interval with df degrees of freedom.
func student90(df float64) float64 {
	n := math.Max(df, 1)
	return 1.645 + 1.6/n + 1.9/(n*n)
}

func ratio(a, b, otherwise float64) float64 {
	if b <= 0 {
		return otherwise
	}
	return math.Min(2, math.Max(-1, a/b))
}
