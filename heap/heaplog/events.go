package heaplog

import (
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/symbol"
)

// events converts items to events, in order. An event whose call path is not known yet waits
// for the name, and those after it wait, too.
type events struct {
	builder *profile.Builder
	labels  *labels
	take    func(*placedEvent) // gets each event, which is valid during the call
	last    time.Duration      // of the latest ~e# record
	queue   []placedEvent      // that wait
	current placedEvent
	paths   []profile.Path          // of a line of events, by Index of its names; the zero Path if it is not known
	made    map[uint64]profile.Path // by thread or size, since the last header
}

// placedEvent is an event that may wait for the name of its call path.
type placedEvent struct {
	replay.Event
	recording.Place
	header *codec.Header // of its boot, nil if it has none
	in     *callPaths    // nil if Path is known
	name   uint32
}

// maxQueued is the number of events that wait for a name.
const maxQueued = 1 << 20

// add takes an item. Where names may have become known, it looks again. (BT-VLINE-5)
func (e *events) add(at *placed) {
	it := at.item
	switch it.Kind {
	case recording.KindHeader:
		e.labels.header(it.Header)
		clear(e.made)
		e.settle(false)
	case recording.KindPaths:
		e.settle(false)
	case recording.KindEvent:
		q := &e.current
		*q = placedEvent{Place: it.Place, header: at.header}
		if e.blob(at, &q.Event) {
			e.push(q)
		}
	case recording.KindPathEvents:
		e.line(at)
	}
}

// line takes a line of events.
func (e *events) line(at *placed) {
	it := at.item
	e.paths = e.paths[:0]
	q := &e.current
	for i := range it.EventLine.List {
		ev := &it.EventLine.List[i]
		if ev.Kind == callpath.Lost {
			continue // counted by the tally
		}
		*q = placedEvent{Event: replay.Event{Boot: at.boot, Time: microseconds(ev.Time), Thread: ev.Thread, Numbered: true, Bytes: ev.Size},
			Place: it.Place, header: at.header}
		switch ev.Kind {
		case callpath.Allocated:
			q.Kind, q.Addr = replay.Allocated, ev.Number
		case callpath.Freed:
			q.Kind, q.Addr = replay.Freed, ev.Old
		case callpath.Moved:
			q.Kind, q.Addr, q.Old = replay.Moved, ev.Number, ev.Old
		case callpath.FreedUnknown:
			q.Kind, q.Addr, q.Numbered = replay.Freed, ev.Address, false
		}
		if q.Kind == replay.Freed {
			e.push(q)
			continue
		}
		if ev.Index == len(e.paths) {
			e.paths = append(e.paths, profile.Path{})
		}
		if q.Path = e.paths[ev.Index]; q.Path == (profile.Path{}) {
			q.in, q.name = at.callPaths, ev.Path
		}
		e.push(q)
		if e.labels.by == ByPath {
			e.paths[ev.Index] = q.Path
		}
	}
}

// push takes an event, or has it wait.
func (e *events) push(q *placedEvent) {
	if len(e.queue) == 0 && e.resolve(q, false) {
		e.take(q)
	} else if e.queue = append(e.queue, *q); len(e.queue) > maxQueued {
		e.settle(true)
	}
}

// settle takes the events that wait for no name any more. With all, no event waits any longer.
func (e *events) settle(all bool) {
	waiting := e.queue
	for len(waiting) > 0 && e.resolve(&waiting[0], all) {
		e.take(&waiting[0])
		waiting = waiting[1:]
	}
	if len(waiting) == 0 {
		waiting = e.queue[:0]
	}
	e.queue = waiting
}

// resolve sets the path of an event, if its name is known or can no longer become known.
func (e *events) resolve(q *placedEvent, all bool) bool {
	if q.in == nil {
		return true
	}
	switch e.labels.by {
	case ByThread:
		q.Path = e.labelled(q.Thread, func() symbol.Addr { return e.labels.thread(q.Thread, true) })
	case BySize:
		q.Path = e.labelled(q.Bytes, func() symbol.Addr { return e.labels.size(q.Bytes) })
	case ByHeap:
		q.Path = e.builder.Path([]symbol.Addr{e.labels.frame("(heap not recorded)")})
	default:
		x, ok := q.in.path(e.builder, q.in.named(q.name), !all && !q.in.closed)
		if !ok {
			return false
		}
		if q.Path = x.Path; e.labels.by == ByThreadPath {
			q.Path = e.builder.Path(append(q.Path.Append(nil), e.labels.thread(q.Thread, true)))
		}
	}
	q.in = nil
	return true
}

// labelled returns the path of one frame, which make makes, for a thread or a size.
func (e *events) labelled(number uint64, make func() symbol.Addr) profile.Path {
	p, known := e.made[number]
	if !known {
		p = e.builder.Path([]symbol.Addr{make()})
		if e.made == nil || len(e.made) >= maxThreadNames {
			e.made = map[uint64]profile.Path{}
		}
		e.made[number] = p
	}
	return p
}

// blob converts a ~e# record. An event without a time gets the time of the previous event. ok
// is false if the kind of the event is unknown. (BT-EVT-3)
func (e *events) blob(at *placed, ev *replay.Event) (ok bool) {
	u := at.item.User
	get := func(t codec.Tag) uint64 { v, _ := u.Get(t); return v }
	*ev = replay.Event{Boot: at.boot, Time: e.last, Thread: get(codec.TagThread), Addr: get(codec.TagAddress)}
	if us, timed := u.Get(codec.TagTime); timed {
		ev.Time = microseconds(us)
	}
	e.last = ev.Time
	switch get(codec.TagEvent) {
	case codec.EventAllocated:
		ev.Kind = replay.Allocated
	case codec.EventFreed:
		ev.Kind = replay.Freed
	case codec.EventMoved:
		ev.Kind, ev.Old = replay.Moved, get(codec.TagOldAddress)
	default:
		return false
	}
	if ev.Kind != replay.Freed {
		ev.Path, ev.Bytes = e.labels.pathOf(e.builder, at), at.item.Allocs[0].Bytes
	}
	return true
}

// events makes a pass that yields events.
func (r *Reader) events(yield func(*placedEvent, error) bool) {
	stopped := false
	e := events{builder: profile.NewBuilder(r.maxPaths), labels: newLabels(r.label, r.frames)}
	e.take = func(q *placedEvent) { stopped = stopped || !yield(q, nil) }
	r.report = &report{}
	for at := range r.items {
		if at.item != nil {
			e.add(at)
		} else {
			e.settle(at.last)
		}
		if stopped || at.err != nil && !yield(nil, at.err) {
			return
		}
	}
}
