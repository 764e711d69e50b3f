package profile

import (
	"slices"
	"time"
)

// HeapReport is a report of an allocator in a log.
type HeapReport struct {
	Heap
	File   string
	Line   int64
	Boot   int           // from 1
	Number int           // of the report in its series, from 1
	Time   time.Duration // since the boot, if Timed
	Timed  bool
	Stamps []Stamp // times of its line, or of those above it, if not Timed

	Build, Firmware string // of the boot, "" if not known
}

// Uptime returns the time since the boot: Time, or that of a clock in the lines of the log that begins with
// the boot. ok is false if it is not known.
func (r *HeapReport) Uptime() (at time.Duration, ok bool) {
	if r.Timed {
		return r.Time, true
	}
	if i := slices.IndexFunc(r.Stamps, func(s Stamp) bool { return !s.Wall }); i >= 0 {
		return r.Stamps[i].At, true
	}
	return 0, false
}

// HeapSeries has the reports on one heap, in the order of the log.
type HeapSeries struct {
	Name    string
	Reports []HeapReport // if there are many, some of them at even distances, and the last
	Total   int          // number of reports
	Least   Amount       // the least that was free or that a report calls the least

	every int // Reports has each report whose number is a multiple of this
}

// maxReports is the largest number of reports that a series keeps.
const maxReports = 4096

// AddReport adds a report to the series of its heap.
func AddReport(list []HeapSeries, r HeapReport) []HeapSeries {
	i := slices.IndexFunc(list, func(s HeapSeries) bool { return s.Name == r.Name })
	if i < 0 {
		i = len(list)
		list = append(list, HeapSeries{Name: r.Name, every: 1})
	}
	list[i].add(r)
	return list
}

func (s *HeapSeries) add(r HeapReport) {
	for _, a := range []Amount{r.Free, r.Min} {
		if a.Known && (!s.Least.Known || a.Bytes < s.Least.Bytes) {
			s.Least = a
		}
	}
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
