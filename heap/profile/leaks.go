package profile

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// LeakOptions are the options of [Profile.Leaks].
type LeakOptions struct {
	// Heap is the size of the device's heap in bytes. If it is 0, the free memory is what the
	// allocator reported last.
	Heap uint64
	// Heaps has what the allocator reported. If it is nil, the reports are those of the used dumps.
	Heaps []HeapSeries
}

// Leaks is the result of [Profile.Leaks]. (heap/docs/leaks.md)
type Leaks struct {
	// Rows are the call paths whose floor rose, the most likely leak first: those with the
	// verdict Leaking, then Probably, then the others, and within these by Score.
	Rows []*Leak
	// Functions are the functions whose call paths together have the verdict Leaking or
	// Probably, and a stronger one than any of these paths has alone. The call paths of a
	// function are those whose innermost shown frame is in the function.
	Functions []*Leak
	// Rate is the sum of the rows and functions of Sure, in bytes per hour if Timed is set, else
	// per dump. The true rate is between Rate-Margin and Rate+Margin in 9 of 10 cases.
	Rate, Margin float64
	// Dumps has each dump of the profile, and whether it was used.
	Dumps []LeakDump
	Used  int // number of dumps used
	Boots int // boots that have at least three used dumps
	// Timed is set if the rates are per hour. Otherwise they are per dump, because the log has
	// no times.
	Timed bool
	// Span is the sum over the boots of the time between the first and the last used dump, if
	// Timed.
	Span time.Duration
	// Intervals is set if each dump has only the blocks of its own interval, as with a trace that is
	// started, stopped and dumped for each request: three or more dumps of a boot, and no block at an
	// address of an earlier one. The values of the dumps are then added up.
	Intervals bool
	// Missing is the fraction of the blocks of the used dumps that the log lacks, 0 to 1.
	Missing float64
	// Varied is the number of call paths whose values differ between used dumps. It includes
	// paths that are not in Rows.
	Varied int
	// Random is the expected number of call paths that get the verdict Grows although they do
	// not leak. (heap/docs/leaks.md)
	Random float64
	// Load is the growth of the typical call path as a fraction, if it is a tenth or more: the
	// load of the program grew. Call paths that grow up to three times as much are not Sure, and
	// none is Leaking if it is a quarter or more.
	Load float64
	// Longest is the largest number of used dumps in one boot.
	Longest int
	// Enough is set if the used dumps suffice for the verdict Leaking: if a call path that grows
	// in every interval, steadily, gets it.
	Enough bool
	// Heaps has the trend of each heap of which the allocator reported.
	Heaps []HeapTrend
	// Exhaustion is the time until a heap is full: the first, of several. It is nil if neither a row
	// nor the use of a heap is Leaking or Probably, or if the free memory is not known.
	Exhaustion *Exhaustion

	sure []*Leak
	free *freeHeap // nil if the free memory is not known
}

// Sure returns the rows that are Leaking or Probably, and then those of Functions of which no
// call path is in these rows.
func (l *Leaks) Sure() []*Leak { return slices.Clone(l.sure) }

// Leak is a call path, or a function with all its call paths, whose floor rose.
type Leak struct {
	Evidence
	p     *Profile
	leaks *Leaks
	rows  []uint32
	stack []Site
	calls []Row // of a function: its call paths with lines and callers
}

// Stack returns the call sites, innermost first. Of a function, it is one site.
func (l *Leak) Stack() []Site {
	if l.stack != nil || l.p == nil {
		return l.stack
	}
	return l.row().Stack()
}

func (l *Leak) row() Row { return Row{l.p, int(l.rows[0])} }

// Innermost returns the innermost call site, the zero Site if there is none.
func (l *Leak) Innermost() Site {
	if l.stack != nil {
		return l.stack[0]
	}
	if l.p == nil {
		return Site{}
	}
	var site [1]Site
	copy(site[:], l.row().inner(1))
	return site[0]
}

// Points returns the value in each dump of the profile, used or not, added up if [Leaks].Intervals.
func (l *Leak) Points() []Value {
	if l.p == nil {
		return nil
	}
	list := make([]Value, len(l.p.dumps))
	l.p.addRows(list, l.rows)
	l.leaks.addUp(list)
	return list
}

