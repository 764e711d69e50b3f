package main

import (
	"slices"

	"github.com/lwsbt/lwsbt/heaplog"
	heap "github.com/lwsbt/lwsbt/profile"
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
	if err := again.open(heaplog.NamesFirst()); err != nil {
		return nil, err
	}
	out := &report.Map{}
	l := &layouts{builder: heap.NewBuilder(h.maxPaths), steps: pageSteps}
	var pins [][]pin // by moment
	l.each = func(x *moment, full *mapped) {
		pins = append(slices.Grow(pins, x.number), make([][]pin, x.number-len(pins))...)
		pins[x.number-1] = full.pins()
		for len(out.Moments) < x.number {
			out.Moments = append(out.Moments, report.MapMoment{})
		}
		out.Moments[x.number-1] = pageMoment(full)
	}
	// The first pass has reported the damage.
	ignore := func(error) error { return nil }
	if err := l.read(again.reader, ignore); err != nil {
		return nil, err
	}
	if err := l.readEvents(again.reader, ignore); err != nil {
		return nil, nil // the events have no addresses
	}
	return l.page(out, pins, h.view)
}

// page completes the moments of a page. It returns nil if no moment has data.
func (m *layouts) page(out *report.Map, pins [][]pin, view heap.View) (*report.Map, error) {
	p, err := m.name(view, func(yield func(pin) bool) {
		for _, list := range pins {
			for _, x := range list {
				if !yield(x) {
					return
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	out.About = map[string]string{"log": "The log has the addresses of the heap.", "blocks": "The addresses of the heap are inferred from the blocks."}[m.source()]
	moments := out.Moments
	out.Moments = nil
	for i, x := range m.moments {
		if !x.known && !x.heap.Known {
			continue
		}
		y := report.MapMoment{}
		if x.known {
			y = moments[i]
		}
		y.Name, y.Boot, y.Seconds, y.Timed, y.Known, y.Allocator = x.name(), x.boot, x.time.Seconds(), x.timed, x.known, x.heap
		if i < len(pins) {
			y.Pins, y.MorePins = pagePinned(p, pins[i])
		}
		if x == m.of {
			out.Open = len(out.Moments)
		}
		out.Moments = append(out.Moments, y)
	}
	if len(out.Moments) == 0 {
		return nil, nil
	}
	if m.of == nil {
		out.Open = len(out.Moments) - 1
	}
	return thin(out), nil
}

// thin keeps report.MaxDumps moments of a map, evenly from the first to the last.
func thin(m *report.Map) *report.Map {
	n := len(m.Moments)
	if n <= report.MaxDumps {
		return m
	}
	var some []report.MapMoment
	for i := range report.MaxDumps {
		some = append(some, m.Moments[i*(n-1)/(report.MaxDumps-1)])
	}
	m.Open = m.Open * (report.MaxDumps - 1) / (n - 1)
	m.Moments = some
	return m
}

// pageMoment converts a map for the page, without the names of call paths.
func pageMoment(m *mapped) report.MapMoment {
	y := report.MapMoment{Size: m.size, Used: m.used, Blocks: m.count, Holes: len(m.holes), Free: m.free, Largest: m.largest,
		LeastHole: m.least, Outside: m.outside, Overlap: m.overlap}
	shown := m.regions[:min(len(m.regions), pageRanges)]
	for _, r := range shown {
		cells := m.cells(r, max(16, pageCells/len(shown)/64*64))
		out := report.MapRange{Start: r.Start, Length: r.Length}
		for _, part := range cells {
			percent := uint8(100*part + 0.5)
			if part > 0 {
				percent = max(1, percent)
			}
			out.Cells = append(out.Cells, percent)
		}
		y.Ranges = append(y.Ranges, out)
	}
	for i, x := range m.histogram() {
		if low := uint64(1) << i; x.holes+x.blocks > 0 {
			y.Sizes = append(y.Sizes, report.MapSizes{Min: low, Max: low + (low - 1), Holes: x.holes, HoleBytes: x.holeBytes, Blocks: x.blocks, BlockBytes: x.blockBytes})
		}
	}
	return y
}

// pagePinned returns the call paths that a page shows, and the number of omitted ones.
func pagePinned(p *heap.Profile, pins []pin) (list []report.MapPin, more int) {
	for _, x := range pins {
		sites, shown := p.Stack(x.path)
		switch {
		case !shown:
		case len(list) == pagePins:
			more++
		default:
			list = append(list, report.MapPin{Stack: sites, Kept: x.kept, Blocks: x.blocks, Bytes: x.bytes, Address: x.at})
		}
	}
	return list, more
}
