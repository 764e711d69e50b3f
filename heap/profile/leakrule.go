package profile

import (
	"fmt"
	"math"
	"time"
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
	// Rate is the growth of the floor in bytes per hour if [Leaks.Timed] is set, else per
	// dump. The true rate is between Rate-Margin and Rate+Margin in 9 of 10 cases.
	Rate   float64 `json:"rate"`
	Margin float64 `json:"margin"`
	// Rose is the number of intervals between dumps in which the floor rose, of Intervals.
	// Chance is the expected number if the order of the dumps were random.
	Rose      int     `json:"rose"`
	Intervals int     `json:"intervals"`
	Chance    float64 `json:"chance"`
	// Z is Rose less Chance, in standard deviations.
	Z float64 `json:"z"`
	// Bend is the largest distance of the floor from a straight line, as a fraction of its
	// rise, 0 to 1.
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
	First Value `json:"first"`
	Last  Value `json:"last"`
	Boots int   `json:"boots"` // number of examined boots
}

// minBootDumps is the least number of dumps of a boot that is examined.
const minBootDumps = 3

// thresholds of the verdicts: all three must hold.
var thresholds = []struct {
	verdict  Verdict
	z, d, h2 float64
	dumps    int // least number of dumps of the longest boot
}{
	{Leaking, 4, 0.15, 0.75, 6},
	{Probably, 3.5, 0.25, 0.65, 0},
	{Grows, 2, 0.40, 0.50, 0},
}

// trendBoot has the examined dumps of a boot.
type trendBoot struct {
	dumps []int     // indexes in the profile
	at    []float64 // hours, or number of the dump, increasing
	kept  []float64 // fraction of the blocks that the log has, more than 0
}

// leakTrend examines call paths, one after the other.
type leakTrend struct {
	boots   []trendBoot
	dumps   int // examined
	longest int // dumps of the longest boot
	timed   bool

	chance, variance float64 // of the number of intervals that rise in random order
	span             float64 // sum over the boots, hours or dumps
	value, floor     []float64
}

// newLeakTrend returns the trend over the dumps that are used, of which each boot has at
// least minBootDumps.
func newLeakTrend(dumps []LeakDump) *leakTrend {
	t := &leakTrend{timed: true}
	byBoot := map[boot]int{}
	count := map[boot]int{} // of all dumps
	for i, d := range dumps {
		count[d.boot]++
		if !d.Used {
			continue
		}
		n, known := byBoot[d.boot]
		if !known {
			n = len(t.boots)
			byBoot[d.boot] = n
			t.boots = append(t.boots, trendBoot{})
		}
		b := &t.boots[n]
		if len(b.dumps) > 0 {
			before := dumps[b.dumps[len(b.dumps)-1]].Time
			t.timed = t.timed && d.Time > before
		}
		t.timed = t.timed && d.timed
		b.dumps = append(b.dumps, i)
		b.at = append(b.at, float64(count[d.boot]))
		b.kept = append(b.kept, 1-d.Missing)
	}
	for i := range t.boots {
		b := &t.boots[i]
		for j, d := range b.dumps {
			if t.timed {
				b.at[j] = float64(dumps[d].Time) / float64(time.Hour)
			}
		}
		k := len(b.dumps)
		t.dumps += k
		t.longest = max(t.longest, k)
		t.span += b.at[k-1] - b.at[0]
		for j := 2.0; j <= float64(k); j++ { // the floor of the j-th dump from the end is a new minimum with probability 1/j
			t.chance += 1 / j
			t.variance += 1/j - 1/(j*j)
		}
	}
	t.value, t.floor = make([]float64, t.longest), make([]float64, t.longest)
	return t
}

// enough reports whether a path that rises steadily in every interval is Leaking.
func (t *leakTrend) enough() bool {
	rose := float64(t.dumps - len(t.boots))
	return t.dumps > 0 && (rose-t.chance)/math.Sqrt(t.variance) >= thresholds[0].z && t.longest >= thresholds[0].dumps
}

