package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// lookedBack is the number of dumps, and of reports on each heap, that live looks at.
const lookedBack = 240

// recent holds the last dumps of a log, and the last reports of allocators.
type recent struct {
	keep    int                  // the number of dumps, and of reports on each heap
	dumps   []*profile.Dump      // dumps that have ended
	open    *profile.Dump        // the dump that has not ended, or nil
	reports []*growth.HeapReport // of ~h#heap
	lines   []growth.HeapSeries  // that lines of text have reported
	count   int                  // number of reports so far
	last    *growth.HeapReport   // the last report, if it came after the last dump and is in none; or nil
}

// add adds a dump or a report, and keeps the last dumps, and the last reports on each heap. It reports whether
// there is something new to say: a dump that has ended, or a report that is in none.
func (r *recent) add(u heaplog.Update) bool {
	if u.Report != nil {
		return r.addReport(u)
	}
	d := u.Dump
	if !d.Ended {
		r.open = d
		return false
	}
	r.open, r.last = nil, nil
	if n := len(r.dumps); n > 0 && r.dumps[n-1].Index == d.Index {
		r.dumps[n-1] = d
		return false
	}
	r.dumps = append(r.dumps, d)
	if n := len(r.dumps) - r.keep; n > 0 {
		r.dumps = slices.Delete(r.dumps, 0, n)
	}
	return true
}

func (r *recent) addReport(u heaplog.Update) bool {
	r.count++
	if u.Heaps != nil {
		r.lines, r.last = u.Heaps, u.Report
		return true
	}
	same := func(o *growth.HeapReport) bool { return o.Name == u.Report.Name && o.Foreign == u.Report.Foreign }
	n := 0
	for _, o := range r.reports {
		if same(o) {
			n++
		}
	}
	if n == r.keep {
		i := slices.IndexFunc(r.reports, same)
		r.reports = slices.Delete(r.reports, i, i+1)
	}
	r.reports = append(r.reports, u.Report)
	if !u.InDump {
		r.last = u.Report
	}
	return !u.InDump
}

// clone returns a copy that later calls of add do not change.
func (r *recent) clone() recent {
	c := *r
	c.dumps, c.reports = slices.Clone(r.dumps), slices.Clone(r.reports)
	return c
}

// heaps returns a series for each heap.
func (r *recent) heaps() []growth.HeapSeries {
	var list []growth.HeapSeries
	for _, h := range r.reports {
		list = growth.AddReport(list, *h)
	}
	for i := range r.lines {
		all := r.lines[i].Reports
		if r.last != nil && r.last.At > 0 { // the lines were read further
			n, _ := slices.BinarySearchFunc(all, r.last.At+1, func(o growth.HeapReport, at int64) int { return cmp.Compare(o.At, at) })
			all = all[:n]
		}
		if len(all) > 0 {
			list = append(list, growth.SeriesOf(all[max(0, len(all)-r.keep):], 0))
		}
	}
	return list
}

// report describes the last report, and the trend of its heap.
func (st *state) report() string {
	r := st.last
	s := fmt.Sprintf("report %s", cli.Number(st.count))
	if r.Boot > 1 {
		s += fmt.Sprintf(", boot %d", r.Boot)
	}
	if at, ok := r.Uptime(); ok {
		s += ", " + printable.Duration(at.Hours())
	}
	s += ": " + leaktext.Free(&r.Heap)
	i := slices.IndexFunc(st.found.Heaps, func(t growth.HeapTrend) bool {
		return t.Name == r.Name && t.Last.Foreign == r.Foreign
	})
	if i < 0 {
		return s
	}
	return s + "; " + strings.Join(leaktext.Trend(&st.found.Heaps[i]), "; ")
}
