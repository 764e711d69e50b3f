package growth

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"

	"github.com/lwsbt/lwsbt/heap/leak"
)

// Options are the options of [Judge].
type Options struct {
	// Heap is the size of the device's heap in bytes. If it is 0, the free memory is what the
	// allocator reported last.
	Heap uint64
	// Heaps has what the allocator reported. If it is nil, the reports are those of the used dumps.
	Heaps []HeapSeries
}

// Leaks is the result of [Judge]. (heap/docs/leaks.md)
type Leaks struct {
	// Rows are what leaks, the most likely first, then what may leak or grew before. A row is a call
	// path, or several that leak by one bug: see Leak.Parts.
	Rows []*Leak
	// Rate is the sum of the rows that leak, in bytes per Per, of the allocator if that is known. The true
	// rate is between Low and High in 9 of 10 cases.
	Rate, Low, High float64
	Per             Unit // PerHour, or PerDump if the log has no times
	// Bound is the largest rate that is not excluded of a call path that varies and is not in Rows.
	Bound float64
	// Dumps has each dump of the profile, and whether it was used.
	Dumps []LeakDump
	Used  int // number of dumps used
	Boots int // boots that have at least three used dumps
	// Span is the sum over the boots of the time between the first and the last used dump, if Per is
	// PerHour.
	Span time.Duration
	// Intervals is set if each dump has only the blocks of its own interval, as with a trace that is
	// started, stopped and dumped for each request: three or more dumps of a boot, and no block at an
	// address of an earlier one. The values of the dumps are then added up.
	Intervals bool
	// Missing is the fraction of the blocks of the used dumps that the log lacks, 0 to 1.
	Missing float64
	// Varied is the number of call paths whose values differ between used dumps.
	Varied int
	// Heaps has the trend of each heap of which the allocator reported.
	Heaps []HeapTrend
	// Exhaustion is the time until a heap is full: the first, of several. It is nil if nothing leaks, or
	// if the free memory is not known.
	Exhaustion *Exhaustion

	profile  *profile.Profile
	timeline *timeline
	free     *freeHeap // nil if the free memory is not known
	perByte  float64   // bytes of the allocator for a byte of a call path
}

// Leaking returns the rows that leak.
func (l *Leaks) Leaking() []*Leak {
	return l.with(func(r *Leak) bool { return r.Verdict == leak.Leak })
}

// Unknown returns the rows of which it is not known whether they leak, and Ended those that grew before.
func (l *Leaks) Unknown() []*Leak {
	return l.with(func(r *Leak) bool { return r.Verdict == leak.Unknown })
}

// Ended returns the rows whose growth ended.
func (l *Leaks) Ended() []*Leak {
	return l.with(func(r *Leak) bool { return r.Verdict == leak.None })
}

func (l *Leaks) with(is func(*Leak) bool) (list []*Leak) {
	for _, r := range l.Rows {
		if is(r) {
			list = append(list, r)
		}
	}
	return list
}

// Leak is a call path that grows or grew, or several by one bug.
type Leak struct {
	leak.Judgement
	// Since is the dump since which it grows, and Until that until which it grew: indexes in Leaks.Dumps.
	// Since is -1 if that is the begin of the log, and Until if the growth has not ended.
	SinceDump, UntilDump int
	// First and Last are the values in the first and the last used dump of the boot in which it grew most.
	First, Last profile.Value
	// Versions has what each firmware does, in the order of the log; nil if there is only one.
	Versions []Version
	// Parts are the call paths that leak by one bug: they grow together from one caller, or are the
	// callers of one function. nil for a call path.
	Parts []*Leak

	leaks *Leaks
	rows  []profile.Row
	stack []profile.Site // of Parts: what they have in common

	function bool // Parts are the callers of a function
}

// Version is what a firmware version does.
type Version struct {
	Name string `json:"name"`
	leak.Judgement
}

// Stack returns the call sites, innermost first: of several call paths, those that they have in common.
func (l *Leak) Stack() []profile.Site {
	if l.stack != nil || len(l.rows) == 0 {
		return l.stack
	}
	return l.rows[0].Stack()
}

// Row returns the row of the profile; ok is false if the leak has several.
func (l *Leak) Row() (row profile.Row, ok bool) {
	if l.stack != nil || len(l.rows) == 0 {
		return profile.Row{}, false
	}
	return l.rows[0], true
}

// Points returns the value in each dump of the profile, used or not, added up if [Leaks].Intervals.
func (l *Leak) Points() []profile.Value {
	if len(l.rows) == 0 {
		return nil
	}
	return l.leaks.sum(l.rows, nil)
}

