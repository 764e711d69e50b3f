package heaplog

import (
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// events converts items to events, in order. An event whose call path is not known yet waits
// for the name, and those after it wait, too.
type events struct {
	builder *profile.Builder
	labels  *labels
	deliver func(*profile.Event, *placedEvent) bool

	last  time.Duration // of the latest ~e# record
	queue []placedEvent
}

// placedEvent is an event that may wait for the name of its call path.
type placedEvent struct {
	profile.Event
	recording.Place
	header *codec.Header // of its boot, nil if it has none
	in     *callPaths    // nil if Path is known
	name   uint32
}

// maxQueued is the number of events that wait for a name.
const maxQueued = 1 << 20

// take converts an item. (BT-VLINE-5)
func (e *events) take(it *Item, at *placed) bool {
	if it.Kind == recording.KindEvent {
		q := placedEvent{Place: it.Place, header: at.header}
		if !e.blob(it, at.boot, &q.Event) {
			return true
		}
		return e.push(&q)
	}
	var ev callpath.Event
	for it.EventLine.Next(&ev) {
		if ev.Kind == callpath.Lost {
			continue // counted by the tally
		}
		q := placedEvent{Event: profile.Event{Boot: at.boot, Time: microseconds(ev.Time), Thread: ev.Thread, Numbered: true, Bytes: ev.Size},
			Place: it.Place, header: at.header}
		switch ev.Kind {
		case callpath.Allocated:
			q.Kind, q.Addr = profile.Allocated, ev.Number
		case callpath.Freed:
			q.Kind, q.Addr = profile.Freed, ev.Old
		case callpath.Moved:
			q.Kind, q.Addr, q.Old = profile.Moved, ev.Number, ev.Old
		case callpath.FreedUnknown:
			q.Kind, q.Addr, q.Numbered = profile.Freed, ev.Address, false
		}
		if q.Kind != profile.Freed {
			q.in, q.name = at.callPaths, ev.Path
		}
		if !e.push(&q) {
			return false
		}
	}
	it.EventLine.Rewind()
	return true
}

// push delivers an event, or queues it.
func (e *events) push(q *placedEvent) bool {
	if len(e.queue) == 0 && e.resolve(q, false) {
		return e.deliver(&q.Event, q)
	}
	e.queue = append(e.queue, *q)
	if len(e.queue) > maxQueued {
		return e.flush(true)
	}
	return true
}

// flush delivers the events that wait for no name. With all, it delivers all.
func (e *events) flush(all bool) bool {
	n := 0
	for ; n < len(e.queue) && e.resolve(&e.queue[n], all); n++ {
		if q := &e.queue[n]; !e.deliver(&q.Event, q) {
			return false
		}
	}
	if e.queue = e.queue[n:]; len(e.queue) == 0 {
		e.queue = nil
	}
	return true
}

// resolve sets the path of an event, if its name is known or can no longer become known.
func (e *events) resolve(q *placedEvent, all bool) bool {
	if q.in == nil {
		return true
	}
	switch e.labels.by {
	case ByThread:
		q.Path = e.builder.Path([]symbol.Addr{e.labels.thread(q.Thread, true)})
	case BySize:
		q.Path = e.builder.Path([]symbol.Addr{e.labels.size(q.Bytes)})
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

// blob converts a ~e# record. An event without a time gets the time of the previous event. ok
// is false if the kind of the event is unknown. (BT-EVT-3)
func (e *events) blob(it *Item, boot int, ev *profile.Event) (ok bool) {
	u := it.User
	get := func(t codec.Tag) uint64 { v, _ := u.Get(t); return v }
	*ev = profile.Event{Boot: boot, Time: e.last, Thread: get(codec.TagThread), Addr: get(codec.TagAddress)}
	if us, timed := u.Get(codec.TagTime); timed {
		ev.Time = microseconds(us)
	}
	e.last = ev.Time
	switch get(codec.TagEvent) {
	case codec.EventAllocated:
		ev.Kind = profile.Allocated
	case codec.EventFreed:
		ev.Kind = profile.Freed
	case codec.EventMoved:
		ev.Kind, ev.Old = profile.Moved, get(codec.TagOldAddress)
	default:
		return false
	}
	if ev.Kind != profile.Freed {
		ev.Path, ev.Bytes = e.labels.pathOf(e.builder, it), it.Allocs[0].Bytes
	}
	return true
}

// eventConsumer yields events.
type eventConsumer struct {
	events
	yield func(*profile.Event, error) bool
}

func newEventConsumer(r *Reader, yield func(*profile.Event, error) bool) *eventConsumer {
	c := &eventConsumer{yield: yield}
	c.labels = &r.labels
	c.builder = profile.NewBuilder(r.maxPaths)
	c.deliver = func(e *profile.Event, _ *placedEvent) bool { return yield(e, nil) }
	return c
}

func (c *eventConsumer) item(it *Item, at *placed) bool {
	switch it.Kind {
	case recording.KindEvent, recording.KindPathEvents:
		return c.take(it, at)
	case recording.KindPaths, recording.KindHeader:
		return c.flush(false)
	}
	return true
}

func (c *eventConsumer) fail(err error) bool { return c.yield(nil, err) }

func (c *eventConsumer) end(e ending) bool { return c.flush(!e.damaged) }

func (c *eventConsumer) report() *report { return &report{} }
