// Package oldrule is the rule of growth that the queries of this module still rest on. heap/leak replaces it.
package oldrule

import (
	"fmt"
	"math"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// Verdict classifies a call path by the evidence that it leaks. The words and the thresholds
// are those of heap/docs/leaks.md.
type Verdict uint8

const (
	NoEvidence Verdict = iota // no growth, or growth like that of noise
	Grows                     // growth that 1 to 3 % of call paths without a leak also show
	Probably                  // a leak, or growth that will end
	Leaking                   // a leak
)

var verdicts = [...]string{"no evidence", "grows", "probably", "leak"}

// Sure reports whether v is Leaking or Probably.
func (v Verdict) Sure() bool { return v >= Probably }

// String returns "leak", "probably", "grows" or "no evidence".
func (v Verdict) String() string {
	if int(v) >= len(verdicts) {
		return fmt.Sprintf("Verdict(%d)", uint8(v))
	}
	return verdicts[v]
}

// MarshalText returns the text of String, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Evidence is the result of the rule of heap/docs/leaks.md for the values of one call path. The
// rule examines the floor: the fewest blocks that the path held at a dump or at any later dump
// of the boot. Blocks below the floor were allocated and not freed since.
type Evidence struct {
	Verdict Verdict `json:"verdict"`
	// Rate is the present growth of the floor in bytes per hour if [Leaks.Timed] is set, else
	// per dump. The true rate is between Rate-Margin and Rate+Margin in 9 of 10 cases.
	Rate   float64 `json:"rate"`
	Margin float64 `json:"margin"`
	// Rose is the number of intervals between dumps in which the floor rose, of Intervals.
	// Chance is the expected number if the order of the values were random. Of a path that
	// changes, but in less than half of the intervals of a boot, only these are counted for it.
	Rose      int     `json:"rose"`
	Intervals int     `json:"intervals"`
	Chance    float64 `json:"chance"`
	// Z is Rose less Chance, in standard deviations.
	Z float64 `json:"z"`
	// Bend is the largest distance of the floor from a straight line, as a fraction of its
	// rise, 0 to 1. The floors of several boots are added up, by the part of the time of each.
	Bend float64 `json:"d"`
	// Evenness is 2 × the smaller of the rises in the two halves of the
	// time, divided by the whole rise. 1 is even.
	Evenness float64 `json:"h2"`
	// Gain is a low estimate of the rise in bytes over all boots: the rise minus two standard
	// errors, which account for lost lines.
	Gain float64 `json:"gain"`
	// Score orders the paths of one verdict: it is Gain, reduced if the rise is uneven.
	Score float64 `json:"score"`
	// ByBytes is set if the number of blocks hardly changes, and their bytes were examined.
	ByBytes bool `json:"by_bytes"`
	// First and Last are the values in the first and the last examined dump of the boot in
	// which the floor rose most.
	First profile.Value `json:"first"`
	Last  profile.Value `json:"last"`
	Boots int           `json:"boots"` // number of examined boots
	// Since is the index in [Leaks.Dumps] of the dump since which the floor grows: the first
	// examined dump, unless the path grew later than that. Rate and Margin are those of the last
	// part of this time if the rate changed meanwhile.
	Since int `json:"since"`
	// Changed is set if the rate changed during the log: Rate is then not the mean of the log.
	Changed bool `json:"changed"`
	// More is more than 0 if the path grows steadily since some time, as a leak or a cache that fills
	// does: if it grows for so many hours or dumps more, it is Probably a leak. Verdict is Grows.
	More float64 `json:"more,omitempty"`
	// Ended is set if the path grew as a leak does, and stopped: Rate is not more than Margin. Verdict is
	// Grows.
	Ended *Ended `json:"ended,omitempty"`
}

// Ended is the growth of a path that stopped growing.
type Ended struct {
	Dump int `json:"dump"` // index in [Leaks.Dumps] of the dump since which it does not grow
	// Rate is the growth before, and Margin its margin, as in Evidence.
	Rate   float64 `json:"rate"`
	Margin float64 `json:"margin"`
}

// thresholds of the verdicts: all three must hold.
var thresholds = []struct {
	verdict  Verdict
	z, d, h2 float64
	dumps    int // least number of dumps of the longest boot
}{
	{Leaking, 4, 0.15, 0.75, 6},
	{Probably, 3.5, 0.24, 0.65, 0},
	{Grows, 2, 0.40, 0.50, 0},
}

// faster are the thresholds of a path whose rate grows from the beginning: its floor rises in
// most intervals of the first half already, and is nowhere above a straight line.
var faster = struct {
	z, d, h2, above, early float64
	dumps                  int
}{z: 4, d: 0.35, h2: 0.35, above: 0.05, early: 0.7, dumps: 12}

// endedPower reduces the score of a path that stopped growing, by the part of the log in which it grew: of
// simulated logs, those with a present leak have it first as often as without such paths.
const endedPower = 8

// examine applies the rule to the values of a call path, by index of the dump.
func (t *leakTrend) examine(points []profile.Value) Evidence {
	if t.dumps == 0 {
		return Evidence{Boots: len(t.boots)}
	}
	scale, byBytes := 1.0, t.still(points)
	if !byBytes {
		scale = t.blockSize(points)
	}
	t.scale = scale
	t.setFloors(points, byBytes)
	e, s := t.evaluate(points, scale, byBytes)
	if s.faster(&e) && t.longest >= faster.dumps {
		e.Verdict = Leaking
	}
	e.Since = t.boots[0].dumps[0]
	t.steps = t.floorSteps(t.steps[:0])
	if since, now := changes(t.steps); now > 0 {
		t.present(&e, since, now, points, scale, byBytes)
	}
	return e
}

// present sets what e says of the present, of a path that grows since a step, and at the same rate since
// the step now.
func (t *leakTrend) present(e *Evidence, since, now int, points []profile.Value, scale float64, byBytes bool) {
	dump := func(m moment) int { return t.boots[m.boot].dumps[m.dump] }
	begin := t.steps[now].moment
	part := t.from(begin)
	p, _ := part.evaluate(points, scale, byBytes)
	e.Changed, e.Since, e.Rate, e.Margin = true, dump(t.steps[since].moment), p.Rate, p.Margin
	if faster := t.faster(since, now, p.Margin/scale) * scale; faster > 0 {
		e.Rate, e.Margin = p.Rate+faster/2, p.Margin+faster/2
	}
	switch {
	case p.Rate <= p.Margin: // the growth has stopped
		e.Verdict = min(e.Verdict, Grows)
		grew, since := t.before(now)
		if g, _ := grew.evaluate(points, scale, byBytes); g.Verdict == Leaking {
			e.Verdict, e.Since, e.Ended = Grows, dump(since), &Ended{dump(begin), g.Rate, g.Margin}
			e.Score = math.Max(e.Score, g.Score*math.Pow(grew.span/t.span, endedPower))
		}
	case p.Verdict == Leaking && t.contrast(begin):
		e.Verdict, e.Score = max(e.Verdict, Probably), math.Max(e.Score, p.Score)
	case p.Verdict == Leaking && e.Verdict < Probably:
		e.Verdict, e.More = Grows, t.undecided(begin)
		e.Score = math.Max(e.Score, p.Score*straightness(1-part.span/t.span)) // the time before it is the distance from a straight line
	default:
		e.Verdict = max(e.Verdict, min(p.Verdict, Grows))
	}
}

// evaluate applies the rule to the floors of the trend.
func (t *trend) evaluate(points []profile.Value, scale float64, byBytes bool) (e Evidence, s rise) {
	e.Boots, e.ByBytes = len(t.boots), byBytes
	most := math.Inf(-1)
	for i := range t.boots {
		b := &t.boots[i]
		if gain := s.add(b, byBytes); gain >= most {
			most, e.First, e.Last = gain, points[b.dumps[0]], points[b.dumps[len(b.dumps)-1]]
		}
	}
	e.Rose, e.Intervals, e.Chance = s.rose, t.dumps-len(t.boots), s.chance
	e.Z = (float64(s.rose) - s.chance) / math.Sqrt(s.variance)
	if s.total <= 0 {
		return e, s
	}
	e.Bend = s.bend() / s.total
	e.Evenness = 2 * math.Min(s.early, s.late) / s.total
	e.Rate = s.total * scale / t.span
	e.Margin = student90(t.dumps-len(t.boots)) * math.Sqrt(s.squares) * scale / t.span
	e.Gain = math.Max(0, s.total-2*math.Sqrt(s.lost)) * scale
	if e.Gain == 0 {
		return e, s
	}
	even := math.Sqrt(math.Max(0, float64(s.rose)-t.chance)/(float64(t.dumps)-t.chance) + 0.02)
	quality := math.Max(0, e.Evenness) * even
	e.Score = e.Gain * straightness(e.Bend) * quality * quality
	for _, l := range thresholds {
		if e.Z >= l.z && e.Bend <= l.d && e.Evenness >= l.h2 && t.longest >= l.dumps {
			e.Verdict = l.verdict
			break
		}
	}
	return e, s
}

// straightness returns by what the score is reduced because the floor bends.
func straightness(bend float64) float64 { return math.Pow(math.Max(0, 1-bend), 6) }

// rise adds up the rise of the floor over the boots, in blocks or bytes.
type rise struct {
	total, early, late float64
	off                [bendSteps + 1]float64 // sum of the distances from a straight line, by the part of the time of a boot
	above, below       float64                // sums of the largest distances above and below it
	boots              int                    // whose floor rose
	lost               float64                // variance because of missing blocks
	squares            float64                // sum of the squared distances of each step from the mean
	rose               int
	chance, variance   float64 // of rose in random order
	// of the first halves of the boots
	roseEarly, intervalsEarly int
}

// faster reports whether a path with this evidence rises faster and faster.
func (s *rise) faster(e *Evidence) bool {
	l := &faster
	return e.Gain > 0 && e.Z >= l.z && e.Bend <= l.d && e.Evenness >= l.h2 && s.above <= l.above*s.total &&
		float64(s.roseEarly) >= l.early*float64(s.intervalsEarly)
}

// add adds the rise in a boot, and returns it.
func (s *rise) add(b *trendBoot, byBytes bool) (gain float64) {
	f, k := b.floor, len(b.floor)
	gain = f[k-1] - f[0]
	chance, variance := randomRises(1 + b.changes())
	s.chance, s.variance = s.chance+chance, s.variance+variance
	span := b.at[k-1] - b.at[0]
	half := k - 2
	var above, below float64
	for i := range f {
		u := (b.at[i] - b.at[0]) / span
		if u >= 0.5 && i >= 1 && i < half {
			half = i
		}
		if gain > 0 {
			off := f[i] - f[0] - gain*u
			above, below = math.Max(above, off), math.Max(below, -off)
		}
		if i == 0 {
			continue
		}
		if u <= 0.5 {
			s.intervalsEarly++
		}
		d := f[i] - f[i-1]
		if d > b.step {
			s.rose++
			if u <= 0.5 {
				s.roseEarly++
			}
		}
		d -= gain / span * (b.at[i] - b.at[i-1])
		s.squares += float64(k) / float64(k-1) * d * d
	}
	if gain > 0 {
		s.boots++
		s.addBend(b, gain)
	}
	s.total += gain
	s.early += f[half] - f[0]
	s.late += f[k-1] - f[half]
	s.above, s.below = s.above+above, s.below+below
	if !byBytes {
		for _, i := range []int{0, k - 1} {
			s.lost += b.value[i] * (1 - b.kept[i]) / b.kept[i]
		}
	}
	return gain
}

// randomRises returns the expected number of rises of the floor of n values in random order, and its
// variance: the j-th value from the end is a new minimum with probability 1/j.
func randomRises(n int) (mean, variance float64) {
	for j := 2.0; j <= float64(n); j++ {
		mean, variance = mean+1/j, variance+1/j-1/(j*j)
	}
	return mean, variance
}

// changes returns the number of intervals in which the value changes, or that of all intervals if it
// changes in half of them or more, or not at all. That a value which seldom changes rises each time is
// no accident; equal values in between say nothing against it.
func (b *trendBoot) changes() (n int) {
	intervals := len(b.value) - 1
	for i := range intervals {
		if math.Abs(b.value[i+1]-b.value[i]) > b.step {
			n++
		}
	}
	if n == 0 || 2*n >= intervals {
		return intervals
	}
	return n
}

// bendSteps is the number of parts of the time of a boot at whose ends its floor is compared with a
// straight line.
const bendSteps = 100

// addBend adds the distances of the floor of a boot, which rises by gain, from a straight line.
func (s *rise) addBend(b *trendBoot, gain float64) {
	f, j, last := b.floor, 1, len(b.floor)-1
	for n := range s.off {
		u := float64(n) / bendSteps
		at := b.at[0] + u*(b.at[last]-b.at[0])
		for j < last && b.at[j] < at {
			j++
		}
		s.off[n] += f[j-1] + (f[j]-f[j-1])*(at-b.at[j-1])/(b.at[j]-b.at[j-1]) - f[0] - gain*u
	}
}

// bend returns the largest distance of the sum of the floors from a straight line.
func (s *rise) bend() (most float64) {
	if s.boots == 1 {
		return math.Max(s.above, s.below)
	}
	for _, x := range s.off {
		most = math.Max(most, math.Abs(x))
	}
	return most
}

// student90 returns the factor of a 90 % interval with df degrees of freedom, an
// approximation of Student's t that is exact to 3 % for df from 2 on.
func student90(df int) float64 {
	n := float64(max(df, 1))
	return 1.645 + 1.6/n + 1.9/(n*n)
}
