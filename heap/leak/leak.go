// Package leak judges growth: whether a series of values, such as the live bytes of a call path or
// the memory in use of a heap, leaks now, how fast, and since when. The answer is one of three, each
// with its probability: a leak with a rate, none above a bound, or unknown and why.
// heap/docs/leaks.md is its specification, vectors/ has series with their answers.
package leak

import (
	"encoding/json"
	"fmt"
	"math"
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
	// Full is the Value at which the memory is full, 0 if it is not known. What a boot did while it was full
	// is not judged.
	Full float64 `json:"full,omitempty"`
}

// Boot has the values of a boot. Judge leaves out a point whose time is not after that of the point
// before, and one that has a number that is not finite.
type Boot struct {
	At    []float64 `json:"at"`    // time since the boot in units of Series.Per
	Value []float64 `json:"value"` // bytes in use; as many as At
	// Kept is the part of the blocks of each value that the log has, more than 0, at most 1. A value
	// is divided by it. What is missing at its end is 1, so nil is 1 for all.
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
	// Full is since when the memory of the last boot is full, nil if it is not.
	Full *Moment `json:"full,omitempty"`
	// FullBoots is the number of boots whose memory was full at their end.
	FullBoots int `json:"full_boots,omitempty"`
	// Bound is the largest rate that the series allows, if Verdict is None. A leak that is slower is
	// not excluded.
	Bound float64 `json:"bound,omitempty"`
	// Why is why the verdict is unknown, and what would decide.
	Why string `json:"why,omitempty"`
	// Weight is the natural logarithm of how much more likely the series is with a leak than without one.
	// For the weights of several devices, see JudgeMember.
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

// MarshalJSON writes Low and High as null where nothing bounds the rate.
func (j Judgement) MarshalJSON() ([]byte, error) {
	type plain Judgement
	return json.Marshal(struct {
		plain
		Low  *float64 `json:"low"`
		High *float64 `json:"high"`
	}{plain(j), finite(j.Low), finite(j.High)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (j *Judgement) UnmarshalJSON(text []byte) error {
	type plain Judgement
	p := plain{Low: math.Inf(-1), High: math.Inf(1)}
	err := json.Unmarshal(text, &p)
	*j = Judgement(p)
	return err
}

// finite returns a number for JSON, nil if it is infinite.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// likely is the least probability of a leak.
const likely = 0.5

// prior is the logarithm of the odds of a leak before a series is seen, of one of the paths that grow in a log and
// of a heap that somebody asks about.
var prior = [...]float64{Path: 0, Heap: -1}

// usualRivals is the number of call paths of a log that grow, where it is not known or less.
const usualRivals = 10

// Of call paths, which are more unlike than heaps, the odds grow faster from odds on.
const (
	pathFrom   = -1
	pathFaster = 0.4
)

// Probability returns the probability of a leak for a weight, or for the sum of the weights of
// several devices.
func (k Kind) Probability(weight float64) float64 { return k.among(usualRivals, weight) }

// among returns the probability of a leak of one of a number of series that grow: a log usually has one leak, if any.
func (k Kind) among(rivals int, weight float64) float64 {
	x := weight + prior[min(int(k), len(prior)-1)]
	if k == Path {
		x -= math.Log(float64(max(usualRivals, rivals)))
		x += pathFaster * math.Max(0, x-pathFrom)
	}
	return logistic(x)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
