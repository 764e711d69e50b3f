package growth

import (
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"

	"github.com/lwsbt/lwsbt/heap/leak"
)

// HeapTrend is what the reports on one heap say.
type HeapTrend struct {
	Name    string
	Reports int        // number of them
	Misread int        // those of them that are not used: their number lost digits, or has one of another line
	Boots   int        // boots with at least three
	First   HeapReport // of the last boot
	Last    HeapReport
	Least   profile.Amount // the least that was ever free
	// Judgement is of the memory that is in use: of the free memory, negated, or of what is used if the
	// reports say no more.
	leak.Judgement
	Began    *HeapReport // the report since which it grows, nil if that is the begin of the log
	Stopped  *HeapReport // the report until which it grew, nil if that has not ended
	Filled   *HeapReport // the report since which nothing is free, nil if something is
	Per      Unit
	Span     time.Duration // as that of [Leaks]
	Versions []Version     // as those of a Leak
	// Exhaustion is when what is free is 0, nil if the heap does not leak or what is free is not known.
	Exhaustion *Exhaustion
	// Largest is of the largest free block, which shrinks as that of a heap that fragments; nil if the
	// reports do not name it. Unusable is when it is 0, nil if it does not shrink as a leak grows.
	Largest  *leak.Judgement
	Unusable *Exhaustion
	// Fragmenting is set if, in the last boot, the largest free block has lost a quarter of its size
	// and a sixth of its share of the free memory.
	Fragmenting bool

	series leak.Series // that was judged
	used   []heapPoint
	hours  float64 // between two reports, 0 if it is not known
}

// heapPoint is a report that was judged.
type heapPoint struct {
	report *HeapReport
	boot   int
	at     float64
}

// Fragmented reports whether the largest free block is a third of the free memory or less.
func (t *HeapTrend) Fragmented() bool {
	f, known := t.Last.Fragmentation()
	return known && t.Last.Free.Bytes > 0 && f >= 2.0/3
}

// NearlyFull reports whether less than a twentieth of the heap is free.
func (t *HeapTrend) NearlyFull() bool {
	return t.Last.Size.Known && t.Last.Free.Known && t.Last.Free.Bytes < t.Last.Size.Bytes/20
}

// Unit is the unit of the time in a rate.
type Unit string

const (
	PerHour   Unit = "hour"
	PerDump   Unit = "dump"
	PerReport Unit = "report" // of an allocator
)

// newHeapTrend judges a series of a log with dumps. size is that of a heap of which the reports say only
// what is used, 0 if it is not known.
func newHeapTrend(s *HeapSeries, dumps []LeakDump, size uint64) HeapTrend {
	s, misread := s.withoutMisread()
	t := HeapTrend{Name: s.Name, Reports: s.Total, Misread: misread, Least: s.Least, Per: PerReport}
	if s.Total == len(dumps) {
		t.Per = PerDump
	}
	t.Why = "too short: no boot has 3 reports"
	if len(s.Reports) == 0 {
		return t
	}
	t.Last = s.Reports[len(s.Reports)-1]
	reports := 0 // of the last boot
	for _, r := range s.Reports {
		if r.At == 0 && r.File != t.Last.File || r.Boot != t.Last.Boot { // boots of lines of text are those of all logs
			continue
		}
		if reports++; reports == 1 {
			t.First = r
		}
	}
	t.Fragmenting = reports >= minBootDumps && fragmenting(&t.First.Heap, &t.Last.Heap)
	t.judge(timed(s.Reports, dumps))
	free := t.Last.Free
	if size == 0 && t.Last.Size.Known { // the limit of a process, a container or a heap
		size = t.Last.Size.Bytes
	}
	if t.Last.OnlyUsed() && size > 0 {
		free = profile.Amount{Bytes: size - min(size, t.Last.Used.Bytes), Known: true}
	}
	if free.Known {
		t.Exhaustion = newExhaustion(t.Name, t.Per, t.hours, free.Bytes, 1, t.Judgement, nil)
	}
	if t.Largest != nil && t.Largest.Low > 0 {
		t.Unusable = newExhaustion(t.Name, t.Per, t.hours, t.Last.Largest.Bytes, 1, *t.Largest, nil)
	}
	return t
}

