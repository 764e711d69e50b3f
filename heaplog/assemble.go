package heaplog

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
)

// assembler adds the records of each dump together and yields the dumps.
type assembler struct {
	r       *Reader
	yield   func(DumpBlocks, error) bool
	builder *profile.Builder

	current  *dumpStart   // nil before the first dump
	paths    *pathDump    // of the current dump, nil if it has no call paths so far
	parked   []*endedDump // dumps that wait for names of call paths, and those after them
	bases    dumpBases
	number   int // number of the current dump, from 1
	loss     profile.Loss
	blocks   blockList // of the current dump
	held     []held
	yielded  int
	skip     int        // dumps that an earlier pass has yielded
	failed   int        // errors yielded
	skipped  int        // errors that an earlier pass has yielded, less those met again
	last     DumpBlocks // the latest dump, until it is known whether it is the last one
	lastFrom *dumpStart

	events events
	replay *profile.Replay
}

// held is a pending record: the dump that it belongs to is not known yet.
type held struct {
	path profile.Path
	profile.Value
	loss   profile.Loss
	block  profile.Block
	placed bool // block has an address
}

func newAssembler(r *Reader, yield func(DumpBlocks, error) bool, blocks bool) *assembler {
	a := &assembler{r: r, yield: yield, builder: profile.NewBuilder(r.maxPaths), replay: profile.NewReplay(), blocks: blockList{wanted: blocks}}
	a.events.builder, a.events.labels = a.builder, &r.labels
	a.events.deliver = a.event
	return a
}

func (a *assembler) fail(err error) bool {
	if a.skipped > 0 {
		a.skipped--
		return true
	}
	a.failed++
	return a.yield(DumpBlocks{}, err)
}

func (a *assembler) item(p *pass, it *Item, b boundary) bool {
	switch it.Kind {
	case KindText:
		return true
	case KindMark:
		return a.mark(p, it)
	case KindIdle:
		return a.idle(p)
	case KindEvent, KindPathEvents:
		return a.events.take(p, it)
	case KindPaths:
		if a.r.label != ByPath {
			a.fail(errors.New("lines of call paths (~p#) have neither threads nor sizes of blocks"))
			return false
		}
		return a.events.flush(false) && a.pathLine(p, b)
	case KindUnreadable:
		a.loss.Unreadable++
		return true
	}
	h := held{path: a.r.labels.pathOf(a.builder, it), Value: it.Allocs[0].Value}
	if a.blocks.wanted {
		h.block, h.placed = blockOf(it, h.path)
	}
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
	if h.placed {
		a.blocks.list = append(a.blocks.list, h.block)
	}
	if a.current.paths {
		if a.paths == nil {
			a.paths = &pathDump{}
		}
		a.paths.record(h.path, h.Bytes, a.current.sample)
		return
	}
	if a.r.from > 0 && !a.r.selectsDump(a.number, math.MaxInt) {
		return
	}
	a.builder.Add(h.path, h.Value)
}

// mark begins a dump at its mark, because the dump may have no records.
func (a *assembler) mark(p *pass, it *Item) bool {
	a.r.labels.header(it.Header)
	if it.Header.Verb == codec.VerbBoot && !(a.events.flush(false) && a.unpark(p, false)) {
		return false
	}
	if it.Header.Verb != codec.VerbBegin {
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
func (a *assembler) facts() profile.DumpInfo {
	d := a.current
	return profile.DumpInfo{Name: fmt.Sprintf("dump %d", a.number), File: d.File, Line: d.Line, Index: a.yielded, Boot: d.boot,
		Number: d.number, Time: d.time, Timed: d.timed, Why: d.why, Announced: d.announced, Loss: a.loss,
		Build: d.info.build, Device: d.info.device, Firmware: d.info.firmware, Heap: d.heap, Sample: d.sample}
}

// finish ends the current dump, if any, and yields it if it is selected.
func (a *assembler) finish(p *pass) bool {
	if a.current == nil {
		return true
	}
	e := a.ended()
	unread := p.damaged && e.from.log == p.log // the rest of its log cannot be read
	e.facts.Cut = !e.from.ended && (e.from.marked || unread) || e.from.headless
	if p.sequence.count == 1 && p.log == len(a.r.inputs)-1 {
		e.facts.Name = e.facts.File
	}
	a.current, a.loss, a.paths, a.blocks = nil, profile.Loss{}, nil, blockList{wanted: a.blocks.wanted}
	if len(a.parked) == 0 && !e.paths.waits() {
		return a.emit(p, e)
	}
	a.parked = append(a.parked, e)
	a.builder = a.builder.Fork()
	return a.unpark(p, false)
}

// ended returns the current dump.
func (a *assembler) ended() *endedDump {
	if a.current.paths && a.paths == nil {
		a.paths = &pathDump{}
	}
	return &endedDump{facts: a.facts(), from: a.current, number: a.number, builder: a.builder, paths: a.paths, blocks: a.blocks}
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
	for i, e := range append(slices.Clone(a.parked), a.ended()) {
		e.facts.Index = a.yielded + i
		sum := e.sums(&a.bases)
		if !a.yield(e.yielded(e.build(sum, true), sum), nil) {
			return false
		}
	}
	return true
}

// end yields the last dump at the end of the input, or where reading failed.
func (a *assembler) end(p *pass) bool {
	if p.log == len(a.r.inputs)-1 && !p.damaged {
		p.sequence.endBoot()
		if a.r.resplits(p.sequence) {
			return false // Dumps begins another pass
		}
	}
	if !a.events.flush(!p.damaged) {
		return false
	}
	a.release()
	if !a.finish(p) || !a.unpark(p, true) {
		return false
	}
	if p.damaged {
		return true
	}
	if a.last.Dump != nil {
		p.tally.dump(a.last.Dump, a.lastFrom)
		if a.last.Index = 0; !a.yield(a.last, nil) {
			return false
		}
	}
	switch {
	case a.replay.Totals().Events > 0 && p.sequence.count == 0:
		return a.yield(DumpBlocks{Dump: a.replay.End(), Blocks: a.replay.Blocks()}, nil)
	case a.r.selected && a.r.from > p.sequence.count && p.sequence.count > 0:
		return a.fail(&OptionError{"Select", fmt.Errorf("%d: the log has %d", a.r.from, p.sequence.count)})
	}
	return true
}

// event adds an event to the replay.
func (a *assembler) event(p *pass, e *profile.Event, at Place) bool {
	if !a.replay.Add(*e) {
		p.tally.badFree(at)
	}
	return true
}
