package oldrule

import (
	"math"
	"slices"
)

// moment is a dump of a trend: the index of its boot, and its index in the boot.
type moment struct{ boot, dump int }

// floorStep is the change of the floor between a dump and the next one of its boot.
type floorStep struct {
	moment             // the earlier dump
	time, rise float64 // hours or dumps; blocks or bytes
}

// Limits of a change of the rate.
const (
	// minSide is the least number of intervals on either side.
	minSide = 5
	// minChange is the least difference of the rates before and after, in standard errors. Of
	// constant rates with noise, the largest of 100 such differences is above 4 in less than
	// 1 % of cases.
	minChange = 4
	// maxRatio is the largest ratio of the rates after and before of one growth. A floor that noise
	// raises near the end of a boot has more.
	maxRatio = 20
)

// changes finds the changes of the rate at which the floor rises in a list of steps. now is the index of the
// step since which the rate is the last one, and since that since which the floor rises at any rate.
// Both are 0 if the rate does not change.
func changes(list []floorStep) (since, now int) {
	begins := []int{0} // of the parts with one rate
	for {
		at, found := change(list[begins[len(begins)-1]:])
		if !found {
			break
		}
		begins = append(begins, begins[len(begins)-1]+at)
	}
	first := len(begins) - 1
	now = begins[first]
	after := list[now:]
	for first > 0 {
		before := list[begins[first-1]:begins[first]]
		if !rising(before) || slope(before) < slope(after)/maxRatio {
			break
		}
		first, after = first-1, before
	}
	return begins[first], now
}

// before returns the part of the trend in which the floor rose before it stopped, with the step end.
func (t *leakTrend) before(end int) (part trend, since moment) {
	first := 0
	for end > 0 {
		since, now := changes(t.steps[:end])
		if now == 0 || rising(t.steps[now:end]) {
			first = since
			break
		}
		end = now
	}
	return t.between(t.steps[first].moment, t.steps[end].moment), t.steps[first].moment
}

// floorSteps appends the changes of the floor within each boot.
func (t *trend) floorSteps(list []floorStep) []floorStep {
	for n := range t.boots {
		b := &t.boots[n]
		for i := 1; i < len(b.floor); i++ {
			list = append(list, floorStep{moment{n, i - 1}, b.at[i] - b.at[i-1], b.floor[i] - b.floor[i-1]})
		}
	}
	return list
}

// sums adds up steps. squares has the squares of the rises, each per time.
func sums(list []floorStep) (time, rise, squares float64) {
	for _, s := range list {
		time, rise, squares = time+s.time, rise+s.rise, squares+s.rise*s.rise/s.time
	}
	return time, rise, squares
}

// change returns the index of the step with which the rate changes most, if it changes.
func change(list []floorStep) (at int, found bool) {
	time, rise, squares := sums(list)
	if rise == 0 {
		return 0, false // a floor never falls
	}
	var t, r float64
	best := float64(minChange)
	for i := range max(0, len(list)-minSide) {
		t, r = t+list[i].time, r+list[i].rise
		if i+1 < minSide {
			continue
		}
		t2, r2 := time-t, rise-r
		variance := math.Max(squares-r*r/t-r2*r2/t2, 1e-9*squares) / float64(len(list)-2)
		if z := math.Abs(r/t-r2/t2) / math.Sqrt(variance*(1/t+1/t2)); z > best {
			best, at, found = z, i+1, true
		}
	}
	return at, found
}

// slope returns the rate of a part.
func slope(list []floorStep) float64 {
	time, rise, _ := sums(list)
	return rise / time
}

// rising reports whether the floor rises in a part with one rate: by more than two standard
// errors.
func rising(list []floorStep) bool {
	time, rise, squares := sums(list)
	variance := math.Max(squares-rise*rise/time, 0) / float64(len(list)-1)
	return rise > 2*math.Sqrt(variance*time)
}

// from returns the part of the trend from a dump on.
func (t *trend) from(m moment) trend {
	boots := slices.Clone(t.boots[m.boot:])
	boots[0] = boots[0].slice(m.dump, len(boots[0].dumps))
	return newTrend(boots)
}

// between returns the part of the trend from a dump to a later one.
func (t *trend) between(m, end moment) trend {
	boots := slices.Clone(t.boots[m.boot : end.boot+1])
	last := &boots[len(boots)-1]
	*last = last.slice(0, end.dump+1)
	boots[0] = boots[0].slice(m.dump, len(boots[0].dumps))
	if end.dump == 0 {
		boots = boots[:len(boots)-1]
	}
	return newTrend(boots)
}

// slice returns a part of the dumps of a boot.
func (b trendBoot) slice(from, to int) trendBoot {
	b.dumps, b.at, b.kept = b.dumps[from:to], b.at[from:to], b.kept[from:to]
	b.value, b.floor = b.value[from:to], b.floor[from:to]
	return b
}

// contrast reports whether an earlier boot ran through at least half of the uptime that the
// path's growth took in the boot of m, and the path had blocks then, but its floor rose less
// than a fifth as fast. So the growth is no part of every boot, such as a cache that fills.
func (t *trend) contrast(m moment) bool {
	b := &t.boots[m.boot]
	last := len(b.at) - 1
	from, to := b.at[m.dump], b.at[last]
	rate := (b.floor[last] - b.floor[m.dump]) / (to - from)
	for n := range m.boot {
		e := &t.boots[n]
		i, _ := slices.BinarySearch(e.at, from)
		j, found := slices.BinarySearch(e.at, to)
		if !found {
			j--
		}
		if j > i && e.value[j] > 0 && e.at[j]-e.at[i] >= (to-from)/2 && (e.floor[j]-e.floor[i])/(e.at[j]-e.at[i]) < rate/5 {
			return true
		}
	}
	return false
}

// faster returns how much the rate at the end of the log may be above the mean rate since the step now,
// if the rate grows: if the floor rose more slowly from the step since to now, and rises faster in the second half
// of the time from now on than in the first, apart from noise of margin. A rate that changes with a boot
// does not go on to.
func (t *leakTrend) faster(since, now int, margin float64) float64 {
	if since == now || t.steps[now].dump == 0 {
		return 0
	}
	t1, r1, _ := sums(t.steps[since:now])
	t2, r2, _ := sums(t.steps[now:])
	before := (r2/t2 - r1/t1) * t2 / (t1 + t2) // by a straight line through both rates
	half := now
	var t3, r3 float64
	for ; half < len(t.steps)-1 && (half == now || t3+t.steps[half].time <= t2/2); half++ {
		t3, r3 = t3+t.steps[half].time, r3+t.steps[half].rise
	}
	within := (r2-r3)/(t2-t3) - r3/t3
	return math.Max(0, math.Min(before, within+margin))
}

// undecided returns for how many hours or dumps more a path must grow that grows steadily since a
// moment, until the time before it is so short a part of the boot that it is Probably a leak, if its
// floor did not rise before.
func (t *leakTrend) undecided(since moment) float64 {
	b := &t.boots[since.boot]
	last := len(b.at) - 1
	before, all := b.at[since.dump]-b.at[0], b.at[last]-b.at[0]
	return math.Max(before/thresholds[1].d-all, all/float64(last))
}