// fragmenting reports whether the largest free block has lost a quarter of its size and a sixth of
// its share of the free memory.
func fragmenting(first, last *profile.Heap) bool {
	f, known := first.Fragmentation()
	l, knownLast := last.Fragmentation()
	return known && knownLast && float64(last.Largest.Bytes) <= 0.75*float64(first.Largest.Bytes) && 1-l <= 5*(1-f)/6+1e-9
}

// timed returns reports with the times of the dumps, where only these have any: a report behind a dump is
// as old as the dump, if none is nearer.
func timed(reports []HeapReport, dumps []LeakDump) []HeapReport {
	if slices.ContainsFunc(reports, func(r HeapReport) bool { return r.Timed || len(r.Stamps) > 0 }) {
		return reports
	}
	reports = slices.Clone(reports)
	for i := range reports {
		r := &reports[i]
		for k := range dumps {
			if d := &dumps[k]; d.Used && d.Timed && d.File == r.File && d.Dump.Boot == r.Boot && d.Line <= r.Line {
				r.Time, r.Timed = d.Time, true
			}
		}
	}
	return reports
}

// judge judges reports: each is taken as a dump.
func (t *HeapTrend) judge(reports []HeapReport) {
	var all []*profile.Dump
	var which []*HeapReport
	var most, mostLargest uint64
	largest := true
	for i := range reports {
		r := &reports[i]
		if !r.Free.Known && !r.Used.Known {
			continue
		}
		d := &profile.Dump{DumpInfo: profile.DumpInfo{File: fileOf(reports, i), Line: r.Line, Index: i, Boot: r.Boot, Time: r.Time, Timed: r.Timed, Stamps: r.Stamps,
			Build: r.Build, Firmware: r.Firmware}, Ended: true}
		if r.Size.Known {
			d.Total.Bytes = r.Size.Bytes - min(r.Size.Bytes, r.Free.Bytes)
		}
		all, which = append(all, d), append(which, r)
		most, mostLargest, largest = max(most, r.Free.Bytes), max(mostLargest, r.Largest.Bytes), largest && r.Largest.Known
	}
	dumps := useDumps(all)
	line := newTimeline(dumps)
	if len(line.boots) == 0 {
		return
	}
	t.Boots, t.Span = len(line.boots), line.span()
	if line.per == PerHour {
		t.Per = PerHour
	}
	use, free := func(r *HeapReport) uint64 {
		if r.OnlyUsed() {
			return r.Used.Bytes
		}
		return most - r.Free.Bytes
	}, func(r *HeapReport) uint64 { return mostLargest - r.Largest.Bytes }
	t.hours = line.hoursPer(dumps)
	full := float64(most)
	if t.Last.OnlyUsed() {
		full = float64(t.Last.Size.Bytes)
	}
	t.Judgement, t.series = t.judgeBy(line, which, full, use)
	if n := line.byNumber(); !t.Sure() && line.pauses() {
		if j, s := t.judgeBy(n, which, full, use); j.Probability > math.Max(t.Probability, 0.5) {
			line, t.Judgement, t.series, t.Per = n, j, s, PerReport
		}
	}
	t.Judgement.Per = string(t.Per)
	if largest && mostLargest > 0 {
		j, _ := t.judgeBy(line, which, 0, free)
		t.Largest = &j
	}
	t.Versions = judgeVersions(t.series, func(boot int) *profile.Dump { return all[line.boots[boot].dumps[0]] })
	for i := range line.boots {
		for k, d := range line.boots[i].dumps {
			t.used = append(t.used, heapPoint{which[d], i, line.boots[i].at[k]})
		}
	}
	if line.late(t.Since) {
		t.Began = which[line.dump(t.Since)]
	}
	if t.Until != nil {
		t.Stopped = which[line.dump(*t.Until)]
	}
	if t.Judgement.Full != nil {
		t.Filled = which[line.dump(*t.Judgement.Full)]
	}
}

