package heaplog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/codec/recording/reconcile"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// assembler adds the records of each dump together.
type assembler struct {
	c        *config
	blocks   bool  // the blocks that have addresses are wanted
	updates  bool  // reports are wanted
	reported int64 // the last report of a line of text
	labels   *labels
	builder  *profile.Builder
	out      []yielded // by the current item

	current *dump         // nil before the first dump
	begun   int           // number of dumps begun
	boot    int           // of the current dump
	waiting []*dump       // dumps that wait for names of call paths, and those after them
	bases   []*pathValues // of the latest dumps with headers
	unread  int64         // unreadable records that belong to no dump so far
	pending []pendingRecord
	records reconcile.Reconciler[profile.Path, pendingBlock]
	built   int    // number of dumps in out so far
	last    func() // yields the latest dump, if only the last one is selected

	heaps      []growth.HeapSeries
	stamps     stamps
	endLine    int64 // of the ~h#end of the current dump, or of the last ~h#heap right behind it; 0 before
	heapsFirst int   // boot whose first dump has reports of the allocator before its ~h#begin

	holes        []codec.Range // listed since the last dump began
	listed       bool          // holes are listed since then, outside of a dump
	listedBefore bool          // before the last dump, too
	holesBoot    int           // of the last dump
	seen         addresses
	events       events
	eventsBoot   string // the ~h#boot of the boot of the latest event
	replay       *replay.Replay
	leftOut      int // dumps that the label cannot group
	notes        *report
}

// yielded is a dump, a report of an allocator, or an error.
type yielded struct {
	DumpBlocks
	report *growth.HeapReport
	inDump bool                // the report is in a dump
	series []growth.HeapSeries // what lines of text have reported so far, with report
	err    error
}

// pendingRecord is a record of which the dump is not known yet, or whether it counts.
type pendingRecord = reconcile.Record[profile.Path, pendingBlock]

// pendingBlock is what else is added up of a record.
type pendingBlock struct {
	cut, noSize int64
	block       replay.Block
	placed      bool // block has an address
	address     uint64
}

func newAssembler(c *config, f frames, blocks bool) *assembler {
	a := &assembler{c: c, blocks: blocks, labels: newLabels(c.label, f), builder: profile.NewBuilder(c.maxPaths), replay: replay.NewReplay()}
	a.replay.Keep(c.moments)
	a.events = events{builder: a.builder, labels: a.labels, take: func(q *placedEvent) {
		if !a.replay.Add(q.Event) {
			a.notes.badFree(q.Place)
		}
	}}
	a.records.Eager = c.refresh > 0
	a.notes = &report{several: len(c.inputs) > 1}
	return a
}

// add takes an item or an end, and returns the dumps and the errors that are to be yielded. They are
// valid until the next call.
func (a *assembler) add(at *placed) []yielded {
	clear(a.out)
	a.out = a.out[:0]
	if at.item == nil {
		a.events.settle(at.last)
	} else {
		a.begin(at)
		a.item(at)
	}
	if at.item == nil {
		a.end(at)
	}
	return a.out
}

func (a *assembler) fail(err error) { a.out = append(a.out, yielded{err: err}) }

// begin begins the dump of an item if it is another one.
func (a *assembler) begin(at *placed) {
	if a.begun == at.count {
		return
	}
	if at.grouping != beginsPending {
		a.release()
	}
	a.finish(at)
	a.current, a.begun = newDump(at, a.builder), at.count
	if a.endLine = 0; len(at.dump.heaps) > 0 && at.dump.boot != a.boot {
		a.heapsFirst = at.dump.boot
	}
	a.boot = at.dump.boot
	if !a.current.timed() {
		a.current.stamps = a.stamps.before(at.before)
	}
	a.current.holes = a.takeHoles(at.dump.boot)
	a.records.Begin(at.dump.boot, at.dump.header, programOf(at).Code)
	a.current.loss.Unreadable, a.unread = a.unread, 0
}

// item takes an item.
func (a *assembler) item(at *placed) {
	it := at.item
	switch it.Kind {
	case recording.KindText:
		if a.reconciles() {
			a.records.Text(it.Text)
		}
	case recording.KindIdle:
		a.idle(at)
		a.series(at)
	case recording.KindHeader:
		a.header(at)
	case recording.KindEvent, recording.KindPathEvents:
		a.events.add(at)
		a.eventsBoot = at.bootText
	case recording.KindPaths:
		a.events.add(at)
		a.pathLine(at)
	case recording.KindUnreadable:
		if a.current == nil {
			a.unread++
			return
		}
		a.current.count(at)
		if at.Dump != nil && a.reconciles() && it.Counts() {
			a.records.Unreadable(&it.Item)
			return
		}
		a.current.loss.Unreadable++
	default:
		h := a.record(at)
		if at.grouping == pends {
			a.pending = append(a.pending, h)
			return
		}
		a.release()
		switch {
		case at.Dump != nil && a.reconciles():
			if a.records.Add(&it.Item, h) == nil {
				a.sum(&h)
			}
		case a.records.Believes(&it.Item, h):
			a.sum(&h)
		default:
			a.current.loss.Unreadable++
		}
		a.current.count(at)
	}
}