// Series returns the values that were judged.
func (l *Leak) Series() leak.Series {
	if len(l.rows) == 0 {
		return leak.Series{}
	}
	return l.leaks.series(l.leaks.timeline, l.rows)
}

// LeakDump is a dump, and whether [Judge] used it.
type LeakDump struct {
	*profile.Dump
	Used    bool
	Reason  string  // why the dump was not used, "" if it was
	Missing float64 // fraction of its blocks that the log lacks, from 0 to 1
	// Time is the time since the boot, if Timed: that of the dump's header or of the lines of the
	// log, or between those of its neighbours if it has none that fits. Boot is the boot of the
	// dump, which begins also where the uptime begins again.
	Time  time.Duration
	Timed bool
	Boot  int
	Note  string // what of the dump was not used, "" if nothing

	boot boot
	wall bool // Time is since the first dump of the boot
}

// FromStart reports whether Time is since the start of the boot, and not since its first dump.
func (d *LeakDump) FromStart() bool { return !d.wall }

// Largest fractions of missing blocks with which a dump is used: the loss is a noise of the values that are judged.
const (
	maxMissing      = 0.3
	maxMissingTotal = 0.2 // of a dump whose values are shown
	maxMissingPaths = 0.5 // of lines with call paths: the paths that the dump has are whole
)

// listed is the least probability of a leak with which a call path is a row although its verdict is unknown.
const listed = 0.005

// Judge judges what grows by heap/leak. It uses dumps that lost up to 30 % of their blocks. It leaves out
// dumps without an end, and dumps that programs write when they exit. If there are three or more dumps, and
// each is from a different log, Judge takes them as dumps of one boot, in the order of p.Dumps.
func Judge(p *profile.Profile, o Options) *Leaks {
	l := &Leaks{profile: p, Dumps: useDumps(p.Dumps()), perByte: 1}
	leaveOutDevices(l.Dumps)
	l.timeline = newTimeline(l.Dumps)
	var want, have float64
	for _, d := range l.Dumps {
		if n := float64(d.Total.Count); d.Used {
			l.Used++
			have, want = have+n, want+n/(1-d.Missing)
		}
	}
	if want > 0 {
		l.Missing = 1 - have/want
	}
	l.Boots, l.Intervals = len(l.timeline.boots), ofIntervals(l.Dumps)
	if l.Used > 0 {
		l.addLeaks()
	}
	l.Per, l.Span = l.timeline.per, l.timeline.span()
	series := o.Heaps
	if series == nil {
		series = heapSeries(l.Dumps)
	}
	for i := range series {
		l.Heaps = append(l.Heaps, newHeapTrend(&series[i], l.Dumps, o.Heap))
	}
	slices.SortStableFunc(l.Heaps, func(a, b HeapTrend) int { return cmp.Compare(urgency(&b), urgency(&a)) })
	l.exhaust(o.Heap)
	return l
}

// urgency orders heaps: those that leak first, and of these the one that is exhausted first.
func urgency(t *HeapTrend) float64 {
	switch {
	case t.Verdict != leak.Leak:
		return 0
	case t.Exhaustion == nil:
		return 1
	}
	return 1 + 1/max(t.Exhaustion.In, 1e-3)
}

// leastChange is what may be lost in a log although no call path grows, in bytes.
const leastChange = 16

// minChanges is the least number of changes of a call path that are judged: fewer are no evidence.
const minChanges = 3

// addLeaks judges all call paths.
func (l *Leaks) addLeaks() {
	list, most := l.judgeRows(l.timeline)
	if t := l.timeline.byNumber(); most < leak.Sure && l.timeline.pauses() { // work that is not done in a pause
		if other, more := l.judgeRows(t); more > most {
			list, l.timeline = other, t
		}
	}
	i := 0
	for row := range l.profile.Rows() {
		changes := row.Changes(minChanges)
		if changes > 0 {
			l.Varied++
		}
		if !l.Intervals && l.timeline.complete && changes < minChanges {
			if changes > 0 {
				l.Bound = math.Max(l.Bound, l.timeline.slowest(row.At))
			}
			continue
		}
		j := list[i]
		i++
		if j.Verdict == leak.Leak || j.Until != nil || j.Verdict == leak.Unknown && j.Rate > 0 && j.Probability >= listed {
			l.Rows = append(l.Rows, l.newLeak(j, []profile.Row{row}, nil))
		} else {
			l.Bound = math.Max(l.Bound, math.Min(j.High, math.MaxFloat64))
		}
	}
	l.Bound = math.Max(l.Bound, leastChange/l.timeline.length())
	l.addFunctions()
	l.joinParts()
	for _, r := range l.Rows {
		r.addVersions()
	}
	rank := [...]int{leak.Leak: 0, leak.Unknown: 1, leak.None: 2}
	slices.SortStableFunc(l.Rows, func(a, b *Leak) int {
		return cmp.Or(cmp.Compare(rank[a.Verdict], rank[b.Verdict]), cmp.Compare(b.ended(), a.ended()), cmp.Compare(b.Score(), a.Score()))
	})
}

