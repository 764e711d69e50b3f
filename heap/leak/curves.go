package leak

import "math"

// Shapes of a growth that does not go on: a cache that fills ever more slowly, and the flank of a day or a week. A shape that fits better
// than the segments may be true.
const (
	maxFunctions = 4 // of a shape, with the constant
	minShaped    = 8 // points
	shapeBetter  = 6 // difference of the Bayesian information criteria
	leastCycle   = 0.25
	mostCycles   = 2
	slowFrom     = 0.001 // of the uptime: where a logarithm begins
)

// curve is a shape: a sum of a constant and some functions of the time since the boot.
type curve struct {
	functions int // with the constant
	at        func(t float64, f *[maxFunctions]float64)
	why       string
}

const (
	slowingWhy = "the growth slows down: a cache that fills, or a leak; a longer log decides"
	dailyWhy   = "a daily cycle grows like this, too; one more day decides"
	weeklyWhy  = "a weekly cycle grows like this, too; one more week decides"
)

var straight = curve{2, func(t float64, f *[maxFunctions]float64) { f[1] = t }, ""}

// cycle returns a cycle of some hours, and a straight line beside it.
func cycle(hours float64, functions int, why string) curve {
	return curve{functions, func(t float64, f *[maxFunctions]float64) {
		f[1], f[2], f[3] = math.Cos(2*math.Pi*t/hours), math.Sin(2*math.Pi*t/hours), t
	}, why}
}

// otherwise returns the reason why a window of a boot may be another shape than a leak, "" if it is not.
func (s *set) otherwise(w window, timed bool) (why string) {
	b := s.boots[0]
	length := b.span()
	list := []curve{
		{2, func(t float64, f *[maxFunctions]float64) { f[1] = math.Sqrt(t) }, slowingWhy},
		{2, func(t float64, f *[maxFunctions]float64) { f[1] = math.Log(t + slowFrom*length) }, slowingWhy},
	}
	possible := func(hours float64) bool { return timed && length >= leastCycle*hours && length <= mostCycles*hours }
	if possible(24) {
		list = append(list, cycle(24, 3, dailyWhy))
	}
	if possible(168) {
		list = append(list, cycle(168, 3, weeklyWhy))
	}
	p := s.pieces(w.since, w.to, 3, func(i int) bool { return b.touch[i] })
	best := float64(shapeBetter)
	for _, c := range list {
		if by := p.worse(&c); by > best {
			best, why = by, c.why
		}
	}
	return why
}

// A boot of so many hours may be explained by a daily cycle.
const (
	leastDaily = 12
	mostDaily  = 72
)

// daily returns the largest rate of a boot that a daily cycle and a straight line explain better than its segments do; 0 if they do not.
func (s *set) daily() float64 {
	if length := s.boots[0].span(); length < leastDaily || length > mostDaily {
		return 0
	}
	p := s.pieces(0, s.slots, 1, func(int) bool { return true })
	c := cycle(24, 4, "")
	if p.worse(&c) < shapeBetter {
		return 0
	}
	n := float64(len(p.at))
	rest, slope, err := c.fit(p.at, p.value)
	return math.Max(0, slope+student90(n-4)*err*math.Sqrt((rest+p.noise)/math.Max(1, n-4)))
}

// pieces are points of a boot, and how far they are from the segments.
type pieces struct {
	at, value               []float64
	rest, noise, parameters float64
}

// pieces returns the levels that are of the segments in some slots, if these have enough.
func (s *set) pieces(from, to, least int, of func(i int) bool) (p pieces) {
	b := s.boots[0]
	for i := range len(s.cuts) - 1 {
		if s.cuts[i] < from || s.cuts[i] >= to {
			continue
		}
		first, last := s.inside(s.cuts[i], s.cuts[i+1])
		n := len(p.at)
		for k, at := range b.at {
			if at >= first && at <= last && of(k) {
				p.at, p.value = append(p.at, at), append(p.value, b.level[k])
			}
		}
		if len(p.at)-n < least {
			p.at, p.value = p.at[:n], p.value[:n]
			continue
		}
		rest, _, _ := straight.fit(p.at[n:], p.value[n:])
		p.rest, p.parameters = p.rest+rest, p.parameters+2
	}
	p.noise = float64(len(p.at)) * square(s.quantum) / 12
	return p
}

// worse returns how much worse the segments are than a shape, by the Bayesian information criterion.
func (p *pieces) worse(c *curve) float64 {
	n := float64(len(p.at))
	if n < minShaped {
		return 0
	}
	rest, _, _ := c.fit(p.at, p.value)
	return n*math.Log((p.rest+p.noise)/(rest+p.noise)) + (p.parameters-float64(c.functions))*math.Log(n)
}

// fit returns the sum of the squared distances of points from a curve by least squares, and the factor of its last function with its
// error if the deviation of a point is 1.
func (c *curve) fit(at, value []float64) (rest, last, err float64) {
	var a [maxFunctions][maxFunctions + 1]float64 // normal equations
	f := [maxFunctions]float64{1}
	for i, t := range at {
		c.at(t, &f)
		y := value[i] - value[0]
		rest += y * y
		for r := range c.functions {
			for k := range c.functions {
				a[r][k] += f[r] * f[k]
			}
			a[r][maxFunctions] += f[r] * y
		}
	}
	for r := range c.functions {
		last, err = 0, math.Inf(1)
		if a[r][r] <= 1e-12*float64(len(at)) {
			continue
		}
		last, err = a[r][maxFunctions]/a[r][r], 1/math.Sqrt(a[r][r])
		rest -= last * a[r][maxFunctions]
		for k := r + 1; k < c.functions; k++ {
			x := a[k][r] / a[r][r]
			for i := r; i <= maxFunctions; i++ {
				a[k][i] -= x * a[r][i]
			}
		}
	}
	return math.Max(0, rest), last, err
}
