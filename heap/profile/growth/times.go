package growth

import (
	"fmt"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// headerClock is that of the key t of ~h#begin: a device may count 32 bits of ms or µs.
var headerClock = &profile.Clock{Wraps: []time.Duration{1 << 32 * time.Microsecond, 1 << 32 * time.Millisecond}}

const (
	timeAhead = 3 // readings that show whether one does not fit its neighbours
	// maxFirstGap is the largest time from the first dump to the second one, in the largest of the
	// other intervals.
	maxFirstGap = 4
	minGaps     = 5 // least number of intervals to judge one of them
)

// reading is a time of a clock at a dump.
type reading struct {
	dump int // index
	at   time.Duration
}

// fitTimes finds the times of the dumps: those of the headers, if at least half of the dumps of a
// boot have one, else those of the clock in the lines that most dumps have, rather an uptime than a
// date. Times that do not fit
// their neighbours are dropped, and interpolated. Where an uptime begins again, a boot begins.
func fitTimes(list []LeakDump, series bool) {
	groups := map[boot][]int{}
	var order []boot
	for i := range list {
		d := &list[i]
		d.Time, d.Timed = d.Dump.Time, d.Dump.Timed && !d.Used
		if !d.Used {
			continue
		}
		if groups[d.boot] == nil {
			order = append(order, d.boot)
		}
		groups[d.boot] = append(groups[d.boot], i)
	}
	restarts := map[int]bool{}
	for _, b := range order {
		for _, at := range fitBoot(list, groups[b], series) {
			restarts[at] = true
		}
	}
	extra := 0
	for i := range list {
		d := &list[i]
		if i > 0 && d.boot.file != list[i-1].boot.file {
			extra = 0
		}
		if restarts[i] {
			extra++
		}
		d.Boot = d.Dump.Boot + extra
		if !series {
			d.boot.part = extra
		}
	}
}

// fitBoot finds the times of the dumps of a boot, and where an uptime begins again.
func fitBoot(list []LeakDump, dumps []int, series bool) (restarts []int) {
	all := readingsOf(list, dumps, series)
	var fitted []reading
	var best *profile.Clock
	for _, c := range all {
		if 2*len(c.readings) < len(dumps) {
			continue
		}
		readings, again := fit(c.readings, c.Clock)
		if len(again) > len(restarts) {
			restarts = again
		}
		switch {
		case best == headerClock:
		case best == nil, best.Wall == c.Wall && len(readings) > len(fitted),
			best.Wall && !c.Wall && 10*len(readings) >= 9*len(fitted), // the device knows better
			!best.Wall && c.Wall && 9*len(readings) > 10*len(fitted):
			best, fitted = c.Clock, readings
		}
	}
	if best == nil {
		return nil
	}
	start := time.Duration(0)
	if best.Wall && len(fitted) > 0 {
		start = fitted[0].at
	}
	for _, r := range fitted {
		d := &list[r.dump]
		d.Time, d.Timed, d.wall = r.at-start, true, best.Wall
	}
	interpolate(list, dumps, restarts)
	if best != headerClock {
		return restarts
	}
	for _, r := range all[0].readings {
		if !slices.ContainsFunc(fitted, func(f reading) bool { return f.dump == r.dump }) {
			list[r.dump].Note = fmt.Sprintf("its time, %v, does not fit its neighbours", list[r.dump].Dump.Time)
		}
	}
	return restarts
}

// readings are those of a clock.
type readings struct {
	*profile.Clock
	readings []reading
}

// readingsOf returns the readings of all clocks at dumps, that of the headers first.
func readingsOf(list []LeakDump, dumps []int, series bool) []readings {
	all := []readings{{Clock: headerClock}}
	for _, i := range dumps {
		d := list[i].Dump
		if d.Timed && !(series && d.Line > 0) {
			all[0].readings = append(all[0].readings, reading{i, d.Time})
		}
		if series {
			continue // each log has its own clock
		}
		for _, s := range d.Stamps {
			at := slices.IndexFunc(all, func(r readings) bool { return r.Clock == s.Clock })
			if at < 0 {
				at = len(all)
				all = append(all, readings{Clock: s.Clock})
			}
			all[at].readings = append(all[at].readings, reading{i, s.At})
		}
	}
	return all
}

// fit returns the readings that fit their neighbours, with wraps added up, and the dumps with which
// an uptime begins again. Only a reading that at least two of the next three contradict is dropped:
// so a wrap or a reboot is none.
func fit(readings []reading, c *profile.Clock) (fitted []reading, restarts []int) {
	var offset, before time.Duration // before is the last reading that fits
	begin := 0                       // of the segment since the last restart, in fitted
	for i, r := range readings {
		next := readings[i+1 : min(len(readings), i+1+timeAhead)]
		contradict := func(does func(at time.Duration) bool) bool {
			n := 0
			for _, o := range next {
				if does(o.at) {
					n++
				}
			}
			return n > 0 && n >= min(2, len(next))
		}
		switch first := len(fitted) == begin; {
		case first && len(next) >= 2 && contradict(func(at time.Duration) bool { return at < r.at }),
			!first && r.at == before,
			!first && r.at > before && contradict(func(at time.Duration) bool { return before < at && at < r.at }),
			!first && r.at < before && contradict(func(at time.Duration) bool { return at > before }):
			continue
		case !first && r.at < before:
			gap, ok := wrapped(fitted[begin:], before, r.at, c)
			switch {
			case ok:
				offset += before - r.at + gap
			case len(next) == 0:
				continue
			default: // a reboot
				restarts, begin, offset = append(restarts, r.dump), len(fitted), 0
			}
		case !first && c.Wall && r.at-before > 300*24*time.Hour: // the clock was set
			offset -= r.at - before - typical(fitted[begin:])
		}
		before = r.at
		fitted = append(fitted, reading{r.dump, r.at + offset})
	}
	return trimFirst(fitted, restarts), restarts
}

// wrapped returns the time from a reading to the next one, which is less, if the clock has wrapped
// around, or if somebody has set a clock on the wall.
func wrapped(fitted []reading, before, at time.Duration, c *profile.Clock) (gap time.Duration, ok bool) {
	longest := time.Duration(0)
	for i := 1; i < len(fitted); i++ {
		longest = max(longest, fitted[i].at-fitted[i-1].at)
	}
	for _, wrap := range c.Wraps {
		if gap = at + wrap - before; gap > 0 && before < wrap && (gap <= 3*longest || c.Wall && longest == 0) {
			return gap, true
		}
	}
	return typical(fitted), c.Wall
}

// typical returns the median of the intervals, 1 s if there is none.
func typical(fitted []reading) time.Duration {
	gaps := intervals(fitted)
	if len(gaps) == 0 {
		return time.Second
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

func intervals(fitted []reading) (gaps []time.Duration) {
	for i := 1; i < len(fitted); i++ {
		gaps = append(gaps, fitted[i].at-fitted[i-1].at)
	}
	return gaps
}

// trimFirst drops the first reading if it is much too early: no reading before it contradicts it.
func trimFirst(fitted []reading, restarts []int) []reading {
	if len(restarts) > 0 || len(fitted) < minGaps+2 {
		return fitted
	}
	if gaps := intervals(fitted); gaps[0] > maxFirstGap*slices.Max(gaps[1:]) {
		return fitted[1:]
	}
	return fitted
}

// interpolate gives times to the dumps of a boot that have none: between two dumps with a time by
// their number, and before the first or after the last one by the intervals, if those are regular.
func interpolate(list []LeakDump, dumps, restarts []int) {
	var part []int
	flush := func() {
		interpolatePart(list, part)
		part = part[:0]
	}
	for _, i := range dumps {
		if slices.Contains(restarts, i) {
			flush()
		}
		part = append(part, i)
	}
	flush()
}

func interpolatePart(list []LeakDump, dumps []int) {
	var known []reading // dump is an index of dumps
	for k, i := range dumps {
		if list[i].Timed {
			known = append(known, reading{k, list[i].Time})
		}
	}
	for n := 1; n < len(known); n++ {
		a, b := known[n-1], known[n]
		for k := a.dump + 1; k < b.dump; k++ {
			d := &list[dumps[k]]
			d.Time, d.Timed = a.at+time.Duration(float64(b.at-a.at)*float64(k-a.dump)/float64(b.dump-a.dump)), true
		}
	}
	if gaps := intervals(known); len(gaps) >= minGaps && slices.Max(gaps) <= 2*typical(known) {
		first, last, gap := known[0], known[len(known)-1], typical(known)
		if at := first.at - time.Duration(first.dump)*gap; first.dump > 0 && at >= 0 {
			for k := range first.dump {
				d := &list[dumps[k]]
				d.Time, d.Timed = at+time.Duration(k)*gap, true
			}
		}
		for k := last.dump + 1; k < len(dumps); k++ {
			d := &list[dumps[k]]
			d.Time, d.Timed = last.at+time.Duration(k-last.dump)*gap, true
		}
	}
}
