package main

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
	heap "github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
)

// layouts reads the positions of blocks and holes in the heap at each moment.
type layouts struct {
	builder *heap.Builder
	flag    bool // declared comes from --space
	pick    int  // number of the moment to report on, 0 for the last with a block
	steps   int  // moments of a recording with events

	// each, if not nil, is called with the whole map of each moment. Other than the shown
	// map, only sums are kept.
	each func(*moment, *mapped)

	declared regions // heap= of the boot, or --space
	inferred regions // of the blocks of the boot so far
	heap     heap.Heap
	now      *moment // the open dump
	gap      uint64  // smallest gap between two blocks in this boot
	events   int64   // events in the log
	moments  []*moment
	shown    *mapped // of the moment to report on
	of       *moment
}

// moment is a dump, or the live blocks at a moment of a recording with events.
type moment struct {
	number int // from 1
	boot   int
	time   time.Duration
	timed  bool
	live   bool // it is not a dump
	diff   bool // the log has only the changes
	blocks []placed
	heap   heap.Heap
	known  bool         // the blocks have addresses
	space  report.Space // if known
}

// name returns the name of a moment.
func (x *moment) name() string {
	switch {
	case x.live:
		return "live at " + seconds(x.time.Seconds()) + " s"
	case x.timed:
		return fmt.Sprintf("dump %d, %s", x.number, duration(x.time.Hours()))
	}
	return fmt.Sprintf("dump %d", x.number)
}

// sums returns the sums of a moment.
func (x *moment) sums() report.Moment {
	out := report.Moment{Number: x.number, Boot: x.boot, Allocator: report.NewAllocator(x.heap)}
	if x.timed {
		t := x.time.Seconds()
		out.Time = &t
	}
	if x.known {
		out.Blocks = &x.space
	}
	return out
}

// read reads the blocks of all dumps or, if no dump has addresses, the events. fail is called
// with the errors of a pass, and returns the errors that end the pass.
func (m *layouts) read(r *heaplog.Reader, fail func(error) error) error {
	m.gap = math.MaxUint64
	for it, err := range r.Items() {
		if err != nil {
			if err := fail(err); err != nil {
				return err
			}
			continue
		}
		switch it.Kind {
		case heaplog.Mark:
			m.mark(it)
		case heaplog.Event:
			m.events++
		case heaplog.PathEvents:
			m.events += int64(len(it.Events))
		default:
			for b := range blocksOf(it, m.builder) {
				x := m.dump(it)
				x.known = true
				x.blocks = append(x.blocks, b)
			}
		}
	}
	m.end()
	return nil
}

// readEvents adds moments of the events at even distances, if there are events and no dump has
// addresses. The last moment is after the last event.
func (m *layouts) readEvents(r *heaplog.Reader, fail func(error) error) error {
	if m.events == 0 || slices.ContainsFunc(m.moments, func(x *moment) bool { return x.known }) {
		return nil
	}
	live := map[uint64]placed{}
	boot, at, n, step := 0, time.Duration(0), int64(0), (m.events+int64(m.steps)-1)/int64(m.steps)
	take := func() {
		x := &moment{number: len(m.moments) + 1, boot: boot, time: at, timed: true, live: true, known: true}
		for _, b := range live {
			x.blocks = append(x.blocks, b)
		}
		m.add(x)
	}
	for e, err := range r.Events() {
		if err != nil {
			if err := fail(err); err != nil {
				return fmt.Errorf("%w (the events are read twice)", err)
			}
			continue
		}
		if e.Numbered {
			return cli.Usagef("the events have no addresses, expected dumps or events with addresses")
		}
		if e.Boot != boot {
			if n%step > 0 {
				take()
			}
			boot, n = e.Boot, 0
			clear(live)
		}
		at = e.Time
		switch e.Kind {
		case heap.Freed:
			delete(live, e.Addr)
		case heap.Moved:
			delete(live, e.Old)
			fallthrough
		case heap.Allocated:
			live[e.Addr] = placed{e.Addr, e.Bytes, copyPath(m.builder, e.Path)}
		}
		if n++; n%step == 0 {
			take()
		}
	}
	if n%step > 0 {
		take()
	}
	return nil
}

// copyPath copies a path of another Builder to b.
func copyPath(b *heap.Builder, p heap.Path) heap.Path { return b.Path(p.Append(nil)) }

// mark processes a header line.
func (m *layouts) mark(it *heaplog.Item) {
	switch h := it.Header; h.Verb {
	case codec.VerbBoot:
		m.end()
		m.inferred, m.heap, m.gap = nil, heap.Heap{}, math.MaxUint64
		if !m.flag {
			m.declared = nil
			text, _ := h.Get("heap")
			if ranges, ok := codec.ParseRanges(text); ok {
				m.declared = declared(ranges)
			}
		}
	case codec.VerbBegin:
		x := m.dump(it)
		if us, ok := h.Uint("t"); ok && us < 1<<53 {
			x.time, x.timed = time.Duration(us)*time.Microsecond, true
		}
		kind, _ := h.Get("k")
		x.diff = kind == "diff"
	case codec.VerbEnd:
		m.end()
	case codec.VerbHeap:
		m.heap = *it.Heap
		if m.now == nil && len(m.moments) > 0 {
			if x := m.moments[len(m.moments)-1]; x.boot == it.Boot && !x.heap.Known {
				x.heap = m.heap
			}
		}
	}
}

// dump returns the dump of an item, which ends the dump before.
func (m *layouts) dump(it *heaplog.Item) *moment {
	if m.now == nil || m.now.number != it.Dump {
		m.end()
		m.now = &moment{number: it.Dump, boot: it.Boot}
	}
	return m.now
}

// end ends the open dump. It keeps only the sums of dumps that are not reported.
func (m *layouts) end() {
	x := m.now
	if m.now = nil; x == nil {
		return
	}
	x.heap = m.heap
	m.heap = heap.Heap{}
	m.add(x)
}

// add adds a moment with its blocks.
func (m *layouts) add(x *moment) {
	m.moments = append(m.moments, x)
	if x.diff || !x.known {
		x.known = false
		return
	}
	space := m.declared
	if space == nil {
		m.inferred = m.inferred.grow(x.blocks)
		space = slices.Clone(m.inferred)
	}
	sortBlocks(x.blocks)
	m.gap = smallestGap(m.gap, x.blocks)
	full := mapBlocks(space, x.blocks, leastHole(m.gap))
	x.space, x.blocks = full.Space, nil
	if m.pick == 0 && (full.Count > 0 || m.shown == nil) || m.pick == x.number {
		m.shown, m.of = full, x
	}
	if m.each != nil {
		m.each(x, full)
	}
}

// name returns a profile that names the call paths of pins.
func (m *layouts) name(view heap.View, pins iter.Seq[pin]) (*heap.Profile, error) {
	for p := range pins {
		m.builder.Add(p.path, heap.Value{Bytes: p.bytes, Count: uint64(p.blocks)})
	}
	p, err := heap.New(m.builder.End(heap.DumpInfo{}))
	if err != nil {
		return nil, err
	}
	return p.View(view), nil
}
