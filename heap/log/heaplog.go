package heaplog

import (
	"context"
	"errors"
	"iter"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/process"
	"github.com/lwsbt/lwsbt/symbol"
)

// Reader reads logs. See [Open].
type Reader struct {
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
	config
	process  *process.Process
	bases    bases
	starts   []dumpStart       // of all dumps, for Items with Select; nil if not surveyed
	groups   map[int]groupEnd  // by boot: what the dumps of a log without marks end with; nil if not known
	pass     *pass             // the current or last one
	running  bool              // a pass is not finished
	checked  bool              // checkFiles has run
	names    []*callpath.Names // of each boot with call paths, if a survey has learned them
	labels   labels
	replay   *profile.Replay
	replayed bool // replay has all events
	heaps    []profile.HeapSeries
}

// Open opens the logs that the options name. When ctx is done, every pass ends. An error in
// an option is an [*OptionError]. The caller must close the Reader after use.
func Open(ctx context.Context, options ...Option) (*Reader, error) {
	if ctx == nil {
		return nil, errors.New("the context is nil")
	}
	r := &Reader{}
	r.symbols.DebugDirs, r.symbols.Check = symbol.DebugDirs(), true
	for _, o := range options {
		if o.set == nil {
			continue
		}
		if err := o.set(&r.config); err != nil {
			return nil, &OptionError{o.name, err}
		}
	}
	r.labels.by = r.label
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := process.ReadSnapshots(ctx, r.maps); err != nil {
		return nil, &OptionError{"Maps", err}
	}
	var err error
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
		r.dumps(func(d DumpBlocks, err error) bool { return yield(d.Dump, err) }, false)
	})
}

// dumps makes the pass, or the two passes, of Dumps.
func (r *Reader) dumps(yield func(DumpBlocks, error) bool, blocks bool) {
	r.process.Remember(maxAddrs)
	var dumps, errs int // yielded so far
	stopped := r.assemble(func(d DumpBlocks, err error) bool {
		switch {
		case r.regroups(): // the second pass yields it
			return true
		case err != nil:
			errs++
		default:
			dumps++
		}
		return yield(d, err)
	}, blocks)
	if stopped || !r.regroups() {
		return
	}
	r.groups = r.pass.places.found
	r.assemble(func(d DumpBlocks, err error) bool {
		switch {
		case err != nil && errs > 0:
			errs--
			return true
		case err == nil && dumps > 0:
			dumps--
			return true
		}
		return yield(d, err)
	}, blocks)
}

// assemble makes a pass that yields dumps. It reports whether the caller wanted no more.
func (r *Reader) assemble(yield func(DumpBlocks, error) bool, blocks bool) (stopped bool) {
	a := newAssembler(r, func(d DumpBlocks, err error) bool {
		stopped = !yield(d, err)
		return !stopped
	}, blocks)
	r.replay, r.replayed, r.heaps = a.replay, false, nil
	r.run(a)
	r.replayed = r.pass.finished
	var omitted []profile.HeapSeries
	r.heaps, omitted = profile.OneSource(a.heaps)
	r.pass.tally.omit(omitted, r.heaps)
	return stopped
}