// reconciles reports whether the records of the current dump are reconciled with its headers.
func (a *assembler) reconciles() bool {
	d := a.current
	return d != nil && d.marked() && !d.ended() && !d.isPaths
}

// reconcile decides on the records of the current dump that may be damaged.
func (a *assembler) reconcile() {
	d := a.current
	if !d.marked() || d.isPaths {
		return
	}
	end := a.records.End(d.Dump, d.heapSize())
	d.said = &end.Said
	d.loss.Restored += end.Restored
	d.loss.Unreadable += end.Left
	for i := range end.Counts {
		a.sum(&end.Counts[i])
	}
}

// header takes a ~h# line.
func (a *assembler) header(at *placed) {
	a.events.add(at)
	switch at.item.Header.Verb {
	case codec.VerbHeap:
		of := at.Dump
		if of == nil && a.behind(at) {
			of, a.endLine = a.current.Dump, at.item.Line
		}
		if of != nil {
			a.current.heaps = withHeap(a.current.heaps, *at.heap)
		}
		a.heapReport(at, of)
	case codec.VerbEnd:
		if a.current != nil && a.current.ended() {
			a.endLine = at.item.Line
		}
	case "free":
		a.freeBlocks(at)
	case codec.VerbBoot:
		a.emitKnown(false)
	case codec.VerbBegin:
		a.series(at)
	}
}

