package leak

import (
	"math"
	"slices"
)

// set is a set of boots that share the slope of each segment of uptime, with intercepts of their own.
type set struct {
	boots   []*boot
	quantum float64
	t0, dt  float64 // grid: slot k is at t0 + k dt
	slots   int
	span    float64 // sum of the times of the boots
	lost    float64 // largest boot.lost
	hi      []int   // by boot: the end of its slots, without the hook
	sums    [][]moments
	points  float64 // slots of all boots
	spread  float64 // sum of the squares of how far the rises of the envelope are from their neighbours, per boot: its variance
	total   float64 // sum of the usual rises, per boot
	typical float64 // usual rise
	cuts    []int   // begins of the segments, and the end
}

// moments are sums over the slots of a boot before a slot.
type moments struct{ n, x, y, xx, xy, yy float64 }

// fit is a common slope with an intercept for each boot.
type fit struct{ slope, sxx, rest, n float64 }

// Constants of the segmentation.
const (
	perSegment = 14   // a segment must explain this part of the variance that rises at random have
	tolerance  = 0.02 // of the usual rise: what is straighter is straight
	outlying   = 3    // rises of more than three times the median count as so many, in the variance
	startUp    = 0.12 // of a boot: the part in which it starts up
)

func newSet(boots []*boot, quantum float64) *set {
	s := &set{boots: boots, quantum: quantum, t0: math.Inf(1)}
	end := math.Inf(-1)
	for _, b := range boots {
		s.slots = max(s.slots, len(b.at))
		s.t0, end = math.Min(s.t0, b.at[0]), math.Max(end, b.at[len(b.at)-1])
		s.span += b.span()
		s.lost = math.Max(s.lost, b.lost)
	}
	if len(boots) > 1 { // boots that begin or end at other times need a finer grid
		s.slots = min(maxBins, max(s.slots, 24))
	}
	s.dt = (end - s.t0) / float64(s.slots-1)
	for _, b := range boots {
		s.add(b)
	}
	s.scatter()
	return s
}

// time returns the time of a slot.
func (s *set) time(slot int) float64 { return s.t0 + float64(slot)*s.dt }

// add interpolates the envelope of a boot.
func (s *set) add(b *boot) {
	n := len(b.at)
	last := max(n-1-b.hook, min(2, n-1))
	lo := int(math.Ceil((b.at[0]-s.t0)/s.dt - 1e-9))
	hi := int(math.Floor((b.at[last]-s.t0)/s.dt+1e-9)) + 1
	sums := make([]moments, s.slots+1)
	i := 1
	for k := range s.slots {
		m := sums[k]
		if k >= lo && k < hi {
			at := s.time(k)
			for i < n-1 && b.at[i] < at {
				i++
			}
			x, y := float64(k), b.env[i-1]+(b.env[i]-b.env[i-1])*(at-b.at[i-1])/(b.at[i]-b.at[i-1])-b.env[0]
			m = moments{m.n + 1, m.x + x, m.y + y, m.xx + x*x, m.xy + x*y, m.yy + y*y}
		}
		sums[k+1] = m
	}
	s.hi, s.sums = append(s.hi, hi), append(s.sums, sums)
	s.points += sums[s.slots].n
}

// scatter sets spread and total from the rises between the bins that touch the floor: those after the
// start-up, if they are a good part.
func (s *set) scatter() {
	total, spread, typical := s.scatterFrom(startUp)
	s.total, s.spread, s.typical = s.scatterFrom(0)
	if total > s.total/5 && spread < s.spread {
		s.total, s.spread, s.typical = total, spread, typical
	}
}