// regroups reports whether the pass has found how to tell apart dumps that it adds up, and
// whether the logs can be read again. The next pass then yields these dumps and all later
// ones.
func (r *Reader) regroups() bool {
	if r.groups != nil || r.pass == nil || len(r.pass.places.found) == 0 {
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
// none. A program that reads only events can use [Reader.Events] and [profile.NewReplay].
func (r *Reader) Replay() *profile.Replay {
	if r.replay == nil || r.replay.Totals().Events == 0 {
		return nil
	}
	return r.replay
}

// Heaps returns what the allocator reported in the last pass of Dumps: a series for each heap.
func (r *Reader) Heaps() []profile.HeapSeries { return r.heaps }

// Events yields the allocation events of a recording: allocations, frees, moves. An Event
// is valid until the next one is yielded.
func (r *Reader) Events() iter.Seq2[*profile.Event, error] {
	return exclusive(r, func(yield func(*profile.Event, error) bool) {
		r.run(newEventConsumer(r, yield))
	})
}

// Items yields all records, and the text between them, in order. It needs constant memory.
// Where the frames of call paths would be over 16 per byte of the log, beyond the first 262,144, the
// call paths have only the frames that stand in their own line; the notes say so.
func (r *Reader) Items() iter.Seq2[*Item, error] {
	return exclusive(r, func(yield func(*Item, error) bool) {
		r.process.Remember(0)
		if r.selected && r.starts == nil || r.namesFirst && r.names == nil {
			if err := r.survey(true); err != nil {
				yield(nil, err)
				return
			}
		}
		r.run(&itemConsumer{r: r, yield: yield, limit: newFrameLimit()})
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
		r.running = true
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
	return r.pass.summary()
}

// run makes a pass.
func (r *Reader) run(c consumer) {
	if r.bases.wanted(r) {
		if err := r.survey(false); err != nil {
			c.fail(err)
			return
		}
	}
	if err := r.checkFiles(); err != nil {
		c.fail(err)
		return
	}
	p := newPass(r, c)
	p.run()
	p.release()
}

const (
	checkAddrs = 64   // addresses that show whether an ELF file matches
	checkItems = 4096 // after which checkFiles ends anyway
)

// checkFiles reads the beginning of the logs, if they can be read again, to find out whether the ELF
// files match. So a pass prints no name of one that does not.
func (r *Reader) checkFiles() error {
	if r.checked || len(r.symbols.Files) == 0 || !r.symbols.Check {
		return nil
	}
	r.checked = true
	for _, in := range r.inputs {
		if in.Stream != nil || in.Live {
			return nil
		}
	}
	r.process.Remember(maxAddrs)
	c := &fileChecker{r: r, limit: newFrameLimit()}
	newPass(r, c).run()
	return c.err
}

// fileChecker reads items until enough addresses are known.
type fileChecker struct {
	r     *Reader
	items int
	limit frameLimit
	err   error
}

func (c *fileChecker) item(it *Item, at *placed) bool {
	if it.Kind == recording.KindPaths {
		c.limit.item(it)
		at.callPaths.allocs(nil, at.Entries, &c.limit)
	}
	c.items++
	return c.items < checkItems && c.r.process.Seen() < checkAddrs
}

// fail keeps the errors that a second pass would not find.
func (c *fileChecker) fail(err error) bool {
	if c.r.ctx.Err() == nil && !isRead(err) {
		c.err = err
	}
	return false
}

func (c *fileChecker) end(e ending) bool { return e.damaged }
func (c *fileChecker) report() *report   { return &report{} }

// itemConsumer yields items.
type itemConsumer struct {
	r     *Reader
	yield func(*Item, error) bool
	at    int // number of dumps in r.starts that have begun

	allocs []Alloc
	events []PathEvent
	limit  frameLimit
}

func (c *itemConsumer) item(it *Item, at *placed) bool {
	c.limit.item(it)
	if c.r.starts != nil {
		it.Dump = c.dump(it, at.input)
		if !c.r.selectsDump(max(it.Dump, 1), len(c.r.starts)) {
			return true
		}
	}
	switch it.Kind {
	case recording.KindHeader:
		if it.Header.Verb == codec.VerbHeap {
			it.Heap = at.heap
		}
	case recording.KindPaths:
		c.allocs = at.callPaths.allocs(c.allocs[:0], at.Entries, &c.limit)
		it.Allocs = c.allocs
	case recording.KindPathEvents:
		c.events = at.callPaths.pathEvents(c.events[:0], it.EventLine, &c.limit)
		it.Events = c.events
	}
	return c.yield(it, nil)
}

// dump returns the number of the dump that an item is in or follows, as the survey found it.
func (c *itemConsumer) dump(it *Item, input int) int {
	for c.at < len(c.r.starts) {
		next := c.r.starts[c.at]
		if input < next.input || input == next.input && it.Offset < next.offset {
			break
		}
		c.at++
	}
	return c.at
}

func (c *itemConsumer) fail(err error) bool { return c.yield(nil, err) }

func (c *itemConsumer) end(ending) bool { return true }

func (c *itemConsumer) report() *report { return &report{limit: c.limit} }

// selectsDump reports whether Select selects dump n, from 1, of a total of all dumps.
func (r *Reader) selectsDump(n, all int) bool {
	from, to := r.from, r.to
	if from < 0 {
		from = all
	}
	if to < 0 {
		to = all
	}
	return !r.selected || from <= n && n <= to
}
