package heaplog

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
)

// assembler adds the records of each dump together and yields the dumps.
type assembler struct {
	r       *Reader
	yield   func(*profile.Dump, error) bool
	builder *profile.Builder

	current  *dumpStart // nil before the first dump
	number   int        // number of the current dump, from 1
	loss     profile.Loss
	held     []held
	yielded  int
	skip     int           // dumps that an earlier pass has yielded
	last     *profile.Dump // the latest dump, until it is known whether it is the last one
	lastFrom *dumpStart

	events events
	replay *profile.Replay
}

// held is a pending record: the dump that it belongs to is not known yet.
type held struct {
	path profile.Path
	profile.Value
	loss profile.Loss
}

func newAssembler(r *Reader, yield func(*profile.Dump, error) bool) *assembler {
	a := &assembler{r: r, yield: yield, builder: profile.NewBuilder(r.maxPaths)}
	a.events.builder = a.builder
	if at := r.moment; at != nil && *at >= 0 {
		a.replay = profile.NewReplay(time.Duration(*at))
	} else {
		a.replay = profile.NewReplay()
	}
	return a
}

func (a *assembler) fail(err error) bool { return a.yield(nil, err) }

func (a *assembler) item(p *pass, it *Item, b boundary) bool {
	switch it.Kind {
	case Text:
		return true
	case Mark:
		return a.mark(p, it)
	case Idle:
		return a.idle(p)
	case Event:
		if a.events.take(p, it) && !a.replay.Add(a.events.event) {
			p.tally.badFree(it.Place)
		}
		return true
	case Unreadable:
		a.loss.Unreadable++
		return true
	}
	if a.r.moment != nil {
		return true
	}
	h := held{path: pathOf(a.builder, it.decoded), Value: it.Allocs[0].Value}
	if it.Cut != nil {
		h.loss.Cut = 1
		if !it.Cut.Sized {
			h.loss.NoSize, h.Bytes = 1, 0
		}
	}
	switch b {
	case pending:
		a.held = append(a.held, h)
		return true
	case newDump:
		if !a.begin(p) {
			return false
		}
	}
	if len(a.held) > 0 {
		a.release()
	}
	a.add(&h)
	return true
}

// pathOf returns the call path of a record.
func pathOf(b *profile.Builder, d *decoded) profile.Path {
	if !d.hasPath {
		d.path, d.hasPath = b.Path(d.allocs[0].Stack), true
	}
	return d.path
}

// release adds the pending records to the current dump.
func (a *assembler) release() {
	for i := range a.held {
		a.add(&a.held[i])
	}
	a.held = a.held[:0]
}

func (a *assembler) add(h *held) {
	a.loss.Cut += h.loss.Cut
	a.loss.NoSize += h.loss.NoSize
	if a.r.from > 0 && !a.r.selectsDump(a.number, math.MaxInt) {
		return
	}
	a.builder.Add(h.path, h.Value)
}

// mark begins a dump at its mark, because the dump may have no records.
func (a *assembler) mark(p *pass, it *Item) bool {
	if it.Header.Verb != codec.VerbBegin || a.r.moment != nil {
		return true
	}
	a.release()
	return a.begin(p)
}

// begin ends the current dump and begins the newest dump of the sequence.
func (a *assembler) begin(p *pass) bool {
	if !a.finish(p) {
		return false
	}
	q := p.sequence
	a.current, a.number = q.dumps[len(q.dumps)-1], q.count
	q.dumps = q.dumps[len(q.dumps)-1:]
	return true
}

// facts returns the properties of the current dump.
func (a *assembler) facts() profile.Dump {
	d := a.current
	return profile.Dump{Name: fmt.Sprintf("dump %d", a.number), File: d.File, Line: d.Line, Index: a.yielded, Boot: d.boot,
		Number: d.number, Time: d.time, Timed: d.timed, Why: d.why, Announced: d.announced, Loss: a.loss}
}

