package profile

import (
	"math"
	"time"
)

// HeapTrend is what the reports on one heap say.
type HeapTrend struct {
	Name    string
	Reports int        // number of them
	Misread int        // those of them that are not used: their number lost digits, or has one of another line
	Boots   int        // boots with at least three
	First   HeapReport // of the last boot
	Last    HeapReport
	Least   Amount // the least that was ever free
	// Evidence is the result of the rule for leaks, applied to the memory that is in use: to the
	// free memory, negated, or to what is used if the reports say no more. First and Last of it are not set. Rates are in bytes per Per.
	Evidence
	Began LeakDump // Evidence.Since, as a dump: of it, File, Line, Boot and the time are set
	Until LeakDump // the same of Evidence.Ended, if it is set
	Per   Unit
	Span  time.Duration // as that of [Leaks]
	// Exhaustion is nil if what is free does not decrease, or is not known. If Evidence.Verdict is
	// not sure, it is only what would happen if the decrease went on.
	Exhaustion *Exhaustion
	// Fragmenting is set if, in the last boot, the largest free block has lost a quarter of its size
	// and a sixth of its share of the free memory.
	Fragmenting bool
}

// Fragmented reports whether the largest free block is a third of the free memory or less.
func (t *HeapTrend) Fragmented() bool {
	f, known := t.Last.Fragmentation()
	return known && t.Last.Free.Bytes > 0 && f >= 2.0/3
}

// Full reports whether less than a twentieth of the heap is free.
func (t *HeapTrend) Full() bool {
	return t.Last.Size.Known && t.Last.Free.Known && t.Last.Free.Bytes < t.Last.Size.Bytes/20
}

// Grows reports whether the memory in use grows, be it a leak or not.
func (t *HeapTrend) Grows() bool {
	return t.Rate > t.Margin && (t.Verdict >= Grows || t.Rose == t.Intervals)
}

// Unit is the unit of the time in a rate.
type Unit string

const (
	PerHour   Unit = "hour"
	PerDump   Unit = "dump"
	PerReport Unit = "report" // of an allocator
)

// newHeapTrend examines a series of a log with a number of dumps. size is that of a heap of which the
// reports say only what is used, 0 if it is not known.
func newHeapTrend(s *HeapSeries, dumps int, size uint64) HeapTrend {
	s, misread := s.withoutMisread()
	t := HeapTrend{Name: s.Name, Reports: s.Total, Misread: misread, Least: s.Least, Per: PerReport}
	if s.Total == dumps {
		t.Per = PerDump
	}
	if len(s.Reports) == 0 {
		return t
	}
	t.Last = s.Reports[len(s.Reports)-1]
	reports := 0 // of the last boot
	for _, r := range s.Reports {
		if r.File != t.Last.File || r.Boot != t.Last.Boot {
			continue
		}
		if reports++; reports == 1 {
			t.First = r
		}
	}
	t.Fragmenting = reports >= minBootDumps && fragmenting(&t.First.Heap, &t.Last.Heap)
	t.examine(s.Reports)
	free := t.Last.Free
	if t.Last.OnlyUsed() && size > 0 {
		free = Amount{size - min(size, t.Last.Used.Bytes), true}
	}
	if free.Known && t.Grows() {
		t.Exhaustion = newExhaustion(free.Bytes, t.Rate, t.Margin, t.Per)
		t.Exhaustion.Heap = t.Name
	}
	return t
}

// fragmenting reports whether the largest free block has lost a quarter of its size and a sixth of
// its share of the free memory.
func fragmenting(first, last *Heap) bool {
	f, known := first.Fragmentation()
	l, knownLast := last.Fragmentation()
	return known && knownLast && float64(last.Largest.Bytes) <= 0.75*float64(first.Largest.Bytes) && 1-l <= 5*(1-f)/6+1e-9
}