// freeBlocks takes a ~h#free line.
func (a *assembler) freeBlocks(at *placed) {
	list, _ := at.item.Header.Get("heap")
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

// behind reports whether a ~h#heap line outside of dumps belongs to the current dump, which has ended: it is in
// the line behind the ~h#end, and the reports of this boot do not stand before their dumps.
func (a *assembler) behind(at *placed) bool {
	return a.current != nil && a.endLine > 0 && at.item.Line == a.endLine+1 && at.boot == a.current.boot && a.heapsFirst != at.boot
}

// heapReport adds a ~h#heap line to the series of its heap. Its time is that of its dump, nil if it has none. What
// was free at the exit of a program says nothing about the program.
func (a *assembler) heapReport(at *placed, of *recording.Dump) {
	it := at.item
	begin := (*codec.Header)(nil)
	if of != nil {
		begin = of.Begin
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
	r := growth.HeapReport{Heap: *at.heap, File: it.File, Line: it.Line, Boot: at.boot, Time: microseconds(us), Timed: timed}
	if h := at.header; h != nil {
		r.Build, _ = h.Get("build")
		r.Firmware, _ = h.Get("fw")
	}
	if !timed {
		r.Stamps = a.stamps.before(at.before)
	}
	a.heaps = growth.AddReport(a.heaps, r)
	a.out = append(a.out, yielded{report: &r, inDump: of != nil})
}

// series yields what lines of text have reported since the last time, in the order of the lines.
func (a *assembler) series(at *placed) {
	if !a.updates || len(at.heaps) == 0 {
		return
	}
	var list []*growth.HeapReport
	for i := range at.heaps {
		s := &at.heaps[i]
		for k := range s.Reports {
			if r := &s.Reports[k]; r.At > a.reported {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(x, y *growth.HeapReport) int { return cmp.Compare(x.At, y.At) })
	for _, r := range list {
		a.reported = r.At
		a.out = append(a.out, yielded{report: r, series: at.heaps})
	}
}

// record returns what is added up of a record.
func (a *assembler) record(at *placed) pendingRecord {
	it := at.item
	h := pendingRecord{Path: a.labels.pathOf(a.builder, at), Bytes: it.Allocs[0].Bytes}
	if it.User != nil {
		h.Fields = true
		h.Of.address, h.Addressed = it.User.Get(codec.TagAddress)
	}
	if a.blocks {
		h.Of.block, h.Of.placed = blockOf(it, h.Path)
	}
	if it.Cut != nil {
		h.Of.cut = 1
		if !it.Cut.Sized {
			h.Of.noSize, h.Bytes = 1, 0
		}
	}
	return h
}

// release adds the pending records to the current dump.
func (a *assembler) release() {
	for i := range a.pending {
		a.sum(&a.pending[i])
	}
	a.pending = a.pending[:0]
}

// sum adds a record to the current dump.
func (a *assembler) sum(h *pendingRecord) {
	d := a.current
	d.old = !a.seen.add(h, d) || d.old
	if !h.Restored {
		d.loss.Cut += h.Of.cut
		d.loss.NoSize += h.Of.noSize
	}
	if h.Of.placed {
		d.blocks = append(d.blocks, h.Of.block)
	}
	if d.isPaths || a.selects(a.begun) {
		d.addRecord(h.Path, profile.Value{Bytes: h.Bytes, Count: 1})
	}
}

// selects reports whether a dump may be selected. Whether it is the last one is not known yet.
func (a *assembler) selects(number int) bool {
	c := a.c
	return !c.selected || c.from < 0 || c.from <= number && (c.to < 0 || number <= c.to)
}

// pathLine adds a line of call paths. (BT-DUMP-2)
func (a *assembler) pathLine(at *placed) {
	a.release()
	a.emitKnown(false)
	if d := a.current; d != nil && !d.ended() && !d.again(at.item.Text) { // otherwise the line has only definitions, or comes twice
		d.addLine(at, a.blocks)
	}
}

// finish ends the current dump, if any, because of what comes after it.
func (a *assembler) finish(at *placed) {
	d := a.current
	if d == nil {
		return
	}
	a.reconcile()
	d.unread = at.item == nil && !at.last && d.input == at.input // the rest of its log cannot be read
	d.only = at.count == 1 && at.input == len(a.c.inputs)-1
	a.current = nil
	a.waiting = append(a.waiting, d)
	a.emitKnown(false)
	if len(a.waiting) > 0 {
		a.builder = a.builder.Fork()
	}
}

// maxWaiting is the number of dumps that wait for the names of call paths. A device repeats
// each definition within 16 dumps. (BT-NAME-4)
const maxWaiting = 32

// emitKnown emits the finished dumps that wait for no name, in order. With all, it emits all.
func (a *assembler) emitKnown(all bool) {
	for len(a.waiting) > 0 && (all || len(a.waiting) > maxWaiting || !a.waiting[0].waits()) {
		d := a.waiting[0]
		a.waiting = a.waiting[1:]
		a.emit(d)
	}
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
func (a *assembler) emit(d *dump) {
	if a.c.label != ByPath && d.isPaths { // the events may have what its lines do not
		if a.leftOut++; a.leftOut == 1 && a.replay.Totals().Events == 0 {
			a.fail(errors.New("lines of call paths (~p#) have neither threads nor sizes of blocks"))
		}
		return
	}
	base := a.base(d)
	v := d.values(base, true)
	built := d.build(d.info(a.built), v, base, false)
	if v != nil {
		a.notes.sameAddress += d.Sum.SameAddress
		a.notes.peakParts += v.peaksInParts()
		if d.marked() {
			a.bases = append(a.bases, v)
			a.bases = a.bases[max(0, len(a.bases)-maxBases):]
		}
	}
	deliver := func() {
		a.built++
		a.notes.dump(built, d)
		a.yield(built, d, v)
	}
	switch {
	case a.c.selected && a.c.from < 0:
		a.last = deliver
	case a.selects(d.ordinal):
		deliver()
	}
}

func (a *assembler) yield(built *profile.Dump, d *dump, v *pathValues) {
	a.out = append(a.out, yielded{DumpBlocks: DumpBlocks{built, d.allBlocks(v), reconcile.Ranges(d.header, "heap"), d.holes}})
}

// idle yields the unfinished dump before the pass waits.
func (a *assembler) idle(at *placed) {
	d, last := a.current, a.c.selected && a.c.from < 0
	switch {
	case d == nil, !a.selects(a.begun):
	case d.ended() && !last:
		a.finish(at)
	case a.c.refresh > 0:
		for i, d := range append(slices.Clone(a.waiting), d) {
			v := d.values(a.base(d), false)
			a.yield(d.build(d.info(a.built+i), v, nil, true), d, v)
		}
	}
}

// end yields the last dump at the end of the logs, or where one cannot be read.
func (a *assembler) end(at *placed) {
	a.series(at)
	a.release()
	a.finish(at)
	a.emitKnown(true)
	if at.last {
		if a.last != nil {
			a.last()
		}
		switch {
		case a.replay.Totals().Events > 0 && at.count == a.leftOut:
			d := a.replay.End()
			d.BootHeader = a.eventsBoot
			a.out = append(a.out, yielded{DumpBlocks: DumpBlocks{Dump: d, Blocks: a.replay.Blocks()}})
		case a.c.selected && a.c.from > at.count && at.count > 0:
			a.fail(&OptionError{"Select", fmt.Errorf("%d: the log has %d", a.c.from, at.count)})
		}
	}
	if none := (*noRecord)(nil); at.err != nil && !(len(a.heaps)+len(at.heaps) > 0 && errors.As(at.err, &none) && !none.damaged) {
		a.fail(at.err)
	}
}
