package heaplog

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
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
	waiting []*dump       // dumps that wait for names of call paths, and those after them
	bases   []*pathValues // of the latest dumps with headers
	unread  int64         // unreadable records that belong to no dump so far
	pending []pendingRecord
	yielded int
	last    func() bool // yields the latest dump, if only the last one is selected

	heaps []profile.HeapSeries

	holes        []codec.Range // listed since the last dump began
	listed       bool          // holes are listed since then, outside of a dump
	listedBefore bool          // before the last dump, too
	holesBoot    int           // of the last dump
	seen         addresses
	events       events
	eventsBoot   string // the ~h#boot of the boot of the latest event
	replay       *profile.Replay
	notes        report
}

// pendingRecord is a record of which the dump is not known yet.
type pendingRecord struct {
	path profile.Path
	profile.Value
	cut, noSize int64
	block       profile.Block
	placed      bool // block has an address
	address     uint64
	addressed   bool
}

func newAssembler(r *Reader, yield func(DumpBlocks, error) bool, blocks bool) *assembler {
	a := &assembler{r: r, yield: yield, builder: profile.NewBuilder(r.maxPaths), replay: profile.NewReplay(), wantBlocks: blocks}
	a.notes.several = len(r.inputs) > 1
	a.events.builder, a.events.labels = a.builder, &r.labels
	a.events.deliver = a.event
	return a
}

func (a *assembler) fail(err error) bool { return a.yield(DumpBlocks{}, err) }

func (a *assembler) report() *report { return &a.notes }

func (a *assembler) item(it *Item, at *placed) bool {
	if a.begun != at.count {
		if at.grouping != beginsPending {
			a.release()
		}
		if !a.finish(ending{input: at.input, count: at.count}) {
			return false
		}
		a.current, a.begun = newDump(at, a.builder), at.count
		a.current.holes = a.takeHoles(at.dump.boot)
		a.current.loss.Unreadable, a.unread = a.unread, 0
	}
	switch it.Kind {
	case recording.KindText:
		return true
	case recording.KindHeader:
		return a.header(it, at)
	case recording.KindIdle:
		return a.idle(at)
	case recording.KindEvent, recording.KindPathEvents:
		a.eventsBoot = a.r.pass.places.bootText()
		return a.events.take(it, at)
	case recording.KindPaths:
		return a.events.flush(false) && a.pathLine(it, at)
	case recording.KindUnreadable:
		if a.current == nil {
			a.unread++
			return true
		}
		a.current.loss.Unreadable++
		a.current.count(it, at)
		return true
	}
	h := a.record(it)
	if at.grouping == pends {
		a.pending = append(a.pending, h)
		return true
	}
	a.release()
	a.add(&h)
	a.current.count(it, at)
	return true
}

// header takes a ~h# line.
func (a *assembler) header(it *Item, at *placed) bool {
	a.r.labels.header(it.Header)
	switch it.Header.Verb {
	case codec.VerbHeap:
		if at.Dump != nil {
			a.current.heaps = profile.WithHeap(a.current.heaps, *at.heap)
		}
		a.heapReport(it, at)
	case codec.VerbFree:
		a.freeBlocks(it, at)
	case codec.VerbBoot:
		return a.events.flush(false) && a.emitKnown(false)
	}
	return true
}

// freeBlocks takes a ~h#free line.
func (a *assembler) freeBlocks(it *Item, at *placed) {
	list, _ := it.Header.Get("heap")
	holes, ok := codec.ParseRanges(list)
	switch {
	case !ok:
	case at.Dump != nil:
		a.current.holes = append(a.current.holes, holes...)
	default:
		a.holes, a.listed = append(a.holes, holes...), true
	}
}

// takeHoles returns the free blocks that are listed before a dump that begins. They are those of
// another moment, after the dump before, if the first dump of the boot has none.
func (a *assembler) takeHoles(boot int) (list []codec.Range) {
	first := boot != a.holesBoot
	a.holesBoot, a.listed = boot, a.listed && (first || a.listedBefore)
	if list, a.holes = a.holes, nil; !a.listed {
		list = nil
	}
	a.listedBefore, a.listed = a.listed, false
	return list
}

// heapReport adds a ~h#heap line to the series of its heap. Its time is that of its dump if it has
// none. What was free at the exit of a program says nothing about the program.
func (a *assembler) heapReport(it *Item, at *placed) {
	begin := (*codec.Header)(nil)
	if at.Dump != nil {
		begin = at.Dump.Begin
	}
	us, timed := it.Header.Uint("t")
	if begin != nil {
		if why, _ := begin.Get("why"); why == "exit" {
			return
		}
		if !timed {
			us, timed = begin.Uint("t")
		}
	}
	r := profile.HeapReport{Heap: *at.heap, File: it.File, Line: it.Line, Boot: at.boot, Time: microseconds(us), Timed: timed}
	if h := at.header; h != nil {
		r.Build, _ = h.Get("build")
		r.Firmware, _ = h.Get("fw")
	}
	if !timed {
		r.Stamps = a.r.pass.places.tail.stamps()
	}
	a.heaps = profile.AddReport(a.heaps, r)
}

