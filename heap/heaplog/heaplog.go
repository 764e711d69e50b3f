package heaplog

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/process"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/symbol"
)

// Reader reads logs. See [Open].
type Reader struct {
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
	config
	process  *process.Process
	learned  learned
	pass     *pass   // the current or last one
	report   *report // of the fold of this pass
	running  bool    // a pass is not finished
	checked  bool    // checkFiles has run
	frames   frames  // of labels
	replay   *replay.Replay
	replayed bool // replay has all events
	heaps    []growth.HeapSeries
	begins   []position // of the dumps of the last pass, by their Index
}

// position is that of a line in a log.
type position struct {
	file string
	line int64
}

// Open opens the logs that the options name. When ctx is done, every pass ends. An error in
// an option is an [*OptionError]. The caller must close the Reader after use.
func Open(ctx context.Context, options ...Option) (*Reader, error) {
	if ctx == nil {
		return nil, errors.New("the context is nil")
	}
	r := &Reader{frames: frames{}}
	r.symbols.DebugDirs, r.symbols.Check = symbol.DebugDirs(), true
	for _, o := range options {
		if o.set == nil {
			continue
		}
		if err := o.set(&r.config); err != nil {
			return nil, &OptionError{o.name, err}
		}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	var err error
	if r.mappings, err = process.ReadMaps(ctx, r.maps); err != nil {
		return nil, &OptionError{"Maps", err}
	}
	if r.process, err = process.New(r.symbols); err != nil {
		return nil, &OptionError{"Exe", err}
	}
	r.ctx, r.cancel = context.WithCancel(ctx) // ends what reads ahead
	return r, nil
}

// Close closes all files and removes temporary files. A pass over a closed Reader fails.
// Dumps that a pass yielded stay valid.
func (r *Reader) Close() error {
	if r.process == nil || r.closed {
		return nil
	}
	r.closed = true
	r.cancel()
	r.process.Close()
	for _, in := range r.inputs {
		if in.Stream != nil {
			in.Stream.Close()
		}
	}
	return nil
}

// maxAddrs is the number of addresses, with their names, that a pass of Dumps caches. The
// call paths of the dumps hold these names anyway.
const maxAddrs = 1 << 24

// Dumps yields each dump when it is complete. A recording that has only events yields one
// dump at the end: the blocks that are then live.
//
// Where dumps have no ~h#begin and end alike, only the end of a boot shows how to tell them apart.
// Dumps then reads the logs a second time, if they can be read again, from the first such dump on.
func (r *Reader) Dumps() iter.Seq2[*profile.Dump, error] {
	return exclusive(r, func(yield func(*profile.Dump, error) bool) {
		r.dumps(func(d *yielded) bool { return d.report != nil || yield(d.Dump, d.err) }, false, false)
	})
}

// Update is a dump or a report of an allocator.
type Update struct {
	Dump   *profile.Dump       // nil if Report is set
	Report *growth.HeapReport  // nil if Dump is set
	InDump bool                // Report is in a dump, which follows
	Heaps  []growth.HeapSeries // what lines of text have reported so far, if Report is of such a line
}

// Updates yields the same dumps as [Reader.Dumps], and each report of an allocator when it is read. A dump is
// yielded when it is known to be complete, which may be after reports that follow it in the log.
func (r *Reader) Updates() iter.Seq2[Update, error] {
	return exclusive(r, func(yield func(Update, error) bool) {
		r.dumps(func(d *yielded) bool { return yield(Update{d.Dump, d.report, d.inDump, d.series}, d.err) }, false, true)
	})
}

// dumps makes the pass, or the two passes, of Dumps.
func (r *Reader) dumps(yield func(*yielded) bool, blocks, updates bool) {
	r.process.Remember(maxAddrs)
	first, stopped := r.assemble(counts{}, blocks, updates, yield)
	if !stopped && r.regroups() {
		r.learned.groups = r.pass.places.found
		r.assemble(first, blocks, updates, yield)
	}
}

// counts is how many dumps, reports and errors a pass has yielded.
type counts struct{ dumps, reports, errs int }

// assemble makes a pass that yields dumps, reports and errors, but for those of an earlier pass. It yields
// none that another pass will tell apart.
func (r *Reader) assemble(before counts, blocks, updates bool, yield func(*yielded) bool) (n counts, stopped bool) {
	a := newAssembler(&r.config, r.frames, blocks)
	a.updates = updates
	r.report, r.replay, r.replayed, r.heaps, r.begins = a.notes, a.replay, false, nil, nil
	wanted := func(d *yielded) bool {
		switch {
		case r.regroups():
			return false
		case d.err != nil:
			n.errs++
			return n.errs > before.errs
		case d.report != nil:
			n.reports++
			return n.reports > before.reports
		}
		n.dumps++
		return n.dumps > before.dumps
	}
pass:
	for at := range r.items {
		for _, d := range a.add(at) {
			if d.Dump != nil {
				r.begins = append(r.begins[:min(d.Index, len(r.begins))], position{d.File, d.Line})
			}
			if stopped = wanted(&d) && !yield(&d); stopped || d.err != nil && at.item != nil {
				break pass
			}
		}
		r.replayed = at.last
	}
	r.heaps = slices.Concat(a.heaps, apart(r.pass.heaps, a.heaps))
	return n, stopped
}

// regroups reports whether the pass has found how to tell apart dumps that it adds up, and
// whether the logs can be read again. The next pass then yields these dumps and all later
// ones.
func (r *Reader) regroups() bool {
	if r.learned.groups != nil || r.pass == nil || len(r.pass.places.found) == 0 {
		return false
	}
	for _, in := range r.inputs {
		if in.Live && (in.Stream == nil || !in.Stream.Ended) {
			return false
		}
	}
	return true
}

// Replay returns the replay of the events in the last pass of Dumps, nil if there were
// none. A program that reads only events can use [Reader.Events] and [replay.NewReplay].
func (r *Reader) Replay() *replay.Replay {
	if r.replay == nil || r.replay.Totals().Events == 0 {
		return nil
	}
	return r.replay
}

// Heaps returns what allocators and lines of text reported in the last pass of Dumps: a series for each
// heap of each device or process.
func (r *Reader) Heaps() []growth.HeapSeries { return r.heaps }

// HeapsOf returns what the log says of each heap at a dump of the last pass of Dumps, when the pass has ended:
// the Heaps of the dump, and of other heaps the first report that lines of text have from the
// beginning of the dump to that of the next one.
func (r *Reader) HeapsOf(d *profile.Dump) []profile.Heap {
	end := int64(math.MaxInt64)
	if next := d.Index + 1; next < len(r.begins) && r.begins[next].file == d.File {
		end = r.begins[next].line
	}
	list := slices.Clone(d.Heaps)
	for i := range r.heaps {
		reports := r.heaps[i].Reports
		at := slices.IndexFunc(reports, func(h growth.HeapReport) bool {
			return h.Foreign && h.File == d.File && h.Line >= d.Line && h.Line < end
		})
		if at < 0 {
			continue
		}
		h := &reports[at].Heap
		if !slices.ContainsFunc(d.Heaps, func(o profile.Heap) bool { return o.Name == h.Name && o.OnlyUsed() == h.OnlyUsed() }) {
			list = append(list, *h)
		}
	}
	return list
}

// Events yields the allocation events of a recording: allocations, frees, moves. An Event
// is valid until the next one is yielded.
func (r *Reader) Events() iter.Seq2[*replay.Event, error] {
	return exclusive(r, func(yield func(*replay.Event, error) bool) {
		r.events(func(e *placedEvent, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			return yield(&e.Event, nil)
		})
	})
}

// Items yields all records, and the text between them, in order. It needs constant memory.
// Where the frames of call paths would be over 16 per byte of the log, beyond the first 262,144, the
// call paths have only the frames that stand in their own line; the notes say so.
func (r *Reader) Items() iter.Seq2[*Item, error] {
	return exclusive(r, func(yield func(*Item, error) bool) {
		r.process.Remember(0)
		v := views{limit: newFrameLimit()}
		r.report = &report{limit: &v.limit}
		for at := range r.items {
			if at.item == nil {
				if at.err != nil && !yield(nil, at.err) {
					return
				}
				continue
			}
			if !yield(v.item(at), nil) {
				return
			}
		}
	})
}

// exclusive returns the iterator of a pass. It yields an error if the Reader is not open, or
// if another pass is not finished.
func exclusive[T any](r *Reader, run func(yield func(T, error) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		switch {
		case r.process == nil:
			yield(none, errors.New("the Reader was not opened by Open"))
			return
		case r.closed:
			yield(none, errors.New("the Reader is closed"))
			return
		case r.running:
			yield(none, errors.New("another pass over the Reader is not finished"))
			return
		}
		r.running, r.report = true, &report{}
		defer func() { r.running = false }()
		stopped := false
		run(func(v T, err error) bool { // once yield has returned false, it is not called again
			stopped = stopped || !yield(v, err)
			return !stopped
		})
	}
}

// Locate returns the symbol.Addr of a code address at the current item of a pass: for
// example, of an address that a panic prints as text.
func (r *Reader) Locate(pc uint64) symbol.Addr {
	if r.process == nil {
		return symbol.Addr{PC: pc}
	}
	a := r.process.Locate(pc)
	if r.pass != nil {
		a = r.pass.logNames.name(a)
	}
	return a
}

// Summary returns the counts and notes of the current pass so far, or of the last pass.
func (r *Reader) Summary() Summary {
	if r.pass == nil {
		return Summary{}
	}
	return r.pass.summary(r.report)
}

// items makes a pass and yields its items.
func (r *Reader) items(yield func(*placed) bool) {
	if r.learned.bases.wanted(&r.config, r.process) {
		if err := r.survey(); err != nil {
			yield(&placed{err: err})
			return
		}
	}
	if err := r.checkFiles(); err != nil {
		yield(&placed{err: err})
		return
	}
	r.begin(true).all(yield)
}

// begin begins a pass.
func (r *Reader) begin(naming bool) *pass {
	r.pass = newPass(r.ctx, &r.config, r.process, &r.learned, naming)
	return r.pass
}

const (
	checkAddrs = 64   // addresses that show whether an ELF file matches
	checkItems = 4096 // after which checkFiles ends anyway
)

// checkFiles reads the beginning of logs with a memory map, if they can be read again, to find out whether
// the ELF files match. So a pass prints no name of one that does not.
func (r *Reader) checkFiles() error {
	if r.checked || len(r.symbols.Files) == 0 || !r.symbols.Check || len(r.maps) == 0 && !r.process.Mapped() {
		return nil
	}
	r.checked = true
	for _, in := range r.inputs {
		if in.Stream != nil || in.Live {
			return nil
		}
	}
	r.process.Remember(maxAddrs)
	v, n := views{limit: newFrameLimit()}, 0
	for at := range r.begin(true).all {
		if at.item == nil {
			if at.last || r.ctx.Err() != nil || isRead(at.err) { // the next pass finds it
				return nil
			}
			return at.err
		}
		if at.item.Kind == recording.KindPaths {
			v.item(at)
		}
		if n++; n >= checkItems || r.process.Seen() >= checkAddrs {
			return nil
		}
	}
	return nil
}

// views completes Items, which Items yields.
type views struct {
	allocs []Alloc
	events []PathEvent
	limit  frameLimit
}

// item returns the item with what its call paths are.
func (v *views) item(at *placed) *Item {
	it := at.item
	v.limit.item(it)
	switch it.Kind {
	case recording.KindHeader:
		it.Heap = at.heap
	case recording.KindPaths:
		v.allocs = at.callPaths.allocs(v.allocs[:0], at.Entries, &v.limit)
		it.Allocs = v.allocs
	case recording.KindPathEvents:
		v.events = at.callPaths.pathEvents(v.events[:0], it.EventLine, &v.limit)
		it.Events = v.events
	}
	return it
}
