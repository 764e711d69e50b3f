package heaplog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/process"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// pass is one pass over all inputs: input → recording.Reader → forms.Reader → places → names.
// It yields items with their places.
type pass struct {
	ctx     context.Context
	c       *config
	process *process.Process
	naming  bool // addresses get names
	hooks   input.Hooks
	reader  *recording.Reader
	places  places
	bases   passBases
	tally   tally
	levels  *forms.Levels       // nil in a survey
	heaps   []growth.HeapSeries // that levels has found so far
	lost    []string            // numbers of lines that are not used
	sampled int                 // the samples that these have
	yield   func(*placed) bool  // returns false once the caller wants no more items

	paths *callPaths // of the latest boot that had lines of call paths, nil before the first

	bootText  []byte // of the last ~h#boot that was not cut
	boot      int    // the boot that the current bases belong to
	given     bool   // the process has the maps that are given
	word      process.Word
	item      Item // the current one, and its place
	at        placed
	between   Item // text between records, and its place
	betweenAt placed
	logNames  logNames
	foreign   bool      // some traces are of other systems
	scratch   located   // of a record that the reader does not cache
	err       error     // ends the pass
	stopped   bool      // the caller wants no more items
	idleSince time.Time // time of the last KindIdle item; zero if data was read since
}

// learned is what earlier passes over the same logs have learned.
type learned struct {
	bases  bases
	groups map[int]groupEnd // by boot: what the dumps of a log without marks end with; nil if not known
}

// newPass returns a pass. Without naming, its items have no names.
func newPass(ctx context.Context, c *config, p *process.Process, l *learned, naming bool) *pass {
	n := &pass{ctx: ctx, c: c, process: p, naming: naming, reader: new(recording.Reader), bases: l.bases.begin(), places: places{split: c.split, groups: l.groups}}
	n.hooks = input.Hooks{Ctx: ctx, Survey: !naming, Idle: n.idle, Note: func(text string) { n.tally.note(NoteLoss, text) }}
	n.reader.Always32 = c.machineBy != "" && c.machine.Word() == 32
	if naming {
		n.levels = forms.NewLevels(c.heapLine)
	}
	n.at.item, n.betweenAt.item = &n.item, &n.between
	p.Reset()
	return n
}

// all reads all inputs, and yields their items and ends.
func (p *pass) all(yield func(*placed) bool) {
	p.yield = func(at *placed) bool {
		p.stopped = p.stopped || !yield(at)
		return !p.stopped
	}
	defer p.release()
	for i, in := range p.c.inputs {
		err := p.read(in, i)
		if p.err != nil {
			err = p.err
		} else if p.stopped {
			return
		}
		if err != nil {
			if !p.end(&placed{input: i, err: err}) || !isRead(err) {
				return
			}
			p.tally.readErrors++
		}
	}
	p.places.endBoot()
	p.findHeaps()
	last := placed{input: len(p.c.inputs) - 1, last: true, err: p.ctx.Err(), heaps: p.heaps}
	if t := &p.tally; last.err == nil && t.readable == 0 && t.readErrors == 0 && !p.places.emptied(p.foreign) {
		last.err = p.noRecord()
	}
	p.end(&last)
}

// end yields the end of a log.
func (p *pass) end(at *placed) bool {
	at.count = p.places.count
	return p.yield(at)
}

// release forgets what only further items need: names, dumps and records, but not the summary.
func (p *pass) release() {
	p.paths, p.yield, p.reader = nil, nil, nil
	p.places.log, p.places.dump = recording.Log{}, nil
	p.at, p.betweenAt = placed{}, placed{}
}

// read reads the log with an index.
func (p *pass) read(in *input.Input, index int) error {
	p.process.NewLog()
	if index > 0 {
		p.places.newLog(index)
		p.newCode()
		if p.levels != nil {
			p.levels.NewLog()
		}
	}
	if err := p.ctx.Err(); err != nil {
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
	last := byte('\n') // that was read
	data := &counted{src: src, took: func(b []byte) {
		last = b[len(b)-1]
		p.idleSince = time.Time{}
		p.tally.Bytes += int64(len(b))
	}}
	if !in.Live {
		data.ctx = p.ctx
	}
	p.reader.Reset(data, in.Name)
	traces := forms.NewReader(p.reader)
	p.logNames.reset(traces)
	p.at.memory = traces.Memory
	p.tally.source = src
	defer func() {
		p.traces(in.Name, traces)
		p.tally.Stored += src.Stored
		p.tally.Lines += p.reader.Place().Line - 1
		p.tally.source = nil
	}()
	for {
		it, err := traces.Next()
		switch {
		case p.stopped: // an idle hook may have stopped the pass, and a reader between dropped its error
			return input.ErrStopped
		case err == nil:
			if !p.use(&it) {
				return input.ErrStopped
			}
			continue
		}
		if last != '\n' {
			p.tally.Lines++
		}
		if err == io.EOF || errors.Is(err, input.ErrStopped) {
			return nil
		}
		return &ReadError{in.Name, src.Compression, err}
	}
}

// counted tells what is read through it.
type counted struct {
	src  io.Reader
	took func([]byte)
	ctx  context.Context // that ends reading when it is done, nil if the source ends itself
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
	c.took(b[:n])
	return n, err
}

// traces adds notes about the traces of other systems that were read.
func (p *pass) traces(name string, r *forms.Reader) {
	if !p.naming {
		return
	}
	systems := r.Systems
	if p.foreign = p.foreign || len(systems) > 0; len(systems) > 0 {
		p.tally.note(NoteInfo, fmt.Sprintf("%s: read as heap traces of %s", name, strings.Join(systems, ", ")))
	}
	for _, text := range r.Notes {
		p.tally.note(NoteLoss, name+": "+printable.Text(text))
	}
	if n := r.Skipped; n > 0 {
		p.tally.note(NoteLoss, fmt.Sprintf("%s: %s of the heap traces could not be read", name, printable.Count(n, "line")))
	}
}

// idle is called repeatedly while no data is available.
func (p *pass) idle() error {
	now := time.Now()
	switch {
	case p.stopped:
		return input.ErrStopped
	case !p.idleSince.IsZero() && (p.c.refresh == 0 || now.Sub(p.idleSince) < p.c.refresh):
		return nil
	}
	p.idleSince = now
	at := placed{}
	p.places.fill(&at, stays)
	if p.c.refresh > 0 {
		p.findHeaps()
	}
	at.heaps = p.heaps
	at.item = &Item{Item: recording.Item{Kind: recording.KindIdle, Place: p.reader.Place()}, Dump: at.count, Boot: at.boot}
	if !p.yield(&at) {
		return input.ErrStopped
	}
	return nil
}