// examine applies the rule for leaks to reports: each is taken as a dump of one block.
func (t *HeapTrend) examine(reports []HeapReport) {
	var all []*Dump
	var numbers []float64
	var most uint64
	for i, r := range reports {
		if !r.Free.Known && !r.Used.Known {
			continue
		}
		d := &Dump{DumpInfo: DumpInfo{File: r.File, Line: r.Line, Index: i, Boot: r.Boot, Time: r.Time, Timed: r.Timed, Stamps: r.Stamps,
			Build: r.Build, Firmware: r.Firmware}, Ended: true}
		if r.Size.Known {
			d.Total.Bytes = r.Size.Bytes - min(r.Size.Bytes, r.Free.Bytes)
		}
		all, numbers = append(all, d), append(numbers, float64(r.Number))
		most = max(most, r.Free.Bytes)
	}
	dumps := useDumps(all)
	trend := newLeakTrend(dumps)
	if trend.dumps == 0 {
		return
	}
	if !trend.timed {
		for i := range trend.boots {
			for j, d := range trend.boots[i].dumps {
				trend.boots[i].at[j] = numbers[d]
			}
		}
		trend.trend = newTrend(trend.boots)
	}
	points := make([]Value, len(all))
	for i, d := range all {
		r := &reports[d.Index]
		points[i] = Value{Bytes: most - r.Free.Bytes, Count: 1}
		if r.OnlyUsed() {
			points[i].Bytes = r.Used.Bytes
		}
	}
	t.Boots = len(trend.boots)
	if trend.timed {
		t.Per = PerHour
		t.Span = time.Duration(trend.span * float64(time.Hour))
	}
	t.Evidence = trend.examine(points)
	t.Evidence.First, t.Evidence.Last = Value{}, Value{}
	t.Began = dumps[t.Evidence.Since]
	if t.Ended != nil {
		t.Until = dumps[t.Ended.Dump]
	}
}

// newExhaustion returns when a heap is full.
func newExhaustion(free uint64, rate, margin float64, per Unit) *Exhaustion {
	x := &Exhaustion{Free: free, Rate: rate, Margin: margin, Per: per}
	n := float64(free)
	x.In, x.From, x.To = n/rate, n/(rate+margin), math.Inf(1)
	if rate > margin {
		x.To = n / (rate - margin)
	}
	return x
}

// freeHeap is what is free in the heap in which the call paths are.
type freeHeap struct {
	name  string
	bytes uint64
}

// exhaust computes when a heap is full. size is that of the heap, 0 if it is not given.
func (l *Leaks) exhaust(size uint64) {
	if last := l.lastUsed(); size > 0 && last != nil {
		l.free = &freeHeap{bytes: size - min(size, last.Total.Bytes)}
	} else {
		l.Exhaustion = firstFull(l.Heaps)
		if heap := l.leakingHeap(); heap != nil {
			l.free = &freeHeap{heap.Name, heap.Last.Free.Bytes}
		}
	}
	if now := l.Exhaustion; now == nil || now.Per != l.per() || now.Rate-now.Margin <= l.Rate+l.Margin {
		if x := l.exhaustion(l.Rate, l.Margin); x != nil {
			l.Exhaustion = x
		}
	}
}

// exhaustion returns when the heap of the call paths is full at a rate, nil if it is not known.
func (l *Leaks) exhaustion(rate, margin float64) *Exhaustion {
	if l.free == nil || rate <= 0 {
		return nil
	}
	x := newExhaustion(l.free.bytes, rate, margin, l.per())
	x.Heap = l.free.name
	return x
}

// IfLeak returns when the heap is full if r, whose verdict is Grows, leaks besides what is Sure. It
// returns nil if the free memory is not known, or if r is Sure or stopped growing.
func (l *Leaks) IfLeak(r *Leak) *Exhaustion {
	if r.Verdict.Sure() || r.Ended != nil {
		return nil
	}
	return l.exhaustion(l.Rate+r.Rate, math.Hypot(l.Margin, r.Margin))
}

// per returns the unit of Rate.
func (l *Leaks) per() Unit {
	if l.Timed {
		return PerHour
	}
	return PerDump
}

// lastUsed returns the last used dump, nil if there is none.
func (l *Leaks) lastUsed() (last *Dump) {
	for i := range l.Dumps {
		if l.Dumps[i].Used {
			last = l.Dumps[i].Dump
		}
	}
	return last
}

// firstFull returns the exhaustion of the heap that is full first, nil if no heap surely shrinks.
// Hours and reports do not compare: if a heap has times, only those with times count.
func firstFull(heaps []HeapTrend) (first *Exhaustion) {
	for i := range heaps {
		x := heaps[i].Exhaustion
		if x == nil || !heaps[i].Verdict.Sure() {
			continue
		}
		if first == nil || x.Per == PerHour && first.Per != PerHour || x.Per == first.Per && x.In < first.In {
			first = x
		}
	}
	return first
}

// leakingHeap returns the heap in which the call paths of Sure are: the only one, or the one with
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