func (s *set) scatterFrom(part float64) (total, spread, typical float64) {
	var rises, times []float64 // a time of 0 begins a boot
	for _, b := range s.boots {
		rises, times = append(rises, 0), append(times, 0)
		last := -1
		from := b.at[0] + part*b.span()
		for i, touches := range b.touch {
			if !touches || b.at[i] < from {
				continue
			}
			if last >= 0 && b.floor[i] <= b.floor[last]+s.quantum/2 {
				continue
			}
			if last >= 0 {
				rises, times = append(rises, b.floor[i]-b.floor[last]), append(times, b.at[i]-b.at[last])
			}
			last = i
		}
	}
	if len(rises) == len(s.boots) {
		return 0, 0, 0
	}
	sorted := slices.Clone(rises)
	slices.Sort(sorted)
	most := outlying * sorted[len(s.boots)+(len(rises)-len(s.boots))/2]
	for i, r := range rises {
		if times[i] == 0 {
			continue
		}
		total, typical = total+math.Min(r, most), typical+square(math.Min(r, most))
		off := r // from what the neighbours predict
		switch before, after := times[i-1] > 0, i+1 < len(times) && times[i+1] > 0; {
		case before && after:
			off = (r - times[i]*(rises[i-1]+rises[i+1])/(times[i-1]+times[i+1])) / math.Sqrt(1.5)
		case before:
			off = (r - times[i]*rises[i-1]/times[i-1]) / math.Sqrt2
		case after:
			off = (r - times[i]*rises[i+1]/times[i+1]) / math.Sqrt2
		}
		spread += square(math.Min(math.Abs(off), math.Min(r, most)))
	}
	n := float64(len(s.boots))
	return total / n, spread / n, typical / total
}

// fit fits the slots from, inclusive, to, exclusive.
func (s *set) fit(from, to int) (f fit) {
	var sxy, syy float64
	for b := range s.sums {
		p, q := &s.sums[b][to], &s.sums[b][from]
		n := p.n - q.n
		if n == 0 {
			continue
		}
		x, y := p.x-q.x, p.y-q.y
		f.n += n
		f.sxx += p.xx - q.xx - x*x/n
		sxy += p.xy - q.xy - x*y/n
		syy += p.yy - q.yy - y*y/n
	}
	if f.sxx > 1e-9 {
		f.slope = sxy / f.sxx
	}
	f.rest = math.Max(0, syy-f.slope*sxy)
	return f
}

// rest is that of fit.
func (s *set) rest(from, to int) float64 {
	if to-from < 3 && len(s.sums) == 1 {
		return 0
	}
	var sxx, sxy, syy float64
	for b := range s.sums {
		p, q := &s.sums[b][to], &s.sums[b][from]
		n := p.n - q.n
		if n < 2 {
			continue
		}
		x, y := p.x-q.x, p.y-q.y
		sxx += p.xx - q.xx - x*x/n
		sxy += p.xy - q.xy - x*y/n
		syy += p.yy - q.yy - y*y/n
	}
	if sxx > 1e-9 {
		syy -= sxy * sxy / sxx
	}
	if syy < 0 {
		return 0
	}
	return syy
}

// segment cuts the uptime into segments of constant slope by dynamic programming: it minimizes the sum of
// the squared distances and of a price for each segment.
func (s *set) segment() {
	price := s.points * math.Max(s.spread/perSegment, math.Max(square(tolerance*s.total), square(s.quantum)/6))
	best, from := make([]float64, s.slots+1), make([]int, s.slots+1)
	begins := make([]int, 0, s.slots) // that can still be best
	costs := make([]float64, s.slots)
	for to := 1; to <= s.slots; to++ {
		begins = append(begins, to-1)
		best[to] = math.Inf(1)
		for k, i := range begins {
			costs[k] = best[i] + s.rest(i, to)
			if c := costs[k] + price; c < best[to]*(1-1e-6) { // not by rounding
				best[to], from[to] = c, i
			}
		}
		n := 0
		for k, i := range begins { // what costs more already without its next segment never is
			if costs[k] <= best[to]*(1+1e-6) {
				begins[n] = i
				n++
			}
		}
		begins = begins[:n]
	}
	s.cuts = s.cuts[:0]
	for at := s.slots; at > 0; at = from[at] {
		s.cuts = append(s.cuts, at)
	}
	s.cuts = append(s.cuts, 0)
	slices.Reverse(s.cuts)
}

func square(x float64) float64 { return x * x }
