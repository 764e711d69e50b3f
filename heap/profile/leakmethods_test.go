package profile_test

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// finding is the result of a method for a log.
type finding struct {
	first   int // the path it ranks first, -1 if none
	accused int // number of paths it accuses of leaking
	says    profile.Verdict
	covered int // 1 if the interval of the leak's rate has the true one, -1 if not, 0 if it has none
}

// method ranks the paths of a log.
type method struct {
	name string
	find func(w *simulated) finding
}

var methods = []method{
	{"least squares slope, t test", func(w *simulated) finding { return w.rank(leastSquares, true) }},
	{"grew in every dump, bytes", func(w *simulated) finding { return w.rank(everyDump, false) }},
	{"Theil-Sen + Mann-Kendall, Hamed-Rao, BH, bytes", func(w *simulated) finding { return w.rank(theilSen, true) }},
	{"**the rule**", rule},
}

// rule is Profile.Leaks.
func rule(w *simulated) finding {
	l := w.profile().Leaks(profile.LeakOptions{})
	f := finding{first: -1}
	for i, r := range l.Rows {
		n, _ := strconv.ParseUint(r.Stack()[0].Func, 0, 64) // the address of path 0 is 1
		path := int(n) - 1
		if i == 0 {
			f.first, f.says = path, r.Verdict
		}
		if r.Verdict == profile.Leaking {
			f.accused++
		}
		if path == w.leak && (w.kind == "steady" || w.kind == "busy path") {
			f.covered = -1
			if math.Abs(r.Rate-w.rate) <= r.Margin {
				f.covered = 1
			}
		}
	}
	return f
}

// judged is a path with a score and a p value.
type judged struct {
	path  int
	score float64
	p     float64
	rate  float64
	error float64
}

// rank orders the paths by a score, accused paths first. With bh the p values
// are corrected by Benjamini and Hochberg's method, at 5 %.
func (w *simulated) rank(judge func(w *simulated, x []float64) judged, bh bool) finding {
	var list []judged
	for path := range w.seen {
		x := make([]float64, len(w.boot))
		for i, a := range w.seen[path] {
			x[i] = a.bytes / w.kept[i]
		}
		j := judge(w, x)
		j.path = path
		list = append(list, j)
	}
	limit := 0.5
	if bh {
		limit = -1
		slices.SortFunc(list, func(a, b judged) int { return cmp.Compare(a.p, b.p) })
		for i := range list {
			if list[i].p <= 0.05*float64(i+1)/float64(len(list)) {
				limit = list[i].p
			}
		}
	}
	accused := func(j judged) bool { return j.p <= limit && j.score > 0 }
	f := finding{first: -1}
	slices.SortStableFunc(list, func(a, b judged) int {
		x, y := accused(a), accused(b)
		if x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.score, a.score)
	})
	f.first = list[0].path
	for _, j := range list {
		if accused(j) {
			f.accused++
		}
		if j.path == w.leak && (w.kind == "steady" || w.kind == "busy path") && j.error > 0 {
			f.covered = -1
			if math.Abs(j.rate-w.rate) <= j.error {
				f.covered = 1
			}
		}
	}
	return f
}

// leastSquares is a straight line with a constant for each boot.
func leastSquares(w *simulated, x []float64) judged {
	var tt, tx, xx float64
	df := float64(len(x) - 1)
	for from, to := range w.boots {
		mt, mx := mean(w.at[from:to]), mean(x[from:to])
		for i := from; i < to; i++ {
			tt += (w.at[i] - mt) * (w.at[i] - mt)
			tx += (w.at[i] - mt) * (x[i] - mx)
			xx += (x[i] - mx) * (x[i] - mx)
		}
		df--
	}
	slope := tx / tt
	rest := math.Max(0, xx-slope*tx)
	j := judged{score: slope, rate: slope, p: 1}
	se := math.Sqrt(rest / math.Max(1, df) / tt)
	switch {
	case slope <= 0:
	case rest <= 1e-9*xx:
		j.p = 0
	default:
		j.p = studentTail(slope/se, df)
		j.error = (1.645 + 1.6/df + 1.9/df/df) * se
	}
	return j
}

