package oldrule

import (
	"math"
	"sort"
)

// Limits of a rhythm of a day.
const (
	day        = 24.0 // hours
	rhythmDays = 2.5  // least span of a boot in which it is looked for
	rhythmGap  = 3.0  // hours between dumps that are more tell nothing of the time between
	rhythmWide = 3    // days before and after a dump with which it is compared
	minRhythm  = 0.7  // least correlation of the values with those of other days
	onlyRhythm = 0.4  // and by how much it exceeds that with the values half a day later: a slow change has both
)

// leaveOutRhythm subtracts from the values of a boot of several days what comes again at the same time
// of each day. Without it, the floor of a load that follows the day is a staircase of a step per day, in
// which a leak shows after a week.
func (b *trendBoot) leaveOutRhythm() {
	last := len(b.at) - 1
	if b.at[last]-b.at[0] < rhythmDays*day {
		return
	}
	var daily []float64 // growth in a day, from each dump on
	for i, at := range b.at {
		if v, ok := b.interpolate(at + day); ok {
			daily = append(daily, v-b.value[i])
		}
	}
	if len(daily) == 0 {
		return
	}
	rate := median(daily) / day
	level := make([]float64, last+1)  // without the growth
	others := make([]float64, last+1) // mean of level at the same time of other days
	later := make([]float64, last+1)  // the same, half a day later
	all := make([]float64, last+1)    // mean of level at the same time of all days
	for i, at := range b.at {
		level[i] = b.value[i] - rate*at
		var n, half float64
		for k := -rhythmWide; k <= rhythmWide; k++ {
			t := at + float64(k)*day
			if v, ok := b.interpolate(t); ok && k != 0 {
				others[i], n = others[i]+v-rate*t, n+1
			}
			t += day / 2
			if v, ok := b.interpolate(t); ok {
				later[i], half = later[i]+v-rate*t, half+1
			}
		}
		if n == 0 || half == 0 {
			return
		}
		all[i] = (others[i] + level[i]) / (n + 1)
		others[i], later[i] = others[i]/n, later[i]/half
	}
	if c := correlation(level, others); c < minRhythm || c-correlation(level, later) < onlyRhythm {
		return
	}
	mean := 0.0
	for _, v := range all {
		mean += v / float64(len(all))
	}
	for i := range b.value {
		b.value[i] -= all[i] - mean
	}
}

// interpolate returns the value at a time, if there are dumps shortly before and after it.
func (b *trendBoot) interpolate(at float64) (v float64, ok bool) {
	i := sort.SearchFloat64s(b.at, at)
	switch {
	case i == len(b.at):
		return 0, false
	case b.at[i] == at:
		return b.value[i], true
	case i == 0 || b.at[i]-b.at[i-1] > rhythmGap:
		return 0, false
	}
	return b.value[i-1] + (b.value[i]-b.value[i-1])*(at-b.at[i-1])/(b.at[i]-b.at[i-1]), true
}

// correlation returns the correlation of two lists, 0 if one is constant.
func correlation(a, b []float64) float64 {
	var ma, mb, aa, ab, bb float64
	for i := range a {
		ma, mb = ma+a[i]/float64(len(a)), mb+b[i]/float64(len(a))
	}
	for i := range a {
		x, y := a[i]-ma, b[i]-mb
		aa, ab, bb = aa+x*x, ab+x*y, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}
