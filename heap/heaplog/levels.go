package heaplog

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// lineClock is that of the times of lines, in which days and years are counted on.
var lineClock = &profile.Clock{Wall: true}

// findHeaps finds what the lines of text so far have reported.
func (p *pass) findHeaps() {
	if p.levels == nil {
		return
	}
	heaps, refused := p.levels.Heaps()
	p.heaps, p.sampled = nil, p.levels.Samples
	dropped := 0
	for i := range heaps {
		p.heaps = append(p.heaps, p.seriesOf(&heaps[i]))
		dropped += heaps[i].Dropped
	}
	p.lost = p.levels.Losses()
	if dropped > 0 {
		p.lost = append(p.lost, printable.Count(int64(dropped), "number")+" not used: damaged, or negative and written unsigned")
	}
	slices.SortStableFunc(p.heaps, func(a, b growth.HeapSeries) int { // what is free first
		return cmp.Compare(rank(&a), rank(&b))
	})
	p.tally.Is, p.tally.Refusal = p.levels.Is(), ""
	if len(heaps) == 0 {
		if text := p.levels.Refusal(refused); text != forms.Nothing {
			p.tally.Refusal = text
		}
	}
}

// rank is 0 for a series that says what is free, and else 1.
func rank(s *growth.HeapSeries) int {
	if s.Reports[0].OnlyUsed() {
		return 1
	}
	return 0
}

// seriesOf returns the reports of a heap as a series.
func (p *pass) seriesOf(h *forms.Heap) growth.HeapSeries {
	list := make([]growth.HeapReport, len(h.Reports))
	for i := range h.Reports {
		from, r := &h.Reports[i], &list[i]
		r.Heap = profile.Heap{Source: h.Source, Name: strings.TrimSpace(h.Source + " " + h.Name), Size: amount(from.Size), Largest: amount(from.Largest), Min: amount(from.Least), Foreign: true}
		if h.Used {
			r.Used = amount(from.Used)
		} else {
			r.Free = amount(from.Free)
		}
		r.File, r.Line, r.Boot, r.At = p.c.inputs[min(from.File, len(p.c.inputs)-1)].Name, from.Line, from.Boot, from.At
		if at, ok := from.SinceBoot(); ok {
			r.Time, r.Timed = at, true
		}
		if at, ok := from.Date(); ok {
			r.Stamps = []profile.Stamp{{Clock: lineClock, At: at}}
		}
	}
	s := growth.SeriesOf(list, h.Total)
	s.Label = h.Words()
	return s
}

// amount returns a number of bytes, which is not known if it is negative.
func amount(v float64) profile.Amount {
	if v < 0 || v >= math.MaxInt64 {
		return profile.Amount{}
	}
	return profile.Amount{Bytes: uint64(math.Round(v)), Known: true}
}

// apart returns series of lines of text of which none has the name of one of own.
func apart(list, own []growth.HeapSeries) []growth.HeapSeries {
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		if !slices.ContainsFunc(own, func(o growth.HeapSeries) bool { return o.Name == s.Name }) {
			continue
		}
		s.Name = strings.TrimSpace(s.Name + " " + s.Label)
		s.Reports = slices.Clone(s.Reports)
		for k := range s.Reports {
			s.Reports[k].Name = s.Name
		}
	}
	return list
}

// firstBytes is the number of bytes in which FirstDate looks.
const firstBytes = 64 << 10

// FirstDate returns the first date and time that lines of a log begin with. ok is false if there is none
// in its first 64 KiB.
func FirstDate(path string) (at time.Time, ok bool) {
	in, err := input.File(path)
	if err != nil || in.Stream != nil {
		return at, false
	}
	src, err := in.Open(&input.Hooks{Ctx: context.Background(), Survey: true})
	if err != nil {
		return at, false
	}
	defer src.Close()
	text, _ := io.ReadAll(io.LimitReader(src, firstBytes))
	return forms.FirstDate(text)
}

// maxHeaps is the largest number of heaps of a dump. Of more, which only a damaged log or
// an attack has, the first count: each line takes time for all of them.
const maxHeaps = 256

// withHeap returns a list of heaps in which h has replaced the heap of its name, unless only h is Foreign.
// It does not change the elements of list.
func withHeap(list []profile.Heap, h profile.Heap) []profile.Heap {
	i := slices.IndexFunc(list, func(o profile.Heap) bool { return o.Name == h.Name && o.OnlyUsed() == h.OnlyUsed() })
	switch {
	case i < 0 && len(list) >= maxHeaps || i >= 0 && h.Foreign && !list[i].Foreign:
		return list
	case i < 0:
		return append(slices.Clone(list), h)
	}
	list = slices.Clone(list)
	list[i] = h
	return list
}