// judgeBy judges a value of the reports, of which full is that at which nothing is free. Without times, a point is the number of its report.
func (t *HeapTrend) judgeBy(line *timeline, reports []*HeapReport, full float64, value func(*HeapReport) uint64) (leak.Judgement, leak.Series) {
	s := leak.Series{Kind: leak.Heap, Per: string(t.Per), Full: full}
	for i := range line.boots {
		b := &line.boots[i]
		out := leak.Boot{At: b.at, Version: b.version}
		if line.per != PerHour {
			out.At = nil
		}
		for _, d := range b.dumps {
			if line.per != PerHour {
				out.At = append(out.At, float64(reports[d].Number))
			}
			out.Value = append(out.Value, float64(value(reports[d])))
		}
		s.Boots = append(s.Boots, out)
	}
	return leak.Judge(s), s
}

// Series returns the values that were judged.
func (t *HeapTrend) Series() leak.Series { return t.series }

// LargestBlocks returns the bytes of the largest free block in the reports that were judged, by boot; nil if they do not
// name it.
func (t *HeapTrend) LargestBlocks() (list []leak.Boot) {
	if t.Largest == nil {
		return nil
	}
	list = make([]leak.Boot, len(t.series.Boots))
	n := 0
	for i, b := range t.series.Boots {
		for k, at := range b.At {
			list[i].At, list[i].Value = append(list[i].At, at), append(list[i].Value, float64(t.used[n+k].report.Largest.Bytes))
		}
		n += len(b.At)
	}
	return list
}

// Values returns the values that were judged, of all boots, and the index of the one since which they grow, 0 if
// that is the first.
func (t *HeapTrend) Values() (list []float64, begin int) {
	for _, b := range t.series.Boots {
		list = append(list, b.Value...)
	}
	if t.Began != nil {
		begin = max(0, slices.IndexFunc(t.used, func(p heapPoint) bool { return p.report == t.Began }))
	}
	return list, begin
}

// Exhaustion is the time until a heap is full at the present rate: in hours if any time is known, else in dumps or
// reports.
type Exhaustion struct {
	Heap string `json:"heap"` // name, "" if the log names none
	Free uint64 `json:"free"` // bytes, after the last used dump
	Per  Unit   `json:"per"`
	leak.Deadline
}

// newExhaustion returns when a heap is full, nil if nothing leaks. A unit of per takes hours, if that is not 0.
func newExhaustion(heap string, per Unit, hours float64, free uint64, perByte float64, own leak.Judgement, paths []leak.Judgement) *Exhaustion {
	d, ok := leak.Exhausted(float64(free), perByte, own, paths)
	if !ok {
		return nil
	}
	if per != PerHour && hours > 0 {
		per = PerHour
		d.In, d.From, d.To = d.In*hours, d.From*hours, d.To*hours
		d.Rate, d.Low, d.High = d.Rate/hours, d.Low/hours, d.High/hours
	}
	return &Exhaustion{heap, free, per, d}
}

// freeHeap is what is free in the heap in which the call paths are.
type freeHeap struct {
	name  string
	bytes uint64
}

// exhaust computes when a heap is full: by its own trend, or by the sum of what leaks. size is that of the
// heap, 0 if it is not given.
func (l *Leaks) exhaust(size uint64) {
	for i := range l.Heaps {
		if x := l.Heaps[i].Exhaustion; x != nil && (l.Exhaustion == nil || x.sooner(l.Exhaustion)) {
			l.Exhaustion = x
		}
	}
	if last := l.lastUsed(); size > 0 && last != nil {
		l.free = &freeHeap{bytes: size - min(size, last.Total.Bytes)}
	} else if heap := l.leakingHeap(); heap != nil {
		l.free, l.perByte = &freeHeap{heap.Name, heap.Last.Free.Bytes}, l.allocatorBytes(heap)
	}
	rate, low, high := leak.Sum(l.judgements())
	l.Rate, l.Low, l.High = rate*l.perByte, low*l.perByte, high*l.perByte
	if x := l.exhaustion(); x != nil && (l.Exhaustion == nil || x.sooner(l.Exhaustion)) {
		l.Exhaustion = x
	}
}

// sooner reports whether a heap is full before another. Hours are preferred to other units.
func (x *Exhaustion) sooner(o *Exhaustion) bool {
	if x.Per != o.Per {
		return x.Per == PerHour
	}
	return x.In < o.In
}