// everyDump accuses the paths that rise from each dump to the next.
func everyDump(w *simulated, x []float64) judged {
	j := judged{}
	for from, to := range w.boots {
		j.score += x[to-1] - x[from]
		for i := from + 1; i < to; i++ {
			if x[i] <= x[i-1] {
				j.p = 1
			}
		}
	}
	return j
}

// theilSen is the median slope of all pairs within a boot, tested by Mann and Kendall's test
// with Hamed and Rao's correction for autocorrelation.
func theilSen(w *simulated, x []float64) judged {
	var slopes []float64
	var s, variance float64
	for from, to := range w.boots {
		for i := from; i < to; i++ {
			for k := i + 1; k < to; k++ {
				slopes = append(slopes, (x[k]-x[i])/(w.at[k]-w.at[i]))
				s += float64(cmp.Compare(x[k], x[i]))
			}
		}
		variance += kendallVariance(x[from:to], w.at[from:to])
	}
	if len(slopes) == 0 {
		return judged{p: 1}
	}
	slices.Sort(slopes)
	n := len(slopes)
	slope := (slopes[(n-1)/2] + slopes[n/2]) / 2
	j := judged{score: slope, rate: slope, p: 1}
	if s > 0 && variance > 0 {
		j.p = 0.5 * math.Erfc((s-1)/math.Sqrt(variance)/math.Sqrt2)
		c := 1.645 * math.Sqrt(variance)
		low, high := int((float64(n)-c)/2), int((float64(n)+c)/2)
		j.error = (slopes[min(high, n-1)] - slopes[max(low, 0)]) / 2
	}
	return j
}

// kendallVariance returns the variance of Kendall's S, with ties and autocorrelation.
func kendallVariance(x, at []float64) float64 {
	n := float64(len(x))
	v := n * (n - 1) * (2*n + 5)
	sorted := slices.Sorted(slices.Values(x))
	for i, k := 0, 0; i < len(sorted); i = k {
		for k = i; k < len(sorted) && sorted[k] == sorted[i]; k++ {
		}
		t := float64(k - i)
		v -= t * (t - 1) * (2*t + 5)
	}
	v /= 18
	if len(x) < 6 {
		return v
	}
	rank := detrendedRanks(x, at)
	sum := 0.0
	for lag := 1; lag < len(x)-2; lag++ {
		if r := autocorrelation(rank, lag); math.Abs(r) > 1.96/math.Sqrt(n) {
			l := float64(lag)
			sum += (n - l) * (n - l - 1) * (n - l - 2) * r
		}
	}
	return v * math.Max(0.1, 1+2/(n*(n-1)*(n-2))*sum)
}

// detrendedRanks returns the ranks of the residuals of a straight line.
func detrendedRanks(x, at []float64) []float64 {
	mt, mx := mean(at), mean(x)
	var tt, tx float64
	for i := range x {
		tt += (at[i] - mt) * (at[i] - mt)
		tx += (at[i] - mt) * (x[i] - mx)
	}
	rest := make([]float64, len(x))
	for i := range x {
		rest[i] = x[i] - tx/tt*at[i]
	}
	rank := make([]float64, len(x))
	for i := range rest {
		for k := range rest {
			rank[i] += 0.5 * float64(1+cmp.Compare(rest[i], rest[k]))
		}
	}
	return rank
}

func autocorrelation(x []float64, lag int) float64 {
	m := mean(x)
	var num, den float64
	for i := range x {
		den += (x[i] - m) * (x[i] - m)
		if i >= lag {
			num += (x[i] - m) * (x[i-lag] - m)
		}
	}
	if den == 0 {
		return 0
	}
	return num / den
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// studentTail returns the probability that a variable with Student's distribution exceeds t,
// by the integral of its density over the angle atan(t/√df).
func studentTail(t, df float64) float64 {
	const steps = 400
	to := math.Atan(t / math.Sqrt(df))
	sum := 0.0
	for i := range steps {
		sum += math.Pow(math.Cos(to*(float64(i)+0.5)/steps), df-1)
	}
	a, _ := math.Lgamma((df + 1) / 2)
	b, _ := math.Lgamma(df / 2)
	return math.Max(0, 0.5-math.Exp(a-b)/math.Sqrt(math.Pi)*sum*to/steps)
}