// LeakDump is a dump, and whether [Profile.Leaks] used it.
type LeakDump struct {
	*Dump
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

// Exhaustion is the time until a heap is full at the present rate, in hours, dumps or reports.
type Exhaustion struct {
	Heap string `json:"heap"` // name, "" if the log names none
	Free uint64 `json:"free"` // bytes, after the last used dump
	// Rate and Margin are those of Leaks, or of a HeapTrend.
	Rate   float64 `json:"rate"`
	Margin float64 `json:"margin"`
	Per    Unit    `json:"per"`
	// In is the time until the heap is full at Rate. From is this time at Rate+Margin, and To
	// at Rate-Margin. To is +Inf if Rate-Margin is 0 or less.
	In   float64 `json:"in"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Largest fractions of missing blocks with which a dump is used.
const (
	maxMissing      = 0.2
	maxMissingPaths = 0.5 // of lines with call paths: the paths that the dump has are whole
)

// Leaks returns the call paths that leak, by the rule of heap/docs/leaks.md. It adds up the rise of
// the floor over the boots, and never compares two boots. It uses dumps that lost up to a fifth
// of their blocks, and lowers [Evidence].Gain to allow for the loss. It leaves out dumps without
// an end, and dumps that programs write when they exit. If there are three or more dumps, and
// each is from a different log, Leaks takes them as dumps of one boot, in the order of p.Dumps.
func (p *Profile) Leaks(o LeakOptions) *Leaks {
	l := &Leaks{Dumps: useDumps(p.Dumps())}
	t := newLeakTrend(l.Dumps)
	l.Boots, l.Used, l.Timed, l.Longest, l.Enough = len(t.boots), t.dumps, t.timed && t.dumps > 0, t.longest, t.enough()
	if l.Timed {
		l.Span = time.Duration(t.span * float64(time.Hour))
	}
	var want, have float64
	for _, d := range l.Dumps {
		if n := float64(d.Total.Count); d.Used {
			have, want = have+n, want+n/(1-d.Missing)
		}
	}
	if want > 0 {
		l.Missing = 1 - have/want
	}
	l.Intervals = ofIntervals(l.Dumps)
	if l.Used > 0 {
		p.addLeaks(l, t)
		p.addFunctions(l, t)
	}
	for i := range l.sure {
		l.Rate += l.sure[i].Rate
		l.Margin = math.Hypot(l.Margin, l.sure[i].Margin)
	}
	series := o.Heaps
	if series == nil {
		series, _ = OneSource(heapSeries(l.Dumps))
	}
	for i := range series {
		l.Heaps = append(l.Heaps, newHeapTrend(&series[i], len(l.Dumps), o.Heap))
	}
	l.exhaust(o.Heap)
	return l
}

// falseGrows returns the fraction of call paths without a leak that get the verdict Grows, by the
// table in heap/docs/leaks.md.
func falseGrows(dumps int) float64 {
	if dumps < 14 {
		return 0.03
	}
	return 0.01
}

// addLeaks examines all rows.
func (p *Profile) addLeaks(l *Leaks, t *leakTrend) {
	points := make([]Value, len(p.dumps))
	rows := p.rows()
	used := make([]int, len(p.dumps)+1) // number of used dumps before each, by rank
	for i := range l.Dumps {
		if used[i+1] = used[i]; l.Dumps[rows.series.dumpAt(uint32(i))].Used {
			used[i+1]++
		}
	}
	var growths []float64
	load := loadCurve{dumps: t.examined()}
	for row := range rows.len() {
		changes := rows.changes(row, minChanges)
		if !l.Intervals && changes == 0 {
			continue // it neither varies nor grows
		}
		if !l.Intervals && t.complete && t.seldom(changes) { // in the time of the changes, not of all dumps
			if rows.varies(row, used) {
				l.Varied++
				e := Evidence{}
				e.First, e.Last = t.ends(func(dump int) Value { return rows.value(row, dump) })
				growths = append(growths, e.growth())
			}
			continue
		}
		which := []uint32{uint32(row)}
		clear(points)
		p.addRows(points, which)
		l.addUp(points)
		var e Evidence
		if !l.Intervals && t.seldom(changes) {
			whole := t.fill(points)
			e.First, e.Last = t.ends(func(dump int) Value { return whole[dump] })
		} else {
			e = t.examine(points)
		}
		if varies(points, l.Dumps) {
			l.Varied++
			growths = append(growths, e.growth())
			load.add(points)
		}
		if e.Gain > 0 {
			if e.Versions != nil {
				e.Versions = comparableVersions(e.Versions, Row{p, row}.Stack())
			}
			l.Rows = append(l.Rows, &Leak{Evidence: e, p: p, leaks: l, rows: which})
		}
	}
	if !l.Intervals { // sums of all paths grow
		l.leaveOutLoad(growths)
		if l.Load > 0 {
			p.compareWithLoad(l, t, load.curve())
		}
	}
	l.Random = falseGrows(l.Used) * float64(l.Varied)
	sortLeaks(l.Rows)
	for _, r := range l.Rows {
		if r.Verdict.Sure() {
			l.sure = append(l.sure, r)
		}
	}
}

// minLoadPaths is the least number of call paths whose values vary of which a common growth
// can be told.
const minLoadPaths = 8

// manyLoadPaths is the number of call paths from which on their common growth is no accident.
const manyLoadPaths = 20

// leaveOutLoad lowers the verdict of rows that grow as the typical call path does: then the
// load grows, or the day begins. growths has those of all call paths whose values vary.
func (l *Leaks) leaveOutLoad(growths []float64) {
	if len(growths) < minLoadPaths {
		return
	}
	typical := median(growths)
	if typical < 0.1 || len(growths) < manyLoadPaths && typical < 3*medianErr(growths, typical) {
		return
	}
	l.Load = typical
	for i := range l.Rows {
		e := &l.Rows[i].Evidence
		switch {
		case e.growth() <= 3*typical+2/math.Sqrt(float64(max(e.First.Count, 1))):
			e.Verdict = min(e.Verdict, Grows)
		case typical >= 0.25:
			e.Verdict = min(e.Verdict, Probably)
		}
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// medianErr returns the standard error of the median of a list, which it changes.
func medianErr(list []float64, middle float64) float64 {
	for i := range list {
		list[i] = math.Abs(list[i] - middle)
	}
	return 1.25 * 1.48 * median(list) / math.Sqrt(float64(len(list))) // if the distances are normal
}

// growth returns the growth between First and Last, as a fraction of First.
func (e *Evidence) growth() float64 {
	if e.ByBytes {
		return (float64(e.Last.Bytes) - float64(e.First.Bytes)) / float64(max(e.First.Bytes, 1))
	}
	return (float64(e.Last.Count) - float64(e.First.Count)) / float64(max(e.First.Count, 1))
}

// sortLeaks orders rows as in [Leaks.Rows].
func sortLeaks(list []*Leak) {
	rank := func(e *Leak) int { return -max(0, int(e.Verdict)-int(Grows)) }
	slices.SortFunc(list, func(a, b *Leak) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Score, a.Score), cmp.Compare(b.Gain, a.Gain), cmp.Compare(a.rows[0], b.rows[0]))
	})
}

// addFunctions examines the sums of the call paths of each function.
func (p *Profile) addFunctions(l *Leaks, t *leakTrend) {
	best := map[string]Verdict{} // of the call paths of a function
	for i := range l.Rows {
		if site, ok := p.rows().innermost(int(l.Rows[i].rows[0])); ok {
			name := p.names().siteAt(site).Func
			best[name] = max(best[name], l.Rows[i].Verdict)
		}
	}
	view, from := p.view, p
	view.By = ByFunction
	p = p.View(view)
	rows, points := p.rows(), make([]Value, len(p.dumps))
	merged := rows.len() < from.rows().len()
	for list := range rows.bySite() {
		site := rows.names.siteAt(rows.site(list[0]))
		if _, grows := best[site.Func]; !grows && !merged && len(list) == 1 {
			continue // it has the values of its call path
		}
		changes := 0
		for _, row := range list {
			changes += rows.changes(int(row), minChanges)
		}
		if !l.Intervals && t.seldom(changes) {
			continue
		}
		clear(points)
		p.addRows(points, list)
		l.addUp(points)
		e := t.examine(points)
		e.Versions = comparableVersions(e.Versions, []Site{site})
		if e.Gain > 0 && e.Verdict.Sure() && e.Verdict > best[site.Func] {
			l.Functions = append(l.Functions, &Leak{Evidence: e, p: p, leaks: l, rows: list, stack: []Site{site}})
		}
	}
	sortLeaks(l.Functions)
	from.addCalls(l.Functions)
	for _, f := range l.Functions {
		if best[f.stack[0].Func] < Probably {
			l.sure = append(l.sure, f)
		}
	}
}

// addCalls sets the call paths of functions.
func (p *Profile) addCalls(functions []*Leak) {
	if len(functions) == 0 {
		return
	}
	calls := map[string][]Row{}
	for i := range functions {
		calls[functions[i].stack[0].Func] = nil
	}
	for row := range p.Rows() {
		if site := row.inner(1); len(site) > 0 {
			if list, leaks := calls[site[0].Func]; leaks {
				calls[site[0].Func] = append(list, row)
			}
		}
	}
	for i := range functions {
		functions[i].calls = calls[functions[i].stack[0].Func]
	}
}

// addRows adds the values of rows by dump.
func (p *Profile) addRows(points []Value, which []uint32) {
	rows := p.rows()
	for _, row := range which {
		rows.addTo(points, int(row))
	}
}

// varies reports whether the values of the used dumps differ.
func varies(points []Value, dumps []LeakDump) bool {
	first := -1
	for i, d := range dumps {
		switch {
		case !d.Used:
		case first < 0:
			first = i
		case points[i] != points[first]:
			return true
		}
	}
	return false
}