// judgements returns those of what leaks.
func (l *Leaks) judgements() (list []leak.Judgement) {
	for _, r := range l.Leaking() {
		list = append(list, r.Judgement)
	}
	return list
}

// maybe is the least probability of a leak that is not called one, but counts for the deadline.
const maybe = 0.2

// MayLeak returns the rows of which it is not known whether they leak, but which count for the deadline.
func (l *Leaks) MayLeak() []*Leak {
	return l.with(func(r *Leak) bool { return r.Verdict == leak.Unknown && r.Probability >= maybe })
}

// exhaustion returns when the heap of the call paths is full by what leaks and may leak, and by rows of which that is
// not known.
func (l *Leaks) exhaustion(rows ...*Leak) *Exhaustion {
	if l.free == nil {
		return nil
	}
	list := l.judgements()
	for _, r := range l.MayLeak() {
		if j := r.Judgement; !slices.Contains(rows, r) {
			j.Verdict = leak.Leak // with its probability: it moves the late end
			list = append(list, j)
		}
	}
	for _, r := range rows {
		j := r.Judgement
		j.Verdict, j.Probability = leak.Leak, 1
		list = append(list, j)
	}
	return newExhaustion(l.free.name, l.Per, l.timeline.hoursPer(l.Dumps), l.free.bytes, l.perByte, leak.Judgement{}, list)
}

// IfLeak returns when the heap is full if rows, of which it is not known whether they leak, do, besides what
// leaks. It returns nil if the free memory is not known.
func (l *Leaks) IfLeak(rows ...*Leak) *Exhaustion {
	if len(rows) == 0 || rows[0].Verdict != leak.Unknown {
		return nil
	}
	return l.exhaustion(rows...)
}

// maxPerByte is the largest number of bytes of the allocator for a byte of a call path that is taken from a
// log.
const maxPerByte = 16

// allocatorBytes returns how many bytes of a heap a byte of the call paths takes, headers and alignment
// included: how what is used follows the blocks of the dumps.
func (l *Leaks) allocatorBytes(heap *HeapTrend) float64 {
	var r regression
	boot, n := -1, 0
	for k := range l.Dumps {
		d := &l.Dumps[k]
		if !d.Used || d.Missing > 0 {
			continue
		}
		i := slices.IndexFunc(heap.used, func(p heapPoint) bool {
			return p.report.File == d.File && p.report.Boot == d.Dump.Boot && p.report.Line >= d.Line && (k+1 == len(l.Dumps) || l.Dumps[k+1].File != d.File || p.report.Line < l.Dumps[k+1].Line)
		})
		if i < 0 {
			continue
		}
		if heap.used[i].boot != boot {
			boot = heap.used[i].boot
			r.next()
		}
		n++
		r.add(float64(d.Total.Bytes), float64(heap.series.Boots[boot].Value[slices.Index(heap.series.Boots[boot].At, heap.used[i].at)]))
	}
	if slope, ok := r.slope(); ok && n >= minBootDumps && slope > 1 && slope <= maxPerByte {
		return slope
	}
	return 1
}

// lastUsed returns the last used dump, nil if there is none.
func (l *Leaks) lastUsed() (last *profile.Dump) {
	for i := range l.Dumps {
		if l.Dumps[i].Used {
			last = l.Dumps[i].Dump
		}
	}
	return last
}

// leakingHeap returns the heap in which the call paths are: the only one, or the one with
// the least free memory if none of several shrinks by itself. It returns nil if that is not known.
func (l *Leaks) leakingHeap() (least *HeapTrend) {
	for i := range l.Heaps {
		t := &l.Heaps[i]
		switch {
		case !t.Last.Free.Known:
		case len(l.Heaps) > 1 && l.Exhaustion != nil:
			return nil
		case least == nil || t.Last.Free.Bytes < least.Last.Free.Bytes:
			least = t
		}
	}
	return least
}

// fileOf returns the log of a report, or of the first one if these are lines of text: their boots are numbered over
// all logs.
func fileOf(reports []HeapReport, i int) string {
	if reports[i].At > 0 {
		i = 0
	}
	return reports[i].File
}
