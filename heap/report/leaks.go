package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// maxLeaks is the largest number of leaks on a page, each of which has all its frames, and maxPictures that of
// those with a picture.
const (
	maxLeaks    = 500
	maxPictures = 20
)

// NewLeaks returns leaks for [Options]: what leaks, then up to three call paths of which that is not known, and
// up to three whose growth ended.
func NewLeaks(found *growth.Leaks) *Leaks {
	l := &Leaks{Heaps: heapsOf(found)}
	if found.Used > 0 {
		l.Summary = []string{leaktext.Headline(found) + " in " + leaktext.Examined(found)}
	} else {
		l.Summary = []string{leaktext.HeapHeadline(found)}
	}
	for _, text := range append([]string{leaktext.Exhaustion(found)}, leaktext.Basis(found)...) {
		if text != "" {
			l.Summary = append(l.Summary, text)
		}
	}
	leaks, unknown, ended := leaktext.Listed(found)
	if left := len(leaks) - maxLeaks; left > 0 {
		l.Summary = append(l.Summary, fmt.Sprintf("The list has the %d most likely leaks; %d more are left out.", maxLeaks, left))
		leaks = leaks[:maxLeaks]
	}
	for _, r := range slices.Concat(leaks, unknown, ended) {
		l.Rows = append(l.Rows, rowOf(found, r, len(l.Rows) < maxPictures))
	}
	return l
}

// rowOf returns a row, with a picture if draw is set.
func rowOf(found *growth.Leaks, r *growth.Leak, draw bool) Leak {
	row := Leak{Verdict: leaktext.Short(&r.Judgement), Sure: r.Sure(), Stack: r.Stack(), Rate: leaktext.RateOf(found, r), Grows: r.Rate > 0, First: r.First, Last: r.Last}
	row.Text = strings.Join(leaktext.Notes(found, r), "; ")
	for i, v := range r.Points() {
		if found.Dumps[i].Used {
			row.Points = append(row.Points, v.Bytes)
		}
	}
	if draw {
		row.Picture = Draw(Drawing{Series: r.Series(), Judgement: &r.Judgement, Time: timeIn(found.Per)})
	}
	for _, p := range r.Parts {
		var names []string
		for _, s := range p.Stack()[:max(1, len(p.Stack())-len(r.Stack()))] {
			names = append(names, s.String())
		}
		row.Parts = append(row.Parts, []string{strings.Join(names, " ← "), leaktext.RateOf(found, p)})
	}
	return row
}

// timeIn returns how a time in a unit is written.
func timeIn(per growth.Unit) func(float64) string {
	if per == growth.PerHour {
		return printable.Duration
	}
	return func(v float64) string { return printable.Count(uint64(v), string(per)) }
}

// heapsOf returns what the allocator reported.
func heapsOf(found *growth.Leaks) (list []Heap) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		one := *found
		one.Heaps = found.Heaps[i : i+1]
		lines := leaktext.Heaps(&one, 0)
		full := 0.0
		if values, _ := t.Values(); t.Last.Free.Known && len(values) > 0 {
			full = values[len(values)-1] + float64(t.Last.Free.Bytes)
		}
		h := Heap{Name: leaktext.HeapName(t), Verdict: leaktext.Short(&t.Judgement), Sure: t.Sure(), Picture: Draw(Drawing{t.Series(), &t.Judgement, full, t.LargestBlocks(), timeIn(t.Per)})}
		for _, s := range lines {
			h.Lines = append(h.Lines, strings.TrimSpace(s))
		}
		list = append(list, h)
	}
	return list
}
