package leak

import (
	"math"
	"slices"
)

// Member is the judgement of one of many devices that run the same program, in terms that add up over them.
type Member struct {
	Judgement
	// Shape is the part of Weight, 0 or less, by which the growth is unlike that of a leak: what began late may be a cache, and what
	// returns in each boot a warm-up. Weight less Shape is the evidence that the values grow at all. The devices share the shape, so that
	// a sum of their weights has it once, and not for each device.
	Shape float64
	// Changes within the boots, in bytes: the mean of the last third of a boot less that of the first third, the mean of the first third,
	// both per boot, and the largest less the least value.
	Net, Level, Swing float64
	// Early and Late are the rates from the first to the middle third of the boots, and from there to the last.
	Early, Late float64
	// Jump is the sum of the changes from the end of a boot to the begin of the next, and Grown that of the growth in the boots before these.
	Jump, Grown float64
}

// JudgeMember judges the series of one of many devices. If a growth is evident only from all of many boots, Rate, Low, High and Since are
// those of their common slope, whatever Verdict is.
func JudgeMember(s Series) Member {
	j, boots := s.answered()
	m := Member{Judgement: j, Shape: j.evidence.late()}
	if len(boots) > 0 {
		m.changes(boots)
		m.returned(boots)
		m.repeated(boots, math.Max(s.Quantum, 1))
	}
	return m
}

// changes sets how the values change within the boots, and from one to the next.
func (m *Member) changes(boots []*boot) {
	var rise, span [2]float64
	var end, before float64 // of the last boot: the values at its end, and its growth
	low, high := math.Inf(1), math.Inf(-1)
	for i, b := range boots {
		low, high = min(low, slices.Min(b.level)), max(high, slices.Max(b.level))
		k := len(b.level)
		n := max(1, k/3)
		v := [3]float64{mean(b.level[:n]), mean(b.level[n : k-n]), mean(b.level[k-n:])}
		t := [3]float64{mean(b.at[:n]), mean(b.at[n : k-n]), mean(b.at[k-n:])}
		for part := range rise {
			rise[part] += v[part+1] - v[part]
			span[part] += t[part+1] - t[part]
		}
		m.Net, m.Level = m.Net+v[2]-v[0], m.Level+v[0]
		q := max(1, k/6)
		begin := mean(b.level[:q])
		if i > 0 {
			m.Jump, m.Grown = m.Jump+begin-end, m.Grown+before
		}
		end = mean(b.level[k-q:])
		before = end - begin
	}
	n := float64(len(boots))
	m.Net, m.Level, m.Swing = m.Net/n, m.Level/n, high-low
	m.Early, m.Late = rise[0]/span[0], rise[1]/span[1]
}

// returned takes back the evidence of a growth that began in a later boot and is not beyond what the boots before held: they rose as far,
// and what falls again is no leak. The hour of day and the length of the boots can be common to all devices, so many would count it.
func (m *Member) returned(boots []*boot) {
	before, since := math.Inf(-1), math.Inf(-1)
	for _, b := range boots {
		if top := slices.Max(b.level); b.index < m.Since.Boot {
			before = max(before, top)
		} else {
			since = max(since, top)
		}
	}
	if before >= since {
		m.Weight = min(m.Weight, m.Shape)
	}
}

// Limits of a growth that each boot has.
const (
	manyBoots    = 5
	mostRepeated = 20   // the largest weight
	uptimes      = 8    // parts of the uptime
	crooked      = 0.05 // part of the growth by which a leak is usually off a straight line
)

// repeated looks for a growth that each of many boots has, however small it is beside the noise of one: the slopes of the boots are
// compared with how much they differ. The mean of the boots must be as near to a straight line as to any other shape: a step at the same
// time of each boot, a cycle or a warm-up is not. Both comparisons are by the Bayesian information criterion.
func (m *Member) repeated(boots []*boot, quantum float64) {
	n := float64(len(boots))
	if n < manyBoots {
		return
	}
	slope, err, sxx := commonSlope(boots)
	variance := math.Max(square(err), square(quantum)/12/sxx)
	weight := math.Min(mostRepeated, n/2*math.Log1p(square(slope)/variance/n)-math.Log(n)/2)
	if slope <= 0 || weight <= m.Weight-m.Shape {
		return
	}
	weight = math.Min(weight, (uptimes-2)*math.Log(n)/2-unlike(boots, slope, quantum)/2)
	if weight <= m.Weight-m.Shape {
		return
	}
	margin := student90(n-1) * err
	m.Shape, m.Boots, m.Since = m.Weight-weight, len(boots), Moment{boots[0].index, boots[0].at[0]}
	m.Rate, m.Low, m.High = slope, slope-margin, slope+margin
}

// unlike returns how far the mean of the boots is from a straight line: the sum over the parts of the uptime of the squares of the standard
// deviations.
func unlike(boots []*boot, slope, quantum float64) (chi2 float64) {
	first, last, span := math.Inf(1), math.Inf(-1), 0.0
	for _, b := range boots {
		first, last, span = math.Min(first, b.at[0]), math.Max(last, b.at[len(b.at)-1]), span+b.span()/float64(len(boots))
	}
	var n, sum, squares [uptimes]float64
	for _, b := range boots {
		x, y := mean(b.at), mean(b.level)
		var points, off [uptimes]float64
		for i, at := range b.at {
			k := min(uptimes-1, int(uptimes*(at-first)/(last-first)))
			points[k], off[k] = points[k]+1, off[k]+b.level[i]-y-slope*(at-x)
		}
		for k, p := range points {
			if p > 0 {
				n[k], sum[k], squares[k] = n[k]+1, sum[k]+off[k]/p, squares[k]+square(off[k]/p)
			}
		}
	}
	var within, of float64
	for k := range n {
		if n[k] > 1 {
			within, of = within+squares[k]-square(sum[k])/n[k], of+n[k]-1
		}
	}
	for k := range n {
		if n[k] > 1 {
			chi2 += square(sum[k]/n[k]) / ((within/of+square(quantum)/12)/n[k] + square(crooked*slope*span))
		}
	}
	return chi2
}

// commonSlope returns the slope that boots have in common, and its error by how much their slopes differ.
func commonSlope(boots []*boot) (slope, err, sxx float64) {
	sums := make([][2]float64, len(boots))
	sxy := 0.0
	for i, b := range boots {
		x, y := mean(b.at), mean(b.level)
		for k, at := range b.at {
			sums[i][0], sums[i][1] = sums[i][0]+(at-x)*(b.level[k]-y), sums[i][1]+square(at-x)
		}
		sxy, sxx = sxy+sums[i][0], sxx+sums[i][1]
	}
	slope = sxy / sxx
	rest := 0.0
	for _, s := range sums {
		rest += square(s[0] - slope*s[1])
	}
	return slope, math.Sqrt(rest) / sxx, sxx
}
