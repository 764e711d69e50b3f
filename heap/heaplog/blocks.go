package heaplog

import (
	"fmt"
	"iter"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/codec/recording/reconcile"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// DumpBlocks is a dump with the blocks that have addresses in the log. Blocks is valid until
// the next DumpBlocks is yielded. With an error, Dump is nil.
type DumpBlocks struct {
	*profile.Dump
	// Blocks yields the blocks in the order of the log. For a dump that Moments yields, the
	// order is undefined. For a differential dump, it yields only the blocks in the log, which
	// are those of call paths that changed.
	Blocks iter.Seq[replay.Block]
	// Space is the address ranges of the heap, as the ~h#boot line has them (BT-HEAD-2); nil if
	// it does not.
	Space []codec.Range
	// Holes is the free blocks that the allocator lists in the dump, or between the dump before and
	// this one, in ~h#free lines (BT-HEAD-2); nil if it lists none.
	Holes []codec.Range
}

// DumpBlocks yields the same dumps as [Reader.Dumps], each with its blocks.
func (r *Reader) DumpBlocks() iter.Seq2[DumpBlocks, error] {
	return exclusive(r, func(yield func(DumpBlocks, error) bool) {
		r.dumps(func(d *yielded) bool { return d.report != nil || yield(d.DumpBlocks, d.err) }, true, false)
	})
}

// Moments yields n moments of a recording of events, at equal intervals of time. Each moment is
// a dump of the blocks that are live at that time. The last moment of each boot is after the last
// event of the boot. If no finished pass of Dumps has read the events, Moments first reads the
// logs to find out how long the recording is. If n is less than 1, it yields an error.
func (r *Reader) Moments(n int) iter.Seq2[DumpBlocks, error] {
	return exclusive(r, func(yield func(DumpBlocks, error) bool) {
		if n < 1 {
			yield(DumpBlocks{}, fmt.Errorf("%d moments, expected 1 or more", n))
			return
		}
		var took time.Duration
		if whole := r.Replay(); whole != nil && r.replayed {
			took = whole.Totals().Last - whole.Totals().First
		} else {
			took = r.duration()
		}
		m := moments{step: max(1, (took+time.Duration(n)-1)/time.Duration(n)), replay: replay.NewReplay(), yield: yield}
		r.events(func(e *placedEvent, err error) bool {
			if err == nil {
				return m.event(e)
			}
			m.stopped = !yield(DumpBlocks{}, err)
			return !m.stopped
		})
		if !m.stopped && m.boot > 0 {
			m.take(m.last)
		}
	})
}

// duration makes a pass, and returns the time from the first event to the latest. Errors are those
// of the pass that yields.
func (r *Reader) duration() time.Duration {
	var first, last, before uint64 // microseconds
	some := false
	see := func(us uint64) {
		if !some {
			some, first, last = true, us, us
		}
		last = max(last, us)
	}
	r.report = &report{}
	for at := range r.items {
		switch it := at.item; {
		case it == nil:
		case it.Kind == recording.KindEvent:
			if us, timed := it.User.Get(codec.TagTime); timed {
				before = us
			}
			see(before) // one without a time has that of the event before
		case it.Kind == recording.KindPathEvents:
			for i := range it.EventLine.List {
				see(it.EventLine.List[i].Time)
			}
		}
	}
	return microseconds(last) - microseconds(first)
}

// moments yields the live blocks at each step.
type moments struct {
	step    time.Duration
	replay  *replay.Replay
	yield   func(DumpBlocks, error) bool
	boot    int           // of the event before
	last    time.Duration // of the event before
	next    time.Duration // of the next moment
	n       int           // of moments so far
	space   []codec.Range // of the heap, in this boot
	stopped bool
}

// event takes an event. It returns false if the caller wants no more moments.
func (m *moments) event(e *placedEvent) bool {
	if e.Boot != m.boot {
		if m.boot > 0 && !m.take(m.last) {
			return false
		}
		m.boot, m.next, m.space = e.Boot, e.Time+m.step, reconcile.Ranges(e.header, "heap")
	}
	for ; e.Time > m.next; m.next += m.step {
		if !m.take(m.next) {
			return false
		}
	}
	m.replay.Add(e.Event)
	m.last = e.Time
	return true
}

// take yields what is live now, as the moment at.
func (m *moments) take(at time.Duration) bool {
	d := *m.replay.End()
	d.Name = fmt.Sprintf("live at %.3f s", at.Seconds())
	d.Index, d.Number, d.Boot, d.Time = m.n, int64(m.n+1), m.boot, at
	m.n++
	m.stopped = !m.yield(DumpBlocks{Dump: &d, Blocks: m.replay.Blocks(), Space: m.space}, nil)
	return !m.stopped
}

// blockOf returns the block of a record, if the record has its address.
func blockOf(it *Item, path profile.Path) (b replay.Block, ok bool) {
	if it.User == nil {
		return b, false
	}
	b.Addr, ok = it.User.Get(codec.TagAddress)
	b.Path, b.Bytes = path, it.Allocs[0].Bytes
	return b, ok
}
