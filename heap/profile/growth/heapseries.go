package growth

import (
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// HeapReport is a report of an allocator in a log.
type HeapReport struct {
	profile.Heap
	File   string
	Line   int64
	Boot   int           // from 1
	Number int           // of the report in its series, from 1
	Time   time.Duration // since the boot, if Timed
	Timed  bool
	Stamps []profile.Stamp // times of its line, or of those above it, if not Timed

	Build, Firmware string // of the boot, "" if not known

	At int64 // position among the reports of lines of text, from 1
}

// Uptime returns the time since the boot: Time, or that of a clock in the lines of the log that begins with
// the boot. ok is false if it is not known.
func (r *HeapReport) Uptime() (at time.Duration, ok bool) {
	if r.Timed {
		return r.Time, true
	}
	if i := slices.IndexFunc(r.Stamps, func(s profile.Stamp) bool { return !s.Wall }); i >= 0 {
		return r.Stamps[i].At, true
	}
	return 0, false
}

// least returns the least of an amount and of what r says.
func (r *HeapReport) least(least profile.Amount) profile.Amount {
	for _, a := range []profile.Amount{r.Free, r.Min} {
		if a.Known && (!least.Known || a.Bytes < least.Bytes) {
			least = a
		}
	}
	return least
}

// HeapSeries has the reports on one heap, in the order of the log.
type HeapSeries struct {
	Source  string
	Label   string // the words of the lines, if it is of lines of text
	Name    string
	Reports []HeapReport   // if there are many, some of them at even distances, and the last
	Total   int            // number of reports
	Least   profile.Amount // the least that was free or that a report calls the least

	every int // Reports has each report whose number is a multiple of this
}

// maxSeries is the largest number of series: more are of a damaged log.
const maxSeries = 256

// maxReports is the largest number of reports that a series keeps.
const maxReports = 4096

// AddReport adds a report to the series of its heap: of its source, its name, and of what is free or used.
func AddReport(list []HeapSeries, r HeapReport) []HeapSeries {
	i := slices.IndexFunc(list, func(s HeapSeries) bool {
		o := &s.Reports[0]
		return o.Source == r.Source && o.Name == r.Name && o.Foreign == r.Foreign && o.OnlyUsed() == r.OnlyUsed()
	})
	if i < 0 {
		if i = len(list); i >= maxSeries {
			return list
		}
		list = append(list, HeapSeries{Source: r.Source, Name: r.Name, every: 1})
	}
	list[i].add(r)
	return list
}

// SeriesOf returns the series of reports on one heap, of which the log has a total.
func SeriesOf(reports []HeapReport, total int) HeapSeries {
	s := HeapSeries{every: 1}
	for i := range reports {
		s.Source, s.Name = reports[i].Source, reports[i].Name
		s.add(reports[i])
	}
	s.Total = max(s.Total, total)
	return s
}

func (s *HeapSeries) add(r HeapReport) {
	s.Least = r.least(s.Least)
	s.Total++
	r.Number = s.Total
	if n := len(s.Reports); n > 0 && s.Reports[n-1].Number%s.every != 0 {
		s.Reports = s.Reports[:n-1]
	}
	if len(s.Reports) == maxReports {
		s.every *= 2
		s.Reports = slices.DeleteFunc(s.Reports, func(r HeapReport) bool { return r.Number%s.every != 0 })
	}
	s.Reports = append(s.Reports, r)
}

// withoutMisread returns s without the reports whose number is damaged, and how many these are. If they
// are more than one in twenty, the heap changes so.
func (s *HeapSeries) withoutMisread() (*HeapSeries, int) {
	list := s.Reports
	var whole []HeapReport
	for i := range list {
		if !misread(list, i) {
			whole = append(whole, list[i])
		}
	}
	n := len(list) - len(whole)
	if n == 0 || n > max(1, len(list)/20) {
		return s, 0
	}
	rest := &HeapSeries{Source: s.Source, Name: s.Name, Reports: whole, Total: s.Total, Least: s.Least, every: s.every}
	if s.Total == len(list) {
		rest.Least = profile.Amount{}
		for i := range whole {
			rest.Least = whole[i].least(rest.Least)
		}
	}
	return rest, n
}

// misread reports whether a number of list[i] is damaged: see [damaged].
func misread(list []HeapReport, i int) bool {
	before, after := i-1, i+1
	switch {
	case len(list) < 3:
		return false
	case i == 0:
		before = 2
	case after == len(list):
		after = i - 2
	}
	r, a, b := &list[i], &list[before], &list[after]
	if a.File != r.File || a.Boot != r.Boot || b.File != r.File || b.Boot != r.Boot {
		return false
	}
	return damaged(r.Free, a.Free, b.Free) || damaged(r.Largest, a.Largest, b.Largest) || damaged(r.Min, a.Min, b.Min) || damaged(r.Used, a.Used, b.Used)
}

// damaged reports whether a number is far from its neighbours, but would be near them with digits
// that were cut off, or without one that another line wrote into it.
func damaged(n, a, b profile.Amount) bool {
	v, low, high := n.Bytes, min(a.Bytes, b.Bytes), max(a.Bytes, b.Bytes)
	if !n.Known || !a.Known || !b.Known || max(v, high) > 1<<53 || v == 0 || v >= low/2 && v <= 2*high || high > 2*low { // the neighbours differ, too
		return false
	}
	apart := high - low + high/50
	low, high = low-min(low, apart), high+apart
	for from, to := 10*v, 10*v+9; from <= high; from, to = 10*from, 10*to+9 {
		if to >= low {
			return true
		}
	}
	for unit := uint64(1); unit <= v; unit *= 10 {
		if less := v/(10*unit)*unit + v%unit; less >= low && less <= high {
			return true
		}
	}
	return false
}

// heapSeries returns the series that the used dumps have.
func heapSeries(dumps []LeakDump) (list []HeapSeries) {
	for _, d := range dumps {
		if !d.Used {
			continue
		}
		for _, h := range d.Heaps {
			list = AddReport(list, HeapReport{Heap: h, File: d.File, Line: d.Line, Boot: d.Boot, Time: d.Time, Timed: d.Timed, Build: d.Build, Firmware: d.Firmware})
		}
	}
	return list
}
