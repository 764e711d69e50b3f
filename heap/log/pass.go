package heaplog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/log/internal/foreign"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/internal/process"
)

// consumer adds up the items of a pass.
type consumer interface {
	// item takes an item and its place, both valid until the next item. It returns false to end the
	// pass.
	item(*Item, *placed) bool
	// end is called at the end of all inputs, and where an input cannot be read to its end.
	end(ending) bool
	// fail takes an error. If fail returns true after a *ReadError, the pass continues.
	fail(error) bool
	// report returns what the notes say about the dumps so far.
	report() *report
}

// ending says what ended.
type ending struct {
	input   int  // index of the log
	damaged bool // an error ended this log; otherwise, all logs have ended
	count   int  // dumps that have begun
}

// pass is one pass over all inputs: input → reader → places → names → consumer.
type pass struct {
	r        *Reader
	consumer consumer
	hooks    input.Hooks
	reader   recording.Reader
	places   places
	tally    tally

	paths *callPaths        // of the latest boot that had lines of call paths, nil if none had
	names []*callpath.Names // of each boot that had lines of call paths

	bootText  []byte // of the last ~h#boot that was not cut
	boot      int    // the boot that the current bases belong to
	maps      []process.Snapshot
	word      process.Word
	item      Item // the current one, and its place
	at        placed
	between   Item // text between records, and its place
	betweenAt placed
	logNames  logNames
	foreign   bool      // some traces are of other systems
	scratch   located   // of a record that the reader does not cache
	err       error     // ends the pass
	stopped   bool      // the consumer wants no more items
	finished  bool      // all inputs were read
	idleSince time.Time // time of the last KindIdle item; zero if data was read since
}

func newPass(r *Reader, c consumer) *pass {
	p := &pass{r: r, consumer: c, maps: r.maps, places: places{split: r.split, groups: r.groups}}
	p.hooks = input.Hooks{Ctx: r.ctx, Idle: p.idle, Note: func(text string) { p.tally.note(NoteLoss, text) }}
	p.reader.Always32 = r.machineBy != "" && r.machine.Word() == 32
	p.reader.Bare = r.bare
	if r.only != nil {
		p.reader.Only = r.only.Match
	}
	r.process.Reset()
	r.bases.begin()
	r.pass = p
	return p
}

// run reads all inputs.
func (p *pass) run() {
	for i, in := range p.r.inputs {
		err := p.read(in, i)
		switch {
		case p.err != nil:
			err = p.err
		case p.stopped:
			return
		}
		if err == nil {
			continue
		}
		var read *ReadError
		if !p.consumer.end(ending{i, true, p.places.count}) || !p.consumer.fail(err) || !errors.As(err, &read) {
			return
		}
		p.tally.readErrors++
	}
	if _, dumps := p.consumer.(*assembler); dumps {
		p.places.endBoot()
	}
	if !p.consumer.end(ending{len(p.r.inputs) - 1, false, p.places.count}) {
		return
	}
	p.finished = true
	switch err := p.r.ctx.Err(); {
	case err != nil:
		p.consumer.fail(err)
	case p.tally.readable == 0 && p.tally.readErrors == 0 && !p.places.emptied(p.foreign) && !p.onlyHeaps():
		p.consumer.fail(p.noRecord())
	}
}

// onlyHeaps reports whether the logs have nothing but reports of allocators, and a consumer takes
// these.
func (p *pass) onlyHeaps() bool {
	a, dumps := p.consumer.(*assembler)
	return dumps && len(a.heaps) > 0 && p.tally.kinds[recording.KindUnreadable] == 0 && !p.tally.announced
}

// release forgets what only further items need: names and dumps, but not the summary.
func (p *pass) release() {
	p.consumer = ended{*p.consumer.report()}
	p.paths, p.names = nil, nil
	p.places.log, p.places.dump = recording.Log{}, nil
	p.at, p.betweenAt = placed{}, placed{}
}

// ended is the consumer of a pass that has ended.
type ended struct{ notes report }

func (e ended) item(*Item, *placed) bool { return false }
func (e ended) end(ending) bool          { return false }
func (e ended) fail(error) bool          { return false }
func (e ended) report() *report          { return &e.notes }