// record returns what is added up of a record.
func (a *assembler) record(it *Item) pendingRecord {
	h := pendingRecord{path: a.r.labels.pathOf(a.builder, it), Value: it.Allocs[0].Value}
	if it.User != nil {
		h.address, h.addressed = it.User.Get(codec.TagAddress)
	}
	if a.wantBlocks {
		h.block, h.placed = blockOf(it, h.path)
	}
	if it.Cut != nil {
		h.cut = 1
		if !it.Cut.Sized {
			h.noSize, h.Bytes = 1, 0
		}
	}
	return h
}

// release adds the pending records to the current dump.
func (a *assembler) release() {
	for i := range a.pending {
		a.add(&a.pending[i])
	}
	a.pending = a.pending[:0]
}

func (a *assembler) add(h *pendingRecord) {
	d := a.current
	d.old = !a.seen.add(h, d) || d.old
	d.loss.Cut += h.cut
	d.loss.NoSize += h.noSize
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
func (a *assembler) pathLine(it *Item, at *placed) bool {
	if a.r.label != ByPath {
		a.fail(errors.New("lines of call paths (~p#) have neither threads nor sizes of blocks"))
		return false
	}
	a.release()
	if !a.emitKnown(false) {
		return false
	}
	if d := a.current; d != nil && !d.ended() && !d.again(it.Text) { // otherwise the line has only definitions, or comes twice
		d.addLine(it, at, a.wantBlocks)
	}
	return true
}

// finish ends the current dump, if any, and yields it if it is selected.
func (a *assembler) finish(e ending) bool {
	d := a.current
	if d == nil {
		return true
	}
	d.unread = e.damaged && d.input == e.input // the rest of its log cannot be read
	d.only = e.count == 1 && e.input == len(a.r.inputs)-1
	a.current = nil
	a.waiting = append(a.waiting, d)
	ok := a.emitKnown(false)
	if len(a.waiting) > 0 {
		a.builder = a.builder.Fork()
	}
	return ok
}

// maxWaiting is the number of dumps that wait for the names of call paths. A device repeats
// each definition within 16 dumps. (BT-NAME-4)
const maxWaiting = 32

// emitKnown emits the finished dumps that wait for no name, in order. With all, it emits all.
func (a *assembler) emitKnown(all bool) bool {
	for len(a.waiting) > 0 && (all || len(a.waiting) > maxWaiting || !a.waiting[0].waits()) {
		d := a.waiting[0]
		a.waiting = a.waiting[1:]
		if !a.emit(d) {
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
	base := d.Base()
	for _, v := range a.bases {
		if v.of == base {
			return v
		}
	}
	return nil
}

// emit yields a dump if it is selected.
func (a *assembler) emit(d *dump) bool {
	v := d.values(a.base(d), true)
	built := d.build(d.info(a.yielded), v, false)
	if v != nil {
		a.notes.sameAddress += d.Sum.SameAddress
		a.notes.peakParts += v.peaksInParts()
		if d.marked() {
			a.bases = append(a.bases, v)
			a.bases = a.bases[max(0, len(a.bases)-maxBases):]
		}
	}
	deliver := func() bool {
		a.yielded++
		a.notes.dump(built, d)
		return a.yield(DumpBlocks{built, d.allBlocks(v), space(d.header), d.holes}, nil)
	}
	switch {
	case a.r.selected && a.r.from < 0:
		a.last = deliver
		return true
	case !a.selects(d.ordinal):
		return true
	}
	return deliver()
}

// idle yields the unfinished dump before the pass waits.
func (a *assembler) idle(at *placed) bool {
	d, last := a.current, a.r.selected && a.r.from < 0
	switch {
	case d == nil, !a.selects(a.begun):
		return true
	case d.ended() && !last:
		return a.finish(ending{input: at.input, count: at.count})
	case a.r.refresh == 0:
		return true
	}
	for i, d := range append(slices.Clone(a.waiting), d) {
		v := d.values(a.base(d), false)
		if !a.yield(DumpBlocks{d.build(d.info(a.yielded+i), v, true), d.allBlocks(v), space(d.header), d.holes}, nil) {
			return false
		}
	}
	return true
}

// end yields the last dump at the end of the input, or where reading failed.
func (a *assembler) end(e ending) bool {
	if !a.events.flush(!e.damaged) {
		return false
	}
	a.release()
	if !a.finish(e) || !a.emitKnown(true) {
		return false
	}
	if e.damaged {
		return true
	}
	if a.last != nil && !a.last() {
		return false
	}
	switch {
	case a.replay.Totals().Events > 0 && e.count == 0:
		d := a.replay.End()
		d.BootHeader = a.eventsBoot
		return a.yield(DumpBlocks{Dump: d, Blocks: a.replay.Blocks()}, nil)
	case a.r.selected && a.r.from > e.count && e.count > 0:
		return a.fail(&OptionError{"Select", fmt.Errorf("%d: the log has %d", a.r.from, e.count)})
	}
	return true
}

// event adds an event to the replay.
func (a *assembler) event(e *profile.Event, at *placedEvent) bool {
	if !a.replay.Add(*e) {
		a.notes.badFree(at.Place)
	}
	return true
}
