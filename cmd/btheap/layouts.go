package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/leaktext"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
)

// layouts finds the positions of blocks and holes in the heap at each moment.
type layouts struct {
	declared regions // --space, nil if it is not given
	pick     int     // number of the moment to report on, 0 for the last with a block

	// each, if not nil, is called with the whole map of each moment. Other than the shown
	// map, only sums are kept.
	each func(*moment, *mapped)

	inferred regions // of the blocks of the boot so far
	gap      uint64  // smallest gap between two blocks in this boot
	moments  []*moment
	shown    *mapped // of the moment to report on
	of       *moment
}

// moment is a dump, or the live blocks at a moment of a recording with events.
type moment struct {
	dump  *profile.Dump
	live  bool         // it is not a dump of the log
	known bool         // the blocks have addresses
	said  bool         // the log says where the heap is
	space report.Space // if known
}

// number returns the number of a moment, from 1.
func (x *moment) number() int { return x.dump.Index + 1 }

// name returns the name of a moment.
func (x *moment) name() string {
	switch {
	case x.live:
		return x.dump.Name
	case x.dump.Timed:
		return fmt.Sprintf("dump %d, %s", x.number(), leaktext.Duration(x.dump.Time.Hours()))
	}
	return fmt.Sprintf("dump %d", x.number())
}

// sums returns the sums of a moment.
func (x *moment) sums() report.Moment {
	out := report.Moment{Number: x.number(), Boot: x.dump.Boot, Allocator: report.NewAllocator(x.dump.Heap)}
	if x.dump.Timed {
		t := x.dump.Time.Seconds()
		out.Time = &t
	}
	if x.known {
		out.Blocks = &x.space
	}
	return out
}

// read reads the blocks of all dumps. If no dump has addresses, it reads n moments of the events
// instead, if there are any. fail is called with the errors of a pass, and returns the errors that
// end the pass.
func (m *layouts) read(r *heaplog.Reader, n int, fail func(error) error) error {
	for d, err := range r.DumpBlocks() {
		switch {
		case err == nil && d.Line == 0 && r.Replay() != nil: // what is live after the last event
		case err == nil:
			m.add(d, false)
		default:
			if err := fail(err); err != nil {
				return err
			}
		}
	}
	if r.Replay() == nil || slices.ContainsFunc(m.moments, func(x *moment) bool { return x.known }) {
		return nil
	}
	at := len(m.moments)
	for d, err := range r.Moments(n) {
		if err != nil {
			if err := fail(err); err != nil {
				return fmt.Errorf("%w (the events are read twice)", err)
			}
			continue
		}
		d.Index += at
		m.add(d, true)
	}
	return nil
}

// add adds a moment with its blocks.
func (m *layouts) add(d heaplog.DumpBlocks, live bool) {
	x := &moment{dump: d.Dump, live: live}
	if n := len(m.moments); n == 0 || m.moments[n-1].dump.Boot != d.Boot {
		m.inferred, m.gap = nil, math.MaxUint64
	}
	m.moments = append(m.moments, x)
	blocks := slices.Collect(d.Blocks)
	if x.known = len(blocks) > 0 && !d.Diff; !x.known {
		return
	}
	space := m.declared
	if space == nil && d.Space != nil {
		space, x.said = declared(d.Space), true
	}
	if space == nil {
		m.inferred = m.inferred.grow(blocks)
		space = slices.Clone(m.inferred)
	}
	sortBlocks(blocks)
	m.gap = smallestGap(m.gap, blocks)
	full := mapBlocks(space, blocks, leastHole(m.gap))
	x.space = full.Space
	if m.pick == 0 && (full.Count > 0 || m.shown == nil) || m.pick == x.number() {
		m.shown, m.of = full, x
	}
	if m.each != nil {
		m.each(x, full)
	}
}

// source returns the source of the heap's ranges at the shown moment: flag, log or blocks.
func (m *layouts) source() string {
	switch {
	case m.declared != nil:
		return "flag"
	case m.of != nil && m.of.said:
		return "log"
	}
	return "blocks"
}
