package heaplog

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// assembler adds the records of each dump together and yields the dumps.
type assembler struct {
	r          *Reader
	yield      func(DumpBlocks, error) bool
	wantBlocks bool
	builder    *profile.Builder

	current *dump         // nil before the first dump
	begun   int           // number of dumps begun
	parked  []*dump       // dumps that wait for names of call paths, and those after them
	bases   []*pathValues // of the latest dumps with marks
	unread  int64         // unreadable records that belong to no dump so far
	held    []held
	yielded int
	skip    int         // dumps that an earlier pass has yielded
	failed  int         // errors yielded
	skipped int         // errors that an earlier pass has yielded, less those met again
	last    func() bool // yields the latest dump, if only the last one is selected

	events events
	replay *profile.Replay
}

// held is a pending record: the dump that it belongs to is not known yet.
type held struct {
	path profile.Path
	profile.Value
	cut, noSize int64
	block       profile.Block
	placed      bool // block has an address
}

func newAssembler(r *Reader, yield func(DumpBlocks, error) bool, blocks bool) *assembler {
	a := &assembler{r: r, yield: yield, builder: profile.NewBuilder(r.maxPaths), replay: profile.NewReplay(), wantBlocks: blocks}
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

func (a *assembler) item(p *pass, it *Item) bool {
	if a.begun != p.sequence.count {
		if !p.sequence.dump.repeats {
			a.release()
		}
		if !a.finish(p) {
			return false
		}
		a.current, a.begun = p.sequence.dump, p.sequence.count
		a.current.builder = a.builder
		a.current.Loss.Unreadable, a.unread = a.unread, 0
	}
	switch it.Kind {
	case KindText:
		return true
	case KindMark:
		a.r.labels.header(it.Header)
		return it.Header.Verb != codec.VerbBoot || a.events.flush(false) && a.unpark(p, false)
	case KindIdle:
		return a.idle(p)
	case KindEvent, KindPathEvents:
		return a.events.take(p, it)
	case KindPaths:
		return a.events.flush(false) && a.pathLine(p)
	case KindUnreadable:
		if a.current == nil {
			a.unread++
		} else {
			a.current.Loss.Unreadable++
		}
		return true
	}
	h := held{path: a.r.labels.pathOf(a.builder, it), Value: it.Allocs[0].Value}
	if a.wantBlocks {
		h.block, h.placed = blockOf(it, h.path)
	}
	if it.Cut != nil {
		h.cut = 1
		if !it.Cut.Sized {
			h.noSize, h.Bytes = 1, 0
		}
	}
	if p.sequence.pending() {
		a.held = append(a.held, h)
		return true
	}
	a.release()
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
	d := a.current
	d.Loss.Cut += h.cut
	d.Loss.NoSize += h.noSize
	if h.placed {
		d.blocks = append(d.blocks, h.block)
	}
	if d.isPaths || a.selects(a.begun) {
		d.addRecord(h.path, h.Value)
	}
}

// selects reports whether a dump may be selected. Whether it is the last one is not known yet.
func (a *assembler) selects(number int) bool {
	return a.r.from < 0 || a.r.selectsDump(number, math.MaxInt)
}

// pathLine adds a line of call paths. (BT-DUMP-2)
func (a *assembler) pathLine(p *pass) bool {
	if a.r.label != ByPath {
		a.fail(errors.New("lines of call paths (~p#) have neither threads nor sizes of blocks"))
		return false
	}
	a.release()
	if !a.unpark(p, false) {
		return false
	}
	if d := a.current; d != nil && !d.ended { // otherwise the line has only definitions
		d.addLine(p.paths, p.lostLines, a.wantBlocks)
	}
	return true
}

// finish ends the current dump, if any, and yields it if it is selected.
func (a *assembler) finish(p *pass) bool {
	d := a.current
	if d == nil {
		return true
	}
	unread := p.damaged && d.log == p.log // the rest of its log cannot be read
	d.Cut = !d.ended && (d.marked || unread) || d.headless
	if p.sequence.count == 1 && p.log == len(a.r.inputs)-1 {
		d.Name = d.File
	}
	a.current = nil
	a.parked = append(a.parked, d)
	ok := a.unpark(p, false)
	if len(a.parked) > 0 {
		a.builder = a.builder.Fork()
	}
	return ok
}

// maxParked is the number of dumps that wait for the names of call paths. A device repeats
// each definition within 16 dumps. (BT-NAME-4)
const maxParked = 32

// unpark emits the parked dumps that wait for no name, in order. With all, it emits all.
func (a *assembler) unpark(p *pass, all bool) bool {
	for len(a.parked) > 0 && (all || len(a.parked) > maxParked || !a.parked[0].waits()) {
		d := a.parked[0]
		a.parked = a.parked[1:]
		if !a.emit(p, d) {
			return false
		}
	}
	return true
}

// maxBases is the number of dumps that are kept, since a later dump may be a difference from one
// of them.
const maxBases = 64

// base returns the values of the dump from which d is a difference, nil if it is missing.
func (a *assembler) base(d *dump) *pathValues {
	for _, v := range slices.Backward(a.bases) {
		if v.boot == d.Boot && v.number == d.Base {
			return v
		}
	}
	return nil
}

// emit yields a dump if it is selected.
func (a *assembler) emit(p *pass, d *dump) bool {
	d.Index = a.yielded
	v := d.values(a.base(d))
	built := d.build(v, false)
	if v != nil {
		p.tally.sameAddress += d.sum.SameAddress
		p.tally.peakParts += v.peaksInParts()
		if d.marked {
			v.complete = built.Complete() && built.Loss.Lines == 0
			a.bases = append(a.bases, v)
			a.bases = a.bases[max(0, len(a.bases)-maxBases):]
		}
	}
	deliver := func() bool {
		a.yielded++
		p.tally.dump(built, d, len(a.r.inputs) > 1)
		return a.yielded <= a.skip || a.yield(DumpBlocks{built, d.allBlocks(v), d.space}, nil)
	}
	switch {
	case a.r.selected && a.r.from < 0:
		a.last = deliver
		return true
	case !a.selects(d.ordinal), a.r.resplits(p.sequence):
		return true
	}
	return deliver()
}

// idle yields the unfinished dump before the pass waits.
func (a *assembler) idle(p *pass) bool {
	d, last := a.current, a.r.selected && a.r.from < 0
	switch {
	case d == nil, !a.selects(a.begun):
		return true
	case d.ended && !last:
		return a.finish(p)
	case a.r.refresh == 0:
		return true
	}
	for i, d := range append(slices.Clone(a.parked), d) {
		d.Index = a.yielded + i
		v := d.values(a.base(d))
		if !a.yield(DumpBlocks{d.build(v, true), d.allBlocks(v), d.space}, nil) {
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
	if a.last != nil && !a.last() {
		return false
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