// read reads the log with an index.
func (p *pass) read(in *input.Input, index int) error {
	p.r.process.NewLog()
	if index > 0 {
		p.places.newLog(index)
		p.newCode()
	}
	if err := p.r.ctx.Err(); err != nil {
		return &ReadError{Name: in.Name, Err: err}
	}
	p.reader.Reset(nil, in.Name)
	src, err := in.Open(&p.hooks)
	if err != nil {
		return err
	}
	defer src.Close()
	if p.stopped {
		return input.ErrStopped
	}
	traces, err := foreign.NewReader(src, p.r.format, p.r.heapLine)
	if err != nil {
		return err
	}
	data := &counted{src: traces, pass: p, last: '\n'}
	if !in.Live {
		data.ctx = p.r.ctx
	}
	p.reader.Reset(data, in.Name)
	p.logNames.reset(&traces.Facts)
	p.r.labels.heap = traces.Memory
	p.tally.source = src
	defer func() {
		p.traces(in.Name, traces)
		p.tally.Stored += src.Stored
		p.tally.Lines += p.reader.Place().Line - 1
		p.tally.source = nil
	}()
	for {
		it, err := p.reader.Next()
		switch {
		case p.stopped: // an idle hook may have stopped the pass, and a reader between dropped its error
			return input.ErrStopped
		case err == nil:
			if p.stopped = !p.use(it); p.stopped {
				return input.ErrStopped
			}
			continue
		}
		if data.last != '\n' {
			p.tally.Lines++
		}
		if err == io.EOF || errors.Is(err, input.ErrStopped) {
			return nil
		}
		return &ReadError{in.Name, src.Compression, err}
	}
}

// counted counts the data that is read through it.
type counted struct {
	src  io.Reader
	pass *pass
	ctx  context.Context // that ends reading when it is done, nil if the source ends itself
	last byte            // that was read
}

func (c *counted) Read(b []byte) (int, error) {
	interrupted := c.ctx != nil && c.ctx.Err() != nil
	n, err := c.src.Read(b)
	switch {
	case n == 0:
		return 0, err
	case interrupted:
		return 0, c.ctx.Err()
	}
	c.last = b[n-1]
	c.pass.idleSince = time.Time{}
	c.pass.tally.Bytes += int64(n)
	return n, err
}

// traces adds notes about the traces of other systems that were read.
func (p *pass) traces(name string, r *foreign.Reader) {
	if p.hooks.Survey {
		return
	}
	systems := slices.DeleteFunc(slices.Clone(r.Systems()), func(s string) bool { return s == foreign.Own })
	if len(systems) < len(r.Systems()) {
		p.tally.note(NoteInfo, name+": lines that look like \"free heap: 41232\" are read as reports of the allocator")
	}
	if p.foreign = len(r.Systems()) > 0; !p.foreign {
		if guess, ok := r.Suggestion(); ok {
			p.tally.Guess = HeapLineGuess(guess)
		}
	}
	if len(systems) > 0 {
		p.tally.note(NoteInfo, fmt.Sprintf("%s: read as heap traces of %s", name, strings.Join(systems, ", ")))
	}
	for _, text := range r.Notes() {
		p.tally.note(NoteLoss, name+": "+printable.Text(text))
	}
	if n := r.Skipped(); n > 0 {
		p.tally.note(NoteLoss, fmt.Sprintf("%s: %s of the heap traces could not be read", name, printable.Count(n, "line")))
	}
}

// idle is called repeatedly while no data is available.
func (p *pass) idle() error {
	now := time.Now()
	switch {
	case p.stopped:
		return input.ErrStopped
	case !p.idleSince.IsZero() && (p.r.refresh == 0 || now.Sub(p.idleSince) < p.r.refresh):
		return nil
	}
	p.idleSince = now
	at := placed{}
	p.places.fill(&at, stays)
	it := Item{Item: recording.Item{Kind: recording.KindIdle, Place: p.reader.Place()}, Dump: at.count, Boot: at.boot}
	if p.stopped = !p.consumer.item(&it, &at); p.stopped {
		return input.ErrStopped
	}
	return nil
}
