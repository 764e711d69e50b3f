package main

import (
	"slices"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
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
	if h.reader == nil || !h.reader.Summary().Layout || h.Dump != "" || h.moment != nil {
		return nil, nil
	}
	if h.Live() || len(h.files) == 0 || slices.Contains(h.files, "-") {
		h.note("the page has no heap map: it needs logs that can be read again, expected files")
		return nil, nil
	}
	again := *h.session
	again.reader, again.stop, again.label = nil, nil, heaplog.ByPath
	defer again.close()
	if err := again.open(); err != nil {
		return nil, err
	}
	l := &layouts{}
	drawn := map[*moment]drawing{}
	l.each = func(x *moment, full *mapped) {
		n := min(len(full.regions), pageRanges)
		ranges := full.ranges(n, max(16, pageCells/max(1, n)/64*64))
		drawn[x] = drawing{report.Layout{LeastHole: full.least, Ranges: ranges, Sizes: full.sizes()}, full.pins()}
	}
	// The first pass has reported the damage.
	if err := l.read(again.reader, pageSteps, func(error) error { return nil }); err != nil {
		return nil, err
	}
	return l.page(drawn, h.view)
}

// drawing is the layout of a moment, with call paths that have no names yet.
type drawing struct {
	report.Layout
	pins []pin
}

// page returns the moments of a page, or nil if no moment has data.
func (m *layouts) page(drawn map[*moment]drawing, view profile.View) (*report.Map, error) {
	var dumps []*profile.Dump
	for _, x := range m.moments {
		if len(drawn[x].pins) > 0 {
			dumps = append(dumps, x.dump)
		}
	}
	var p *profile.Profile
	if dumps != nil {
		all, err := profile.New(dumps...)
		if err != nil {
			return nil, err
		}
		p = all.View(view)
	}
	out := &report.Map{Open: -1}
	out.About = map[string]string{"log": "The log has the addresses of the heap.", "blocks": "The addresses of the heap are inferred from the blocks."}[m.source()]
	for _, x := range m.moments {
		if !x.known && !x.dump.Heap.Known {
			continue
		}
		if x == m.of {
			out.Open = len(out.Moments)
		}
		y := report.MapMoment{Name: x.name(), Moment: x.sums(), Layout: drawn[x].Layout}
		y.Pins, y.Left = namedPins(p, drawn[x].pins, pagePins)
		out.Moments = append(out.Moments, y)
	}
	if len(out.Moments) == 0 {
		return nil, nil
	}
	if out.Open < 0 {
		out.Open = len(out.Moments) - 1
	}
	return out, nil
}
