// Package leak judges growth: whether a series of values, such as the live bytes of a call path or
// the memory in use of a heap, leaks now, how fast, and since when. The answer is one of three, each
// with its probability: a leak with a rate, none above a bound, or unknown and why.
// heap/docs/leaks.md is its specification, vectors/ has series with their answers.
package leak

import (
	"fmt"
	"math"
	"slices"
)

// Series has the values of one call path, heap or other memory over the boots of a device.
type Series struct {
	Boots []Boot `json:"boots"` // the oldest first
	Kind  Kind   `json:"kind"`
	// Quantum is the least change of Value that is one: the size of a block, or the alignment of the
	// allocator. 0 is 8.
	Quantum float64 `json:"quantum"`
	// Per is the unit of Boot.At, such as "hour" or "dump". It is copied to Judgement.Per.
	Per string `json:"per"`
}

// Boot has the values of a boot. Judge leaves out a point whose time is not after that of the point
// before, and one that has a number that is not finite.
type Boot struct {
	At    []float64 `json:"at"`    // time since the boot in units of Series.Per
	Value []float64 `json:"value"` // bytes in use; as many as At
	// Kept is the part of the blocks of each value that the log has, more than 0, at most 1. A value
	// is divided by it. nil is 1 for all.
	Kept []float64 `json:"kept,omitempty"`
	// Version is the firmware, "" if it is not known.
	Version string `json:"version,omitempty"`
}

// Kind is what a series is of. It decides how likely a leak is before the series is seen.
type Kind uint8

const (
	Path Kind = iota // a call path, one of some hundred
	Heap             // a whole heap, or the sum of many paths
)

var kinds = [...]string{"path", "heap"}

// String returns "path" or "heap".
func (k Kind) String() string { return kinds[min(int(k), len(kinds)-1)] }

// MarshalText returns the text of String, for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a text of String.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, s := range kinds {
		if s == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("leak: kind %q, expected path or heap", text)
}

// Verdict is the answer to a series.
type Verdict uint8

const (
	Unknown Verdict = iota // see Judgement.Why
	None                   // it grows by at most Judgement.Bound
	Leak                   // it leaks, with Judgement.Probability of at least one half
)

var verdicts = [...]string{"unknown", "none", "leak"}

// String returns "leak", "none" or "unknown".
func (v Verdict) String() string { return verdicts[min(int(v), len(verdicts)-1)] }

// MarshalText returns the text of String, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a text of String.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, s := range verdicts {
		if s == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("leak: verdict %q, expected leak, none or unknown", text)
}

// Moment is a point of a series.
type Moment struct {
	Boot int     `json:"boot"` // index in Series.Boots
	At   float64 `json:"at"`   // its time since the boot
}