// finish ends the current dump, if any, and yields it if it is selected.
func (a *assembler) finish(p *pass) bool {
	if a.current == nil {
		return true
	}
	facts := a.facts()
	from := a.current
	unread := p.damaged && from.log == p.log // the rest of its log cannot be read
	facts.Cut = !from.ended && (from.marked || unread)
	if p.sequence.count == 1 && p.log == len(a.r.inputs)-1 {
		facts.Name = facts.File
	}
	a.current, a.loss = nil, profile.Loss{}
	d := a.builder.End(facts)
	switch {
	case a.r.selected && a.r.from < 0:
		a.last, a.lastFrom = d, from
		return true
	case !a.r.selectsDump(a.number, math.MaxInt), a.r.resplits(p.sequence):
		return true
	}
	a.yielded++
	p.tally.dump(d, from)
	return a.yielded <= a.skip || a.yield(d, nil)
}

// idle yields the unfinished dump before the pass waits.
func (a *assembler) idle(p *pass) bool {
	d, last := a.current, a.r.selected && a.r.from < 0
	switch {
	case d == nil, !last && !a.r.selectsDump(a.number, math.MaxInt):
		return true
	case d.ended && !last:
		return a.finish(p)
	case a.r.refresh == 0:
		return true
	}
	return a.yield(a.builder.Dump(a.facts()), nil)
}

// end yields the last dump at the end of the input, or where reading failed.
func (a *assembler) end(p *pass) bool {
	if p.log == len(a.r.inputs)-1 && !p.damaged {
		p.sequence.endBoot()
		if a.r.resplits(p.sequence) {
			return false // Dumps begins another pass
		}
	}
	if a.r.moment == nil {
		a.release()
		if !a.finish(p) {
			return false
		}
	}
	if p.damaged {
		return true
	}
	p.tally.undecided = p.sequence.undecided()
	if a.last != nil {
		p.tally.dump(a.last, a.lastFrom)
		if a.last.Index = 0; !a.yield(a.last, nil) {
			return false
		}
	}
	seen := a.replay.Totals().Events > 0
	switch {
	case a.r.moment != nil && !seen && p.tally.readable > 0:
		return a.fail(errors.New("--at: the log has no events (~e# lines)"))
	case a.r.moment != nil && seen, seen && p.sequence.count == 0:
		return a.yield(a.atMoment(), nil)
	case a.r.selected && a.r.from > p.sequence.count && p.sequence.count > 0:
		return a.fail(fmt.Errorf("--dump %d: the log has %d", a.r.from, p.sequence.count))
	}
	return true
}

// atMoment returns the allocations that were live at the selected moment.
func (a *assembler) atMoment() *profile.Dump {
	switch at := a.r.moment; {
	case at == nil || *at == End:
		return a.replay.End()
	case *at == Peak:
		return a.replay.Peak()
	}
	return a.replay.At(0)
}

// events converts items to events.
type events struct {
	builder *profile.Builder
	event   profile.Event
}

// take converts an item to an event. An event without a time gets the time of the previous
// event. ok is false if the kind of the event is unknown. (BT-EVT-3)
func (e *events) take(p *pass, it *Item) (ok bool) {
	u := it.User
	get := func(t codec.Tag) uint64 { v, _ := u.Get(t); return v }
	ev := profile.Event{Boot: max(p.sequence.boot, 1), Time: e.event.Time, Thread: get(codec.TagThread), Addr: get(codec.TagAddress)}
	if us, timed := u.Get(codec.TagTime); timed {
		ev.Time = microseconds(us)
	}
	e.event = ev
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
		ev.Path, ev.Bytes = pathOf(e.builder, it.decoded), it.Allocs[0].Bytes
	}
	e.event = ev
	return true
}

// eventConsumer yields events.
type eventConsumer struct {
	events
	yield func(*profile.Event, error) bool
}

func (c *eventConsumer) item(p *pass, it *Item, _ boundary) bool {
	return it.Kind != Event || !c.take(p, it) || c.yield(&c.event, nil)
}

func (c *eventConsumer) fail(err error) bool { return c.yield(nil, err) }

func (c *eventConsumer) end(*pass) bool { return true }