// examine applies the rule to the values of a call path, by index of the dump.
func (t *leakTrend) examine(points []Value) (e Evidence) {
	e.Boots = len(t.boots)
	if t.dumps == 0 {
		return e
	}
	e.Intervals, e.Chance = t.dumps-len(t.boots), t.chance
	size := 1.0 // mean bytes per block
	if e.ByBytes = t.still(points); !e.ByBytes {
		size = t.meanSize(points)
	}
	var s rise
	most := math.Inf(-1)
	for i := range t.boots {
		b := &t.boots[i]
		if gain := s.add(t, b, points, e.ByBytes); gain >= most {
			most, e.First, e.Last = gain, points[b.dumps[0]], points[b.dumps[len(b.dumps)-1]]
		}
	}
	e.Rose = s.rose
	e.Z = (float64(s.rose) - t.chance) / math.Sqrt(t.variance)
	if s.total <= 0 {
		return e
	}
	e.Bend = s.bend / s.total
	e.Evenness = 2 * math.Min(s.early, s.late) / s.total
	e.Rate = s.total * size / t.span
	e.Margin = student90(t.dumps-len(t.boots)) * math.Sqrt(s.squares) * size / t.span
	e.Gain = math.Max(0, s.total-2*math.Sqrt(s.lost)) * size
	if e.Gain == 0 {
		return e
	}
	even := math.Sqrt(math.Max(0, float64(s.rose)-t.chance)/(float64(t.dumps)-t.chance) + 0.02)
	quality := math.Pow(math.Max(0, 1-e.Bend), 3) * math.Max(0, e.Evenness) * even
	e.Score = e.Gain * quality * quality
	for _, l := range thresholds {
		if e.Z >= l.z && e.Bend <= l.d && e.Evenness >= l.h2 && t.longest >= l.dumps {
			e.Verdict = l.verdict
			break
		}
	}
	return e
}

// still reports whether the number of blocks hardly changes, as with one growing buffer.
func (t *leakTrend) still(points []Value) bool {
	changes := 0.0
	for i := range t.boots {
		b := &t.boots[i]
		for j := 1; j < len(b.dumps); j++ {
			changes += math.Abs(float64(points[b.dumps[j]].Count)/b.kept[j] - float64(points[b.dumps[j-1]].Count)/b.kept[j-1])
		}
	}
	return changes <= 0.2*float64(t.dumps)
}

// meanSize returns the mean size of a block in bytes.
func (t *leakTrend) meanSize(points []Value) float64 {
	var bytes, count float64
	for i := range t.boots {
		for _, d := range t.boots[i].dumps {
			bytes, count = bytes+float64(points[d].Bytes), count+float64(points[d].Count)
		}
	}
	if count == 0 {
		return 0
	}
	return bytes / count
}

// rise adds up the rise of the floor over the boots, in blocks or bytes.
type rise struct {
	total, early, late float64
	bend               float64 // sum of the largest distances from a straight line
	lost               float64 // variance because of missing blocks
	squares            float64 // sum of the squared distances of each step from the mean
	rose               int
}

// add adds the rise in a boot, and returns it.
func (s *rise) add(t *leakTrend, b *trendBoot, points []Value, byBytes bool) (gain float64) {
	k := len(b.dumps)
	x, f := t.value[:k], t.floor[:k]
	step := 0.5 // least rise: half a block; for bytes, more than alignment adds
	for i, d := range b.dumps {
		if byBytes {
			x[i], step = float64(points[d].Bytes)/b.kept[i], 8
		} else {
			x[i] = float64(points[d].Count) / b.kept[i]
		}
	}
	f[k-1] = x[k-1]
	for i := k - 2; i >= 0; i-- {
		f[i] = math.Min(x[i], f[i+1])
	}
	gain = f[k-1] - f[0]
	span := b.at[k-1] - b.at[0]
	half, bend := k-2, 0.0
	for i := range f {
		u := (b.at[i] - b.at[0]) / span
		if u >= 0.5 && i >= 1 && i < half {
			half = i
		}
		if gain > 0 {
			bend = math.Max(bend, math.Abs((f[i]-f[0])/gain-u))
		}
		if i == 0 {
			continue
		}
		d := f[i] - f[i-1]
		if d > step {
			s.rose++
		}
		d -= gain / span * (b.at[i] - b.at[i-1])
		s.squares += float64(k) / float64(k-1) * d * d
	}
	s.total += gain
	s.early += f[half] - f[0]
	s.late += f[k-1] - f[half]
	s.bend += math.Max(0, gain) * bend
	if !byBytes {
		for _, i := range []int{0, k - 1} {
			s.lost += x[i] * (1 - b.kept[i]) / b.kept[i]
		}
	}
	return gain
}

// student90 returns the factor of a 90 % interval with df degrees of freedom, an
// approximation of Student's t that is exact to 3 % for df from 2 on.
func student90(df int) float64 {
	n := float64(max(df, 1))
	return 1.645 + 1.6/n + 1.9/(n*n)
}