// judgeRows judges the call paths that change often enough, and returns the largest probability.
func (l *Leaks) judgeRows(t *timeline) (all []leak.Judgement, most float64) {
	all = leak.JudgeAll(func(yield func(leak.Series) bool) {
		for row := range l.profile.Rows() {
			if !l.Intervals && t.complete && row.Changes(minChanges) < minChanges {
				continue
			}
			if !yield(l.series(t, []profile.Row{row})) {
				return
			}
		}
	})
	for i := range all {
		most = math.Max(most, all[i].Probability)
	}
	return all, most
}

// ended returns by how much a row grew before it ended, 0 if it did not.
func (l *Leak) ended() float64 {
	if l.Until == nil || l.Verdict != leak.None {
		return 0
	}
	return l.Former * math.Max(0, l.Until.At-l.Judgement.Since.At)
}

// newLeak returns a row.
func (l *Leaks) newLeak(j leak.Judgement, rows []profile.Row, stack []profile.Site) *Leak {
	r := &Leak{Judgement: j, SinceDump: -1, UntilDump: -1, leaks: l, rows: rows, stack: stack}
	r.First, r.Last = l.timeline.ends(r.Points())
	if l.timeline.late(j.Since) {
		r.SinceDump = l.timeline.dump(j.Since)
	}
	if j.Until != nil {
		r.UntilDump = l.timeline.dump(*j.Until)
	}
	return r
}

// series returns the values of rows. A path that has an address without a name is another function in
// another build: the boots of a version that lacks it have no points.
func (l *Leaks) series(t *timeline, which []profile.Row) leak.Series {
	t.sums = l.sum(which, t.sums)
	s := t.series(t.sums)
	if !t.versions {
		return s
	}
	absent := map[string]bool{}
	for i, b := range s.Boots {
		has := slices.ContainsFunc(b.Value, func(v float64) bool { return v != 0 })
		if before, known := absent[b.Version]; !known || before {
			absent[s.Boots[i].Version] = !has
		}
	}
	if slices.ContainsFunc(which[0].Stack(), profile.Site.Nameless) {
		for i := range s.Boots {
			if b := &s.Boots[i]; absent[b.Version] {
				b.At, b.Value, b.Kept = nil, nil, nil
			}
		}
	}
	return s
}

// sum returns the sum of rows in each dump, added up if they are of intervals, in a buffer that has a value for each dump.
func (l *Leaks) sum(rows []profile.Row, buffer []profile.Value) []profile.Value {
	if len(buffer) != len(l.Dumps) {
		buffer = make([]profile.Value, len(l.Dumps))
	}
	clear(buffer)
	for _, row := range rows {
		row.AddTo(buffer)
	}
	l.addUp(buffer)
	return buffer
}

// addVersions sets what each firmware does.
func (l *Leak) addVersions() {
	s := l.leaks.series(l.leaks.timeline, l.rows)
	l.Versions = judgeVersions(s, func(boot int) *profile.Dump { return l.leaks.Dumps[l.leaks.timeline.boots[boot].dumps[0]].Dump })
}

// judgeVersions judges the boots of each firmware, nil if there is only one. dump returns a dump of a boot.
func judgeVersions(s leak.Series, dump func(boot int) *profile.Dump) (list []Version) {
	var order []string
	boots, first := map[string][]leak.Boot{}, map[string]*profile.Dump{}
	for i, b := range s.Boots {
		if len(b.At) == 0 {
			continue
		}
		if boots[b.Version] == nil {
			order, first[b.Version] = append(order, b.Version), dump(i)
		}
		boots[b.Version] = append(boots[b.Version], b)
	}
	if len(order) < 2 {
		return nil
	}
	builds := map[string]int{} // by name of a firmware: how many there are
	for _, d := range first {
		builds[d.Firmware]++
	}
	for _, v := range order {
		s.Boots = boots[v]
		list = append(list, Version{label(first[v], builds[first[v].Firmware] > 1), leak.Judge(s)})
	}
	return list
}

// label returns the name of the firmware of a dump, with its build if other builds have the same name.
func label(d *profile.Dump, shared bool) string {
	name := "firmware " + d.Firmware
	build := "build " + d.Build[:min(12, len(d.Build))]
	switch {
	case d.Firmware == "" && d.Build == "":
		return "unknown firmware"
	case d.Firmware == "":
		return build
	case shared && d.Build != "":
		return name + ", " + build
	}
	return name
}
