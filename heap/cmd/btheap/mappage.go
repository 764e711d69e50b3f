package main

import (
	"slices"

	"github.com/lwsbt/lwsbt/heap/internal/heapmap"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/report"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// Limits of the heap map of a page.
const (
	pageSteps  = 60   // moments of a recording with events
	pageCells  = 1024 // cells of a moment, over all ranges
	pageRanges = 16   // ranges of a moment
	pagePins   = 50   // call paths of a moment that keep holes apart
)

// heapMap returns the heap map of the page, which it reads from the log again. It returns nil
// if the log has no data for a map or cannot be read again.
func (h *html) heapMap() (*report.Map, error) {
	if !h.reader.Summary().Layout || h.Dump != "" || h.moment != nil {
		return nil, nil
	}
	if len(h.files) == 0 || slices.Contains(h.files, cli.Stdio) {
		h.note("the page has no heap map: it needs logs that can be read again, expected files")
		return nil, nil
	}
	again, err := h.Open(h.ctx, h.files, nil) // not grouped by h.label
	if err != nil {
		return nil, err
	}
	defer again.Close()
	var page mapOfPage
	// The first pass has reported the damage.
	if err := eachMoment(again, &heapmap.Mapper{}, pageSteps, func(error) error { return nil }, page.add); err != nil {
		return nil, err
	}
	return page.finish(h.view)
}

// mapOfPage gathers the moments of a page.
type mapOfPage struct {
	report.Map
	dumps []*profile.Dump // of all moments with pins
	about heapmap.Source  // of the last map
}

// add adds a moment, if it has data. Its pins have no names yet.
func (p *mapOfPage) add(x *moment, full *heapmap.Map) {
	if full == nil && x.sums.Allocator == nil {
		return
	}
	y := report.MapMoment{Name: x.name(), Moment: x.sums}
	if full != nil {
		n := min(len(full.Regions), pageRanges)
		y.Layout = full.Layout(n, max(16, pageCells/max(1, n)/64*64))
		if y.Pins = full.Pins(); len(y.Pins) > 0 {
			p.dumps = append(p.dumps, x.dump)
		}
		if full.Count > 0 || p.about == "" {
			p.Open, p.about = len(p.Moments), full.Source
		}
	}
	p.Moments = append(p.Moments, y)
}

// finish names the pins. It returns nil if no moment has data.
func (p *mapOfPage) finish(view profile.View) (*report.Map, error) {
	if len(p.Moments) == 0 {
		return nil, nil
	}
	if p.about == "" {
		p.Open = len(p.Moments) - 1
	}
	p.About = map[heapmap.Source]string{heapmap.Log: "The log has the addresses of the heap.", heapmap.Blocks: "The addresses of the heap are inferred from the blocks."}[p.about]
	if p.dumps == nil {
		return &p.Map, nil
	}
	all, err := newView(view, p.dumps...)
	if err != nil {
		return nil, err
	}
	for i := range p.Moments {
		m := &p.Moments[i]
		m.Pins, m.Left = heapmap.Name(m.Pins, all, pagePins)
	}
	return &p.Map, nil
}