// Judgement is the answer to a series, and what it rests on.
type Judgement struct {
	Verdict Verdict `json:"verdict"`
	// Probability is that of a leak that goes on, from 0 to 1. Sure is 0.95 and more.
	Probability float64 `json:"probability"`
	// Rate is the present growth in bytes per unit of time. The true rate is between Low and High in
	// nine of ten cases.
	Rate float64 `json:"rate"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Per  string  `json:"per"`
	// Since is when the present growth began, or that which ended.
	Since Moment `json:"since"`
	// Until is when the growth ended, nil if none did. Former was its rate.
	Until  *Moment `json:"until,omitempty"`
	Former float64 `json:"former,omitempty"`
	// Bound is the largest rate that the series allows, if Verdict is None. A leak that is slower is
	// not excluded.
	Bound float64 `json:"bound,omitempty"`
	// Why is why the verdict is unknown, and what would decide.
	Why string `json:"why,omitempty"`
	// Weight is the logarithm of how much more likely the series is with a leak than without one.
	// Weights of devices that were judged independently add up: see Kind.Probability.
	Weight float64 `json:"weight"`
	// Gain is the growth since Since in bytes, without single jumps, added up over the boots.
	Gain float64 `json:"gain"`
	// Boots is the number of boots, at the end of the series, that the rate is of.
	Boots int `json:"boots"`

	evidence evidence
}

// Sure is the least probability of a leak that is called sure, by colours and by --fail-over.
const Sure = 0.95

// Sure reports whether the series leaks with a probability of at least Sure.
func (j *Judgement) Sure() bool { return j.Verdict == Leak && j.Probability >= Sure }

// Score orders series by the growth that is likely a leak, the largest first.
func (j *Judgement) Score() float64 { return math.Log(math.Max(j.Gain, 1e-9)) + 2*j.Weight }

// likely is the least probability of a leak.
const likely = 0.5

// hardly is the largest probability of none, and minNone the least number of intervals.
const (
	hardly  = 0.1
	minNone = 4
)

// prior is the logarithm of the odds of a leak before a series is seen, of a path that grows and of a
// heap that somebody asks about, and by how much the logarithm of the odds grows faster than the weight
// from a weight on: call paths are more unlike than heaps.
var prior = [...]struct{ odds, from, faster float64 }{Path: {-5.7, 2.4, 0.85}, Heap: {-1.25, 99, 0}}

// Probability returns the probability of a leak for a weight, or for the sum of the weights of
// several devices.
func (k Kind) Probability(weight float64) float64 {
	p := prior[min(int(k), len(prior)-1)]
	return logistic(weight + p.odds + p.faster*math.Max(0, weight-p.from))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// minPoints is the least number of points of a boot that is examined, and of the intervals that are
// evidence for a leak.
const minPoints = 3

// preferMore is by how much less certain more boots may be: they know the rate better.
const preferMore = 0.3

// Judge judges a series: its last boot, the last two, four ... boots, and all of them. It keeps what is
// most certain. If the boots of the present firmware, or the last boot, exclude the former rate, only these
// count. What is not sure is judged by every second, fourth and eighth point, too: more points are never less
// certain.
func Judge(s Series) Judgement {
	if s.Quantum <= 0 {
		s.Quantum = 8
	}
	j := judge(&s)
	for every := 2; every <= maxThin && j.Probability < Sure && (s.Kind == Heap || j.Rate > 0 && j.Probability > uncertain); every *= 2 {
		if t := thin(&s, every); t != nil {
			if o := judge(t); o.Probability > j.Probability {
				j = o
			}
		}
	}
	j.Per = s.Per
	j.answer()
	return j
}

// Limits of thinning: the largest step, the least number of points, and the probability below which a path, of
// which there are many, is not examined.
const (
	maxThin   = 8
	minThin   = 12
	uncertain = 0.05
)

// thin returns every n-th point of each boot, from the first on; nil if no boot has enough.
func thin(s *Series, n int) *Series {
	out := *s
	out.Boots = make([]Boot, len(s.Boots))
	enough := false
	for i, b := range s.Boots {
		t := &out.Boots[i]
		t.Version = b.Version
		for k := 0; k < min(len(b.At), len(b.Value)); k += n {
			t.At, t.Value = append(t.At, b.At[k]), append(t.Value, b.Value[k])
			if k < len(b.Kept) {
				t.Kept = append(t.Kept, b.Kept[k])
			}
		}
		enough = enough || len(t.At) >= minThin
	}
	if !enough {
		return nil
	}
	return &out
}

// judge judges the points of a series.
func judge(s *Series) Judgement {
	var all []*boot
	for i := range s.Boots {
		if b := reduce(&s.Boots[i], i, s.Quantum); b != nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return Judgement{Low: math.Inf(-1), High: math.Inf(1), Why: "too short: no boot has 3 points"}
	}
	j := judgeSets(all, s.Quantum, s)
	present, before := latest(all)
	if !j.excluded(present, before, minEnded, s) && len(all) > 1 {
		j.excluded(all[len(all)-1:], all[:len(all)-1], minQuiet, s)
	}
	j.Probability = s.Kind.Probability(j.Weight)
	return j
}

// minQuiet is the least number of intervals of a last boot that excludes the rate of the boots before.
const minQuiet = 10

// excluded reports whether boots exclude the rate of all. Then the judgement is that of these boots, and the
// growth of those before has ended.
func (j *Judgement) excluded(present, before []*boot, points float64, s *Series) bool {
	if len(before) == 0 || j.Rate <= 0 || j.Weight < endedWeight {
		return false
	}
	now := judgeSets(present, s.Quantum, s)
	if now.evidence.Points < points || now.High >= j.Rate/2 {
		return false
	}
	was := judgeSets(before, s.Quantum, s)
	if *j = now; j.Until == nil && was.Weight >= endedWeight && was.Rate > 0 {
		j.Until, j.Former, j.Since = &Moment{present[0].index, present[0].at[0]}, was.Rate, was.Since
	}
	return true
}

// latest returns the boots of the version of the last boot, and the others.
func latest(all []*boot) (present, before []*boot) {
	for _, b := range all {
		if b.version == all[len(all)-1].version {
			present = append(present, b)
		} else {
			before = append(before, b)
		}
	}
	return present, before
}

// judgeSets judges the last boots, as Judge does.
func judgeSets(all []*boot, quantum float64, s *Series) (best Judgement) {
	found := -1
	for n := 1; ; n *= 2 {
		n = min(n, len(all))
		if set := all[len(all)-n:]; enough(set) || n == len(all) {
			j := newSet(set, quantum).judge()
			if j.Boots = n; found < 0 || j.Weight > best.Weight-preferMore {
				best, found = j, len(all)-n
			}
		}
		if n == len(all) {
			break
		}
	}
	if found > 0 && best.Rate > 0 && best.evidence.Share < 1 && best.contrasts(all[:found], all[len(all)-1], quantum) {
		best.evidence.Share = 1
		best.Weight = weigh(&best.evidence)
	}
	if e := &best.evidence; s.Kind == Heap { // of a heap, the first points are a start-up
		best.Weight = math.Min(best.Weight, perPoint*e.Points)
	} else if e.Points < shortBoot*e.Boots { // and so are boots of few dumps
		best.Weight = math.Min(best.Weight, mostShort)
	}
	best.began(all, found, quantum, s.Kind)
	return best
}

// perPoint is the most that an interval adds to the weight of a heap.
const perPoint = 0.6

// shortBoot is the number of intervals below which a boot may be its start-up, and mostShort the largest weight
// of a path in such boots.
const (
	shortBoot = 4
	mostShort = 5.3
)

// slower is the ratio of the slopes before and after a begin.
const slower = 0.2

// contrasts reports whether an earlier boot ran through at least half of the uptime in which the last boot
// grew, and grew there less than slower times as fast: so the growth is no cache, which each boot fills.
func (j *Judgement) contrasts(before []*boot, last *boot, quantum float64) bool {
	from, to := j.Since.At, last.at[len(last.at)-1]
	for _, b := range before {
		lo := slices.IndexFunc(b.at, func(at float64) bool { return at >= from })
		if lo < 0 {
			continue
		}
		hi := len(b.at) - 1
		for hi > lo && b.at[hi] > to {
			hi--
		}
		if time := b.at[hi] - b.at[lo]; time >= (to-from)/2 && b.floor[hi]-b.floor[lo] < slower*j.Rate*time {
			return true
		}
	}
	return false
}

// enough reports whether a set of boots has enough bins for a slope after a start-up.
func enough(set []*boot) bool {
	for _, b := range set {
		if len(b.at) >= 6 {
			return true
		}
	}
	return false
}

// began looks for the begin of the growth in boots before those that were examined together: from is
// the first of these.
func (j *Judgement) began(all []*boot, from int, quantum float64, k Kind) {
	first := all[from]
	j.Since.Boot = first.index
	if j.Rate <= 0 || j.Weight < 0 || j.Since.At > first.at[0]+0.15*first.span() {
		return
	}
	whole := from
	j.Since.At = first.at[0]
	for i := from - 1; i >= 0; i-- {
		s := newSet(all[i:i+1], quantum)
		if s.total <= 0 || s.span <= 0 {
			break
		}
		s.segment()
		w := s.window(len(s.cuts) - 2)
		if w.slope < 0.33*j.Rate || w.slope > 3*j.Rate {
			break
		}
		j.Since = Moment{all[i].index, s.time(w.since)}
		if float64(w.since) > 0.15*float64(s.slots) {
			break
		}
		j.Since.At, whole = s.t0, i
	}
	if whole < from {
		more := newSet(all[whole:], quantum).judge()
		if more.Rate > j.Rate/2 && more.Rate < j.Rate*2 && more.High-more.Low < j.High-j.Low {
			j.Rate, j.Low, j.High, j.Gain, j.Boots = more.Rate, more.Low, more.High, more.Gain, len(all)-whole
		}
	}
}

// judge judges boots together.
func (s *set) judge() (j Judgement) {
	j.Since.At = s.t0
	if s.total <= 0 || s.span <= 0 {
		return s.flat()
	}
	s.segment()
	last := len(s.cuts) - 2
	if n := s.cuts[last+1] - s.cuts[last]; last > 0 && n <= 2 && s.fit(s.cuts[last], s.cuts[last+1]).slope > 0 { // a jump at the end does not tell the rate
		last--
	}
	w := s.window(last)
	e := s.evidence(w)
	j = Judgement{Rate: w.slope + w.faster/2, Gain: e.gain, evidence: e}
	j.Since = Moment{s.boots[0].index, s.time(w.since)}
	j.Low, j.High = w.slope-e.margin, w.slope+w.faster+e.margin
	j.Weight = weigh(&e)
	if e.Points < minPoints {
		j.Weight = math.Min(j.Weight, 0)
	}
	s.ended(last, &j)
	return j
}

// flat is the result of boots whose floor does not rise.
func (s *set) flat() Judgement {
	least, points := s.quantum, 0.0
	for _, b := range s.boots {
		least, points = math.Max(least, b.fallback), points+float64(len(b.at)-1)
	}
	most := (least + 2*s.lost) / math.Max(s.span, 1e-9)
	return Judgement{Weight: -12, Low: -most, High: most, Since: Moment{s.boots[0].index, s.t0}, evidence: evidence{Points: points}}
}

// Limits of a growth that ended.
const (
	minEnded    = 5    // the least number of slots
	endedWeight = -1.5 // the least weight
)

// ended finds the last growth before the present, if it was evident and excludes the present rate.
func (s *set) ended(last int, now *Judgement) {
	for i := last - 1; i >= 0; i-- {
		w := s.window(i)
		if w.to-w.since < minEnded || 10*(w.to-w.since) < s.slots || 5*w.to < s.slots || w.slope <= 0 { // it may be the start-up
			continue
		}
		if weigh(new(s.evidence(w))) < endedWeight || now.High > w.slope/2 || now.Low > 0 && now.Rate > w.slope/8 || 10*(s.cuts[last+1]-w.to) < s.slots {
			continue
		}
		boot := s.boots[len(s.boots)-1].index
		now.Until, now.Former, now.Since = &Moment{boot, s.time(w.to - 1)}, w.slope, Moment{boot, s.time(w.since)}
		return
	}
}

// answer sets the verdict by the probability.
func (j *Judgement) answer() {
	e := &j.evidence
	switch {
	case j.Probability >= likely:
		j.Verdict, j.Until, j.Former = Leak, nil, 0
	case j.Until != nil, j.Probability < hardly && j.Low <= 0 && e.Points >= minNone:
		j.Verdict, j.Bound = None, math.Max(j.High, 0)
	case j.Why != "":
	case e.Points < 8:
		j.Why = fmt.Sprintf("too short: %.0f points after the first; about 8 decide", e.Points)
	case j.Probability < hardly && e.Share >= 0.7:
		j.Why = "the growth is uneven; a longer log decides"
	case e.Share < 0.7 && e.Z > 3:
		j.Why = "it grew only since some time: a leak that began late, or a cache that fills; another boot decides"
	case e.Late < 0.42 && e.Z > 3:
		j.Why = "the growth slowed down: a cache that fills, or a leak; a longer log decides"
	case e.Below > 0.5:
		j.Why = "it was as high before; a longer log decides"
	default:
		j.Why = "the growth is hardly more than the noise; a longer log decides"
	}
}
