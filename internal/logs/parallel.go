package logs

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// Fork handles chunks of a log in a goroutine of its own, beside others like it: see
// dump.Chunks. It handles chunks that change nothing of how later lines are read, and need
// nothing that is not known yet. Any other is handled in the order of the log, by the
// Handler, as if the Fork had not seen it.
type Fork struct {
	// Begin begins a chunk, also after one that was abandoned.
	Begin func()
	// Record, Text and Unreadable are as in Handler. Events are records, unless
	// Events is false: then the Handler gets a chunk that has some.
	Record     func(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error
	Text       func(p []byte) error
	Unreadable func(rec *dump.Record) error
	Events     bool
	// Emit is called in the order of the log when a chunk counts.
	Emit func() error

	// stack, if not nil, is given records instead of Record, before anything is looked
	// up. In the order of the log, placed is called for record i of the chunk, counted
	// from 0, when Reader.Verdict tells its dump. If exclusive, that changes what forks
	// read.
	stack     func(p *part, rec *dump.Record)
	placed    func(p *part, i int)
	exclusive func() bool
	// known reports whether stack needs no addresses of a record that came before.
	known func(p *part, memo uint64) bool
}

// state is what decides how the records of a chunk are read.
type state struct {
	headers dump.State
	space   *symbol.Space
	epoch   int
}

func (r *Reader) currentState() state {
	return state{r.scanner.State(), r.Process.Maps.Space(), r.epoch}
}

// part is what a lane of dump.Chunks makes of a chunk.
type part struct {
	r    *Reader
	fork Fork
	sc   *dump.Scanner

	offset  int64 // of the chunk
	plain   bool  // the fork handled all of it
	state   state // for which it did
	look    look
	found   int64
	counts  symbol.Counts
	process symbol.Process // for records without symbols
	addrs   []symbol.FrameAddr
	records []position
	scratch dump.Record
	inLine  bool // text is in front in this line, and records that dump.Sequence is not given
}

// look is how the records of a chunk are looked up: a copy, since what else a Reader has
// is written for every record, and processors wait for each other where they share memory
// that one of them writes.
type look struct {
	symbols  bool
	sequence *dump.Sequence
	maps     int64  // line from which other maps hold
	bias     uint64 // Reader.offset
}

// position is where in its chunk a record is.
type position struct {
	line     int64
	from, to int32
}

// errNotPlain ends the scan of a chunk that the Handler has to handle.
var errNotPlain = errors.New("not plain")

// inParallel reports whether a source can be read by several goroutines. One that may
// pause cannot if what was read is to be written at once.
func (r *Reader) inParallel(s *source, h *Handler) bool {
	return h.Fork != nil && r.raw == nil && r.window == nil && !r.partial && !(s.live && h.Flush != nil)
}

// parallel runs over a log by forks of the handler.
func (r *Reader) parallel(s *source, src io.Reader, name string, h Handler) error {
	r.now = r.currentState()
	if r.parts == nil {
		for worker := range dump.Workers() {
			first := r.newPart(h, worker, nil)
			r.parts = append(r.parts, first)
			for range dump.Lanes - 1 {
				r.parts = append(r.parts, r.newPart(h, worker, first.sc))
			}
		}
	}
	return dump.NewChunks(src, name).Each(len(r.parts)/dump.Lanes, func(lane int, c *dump.Chunk) {
		r.reading.RLock()
		defer r.reading.RUnlock()
		p := r.parts[lane]
		p.plain = p.scan(c) == nil
	}, func(lane int, c *dump.Chunk) error {
		return r.apply(r.parts[lane], c, h) // src ends with r.ctx
	})
}

// newPart returns a part for a lane of a worker. first is the scanner of its first lane,
// nil for that one.
func (r *Reader) newPart(h Handler, worker int, first *dump.Scanner) *part {
	p := &part{r: r, fork: h.Fork(worker), sc: dump.NewScanner(nil, "")}
	p.process.Lossless = r.Process.Lossless
	r.options(p.sc)
	if p.fork.known != nil {
		p.sc.Remember(first, func(memo uint64) bool { return p.fork.known(p, memo) })
	}
	p.sc.Text = p
	return p
}

// scan hands a chunk to the fork, unless it is not plain. It changes nothing but p.
func (p *part) scan(c *dump.Chunk) error {
	p.found, p.state, p.records = 0, p.r.now, p.records[:0]
	p.counts, p.process.Counts = symbol.Counts{}, symbol.Counts{}
	*p.sc.Tally() = dump.Tally{}
	p.offset, p.inLine = c.Offset, false
	r := p.r
	p.look = look{r.flags.Named() || p.state.space != nil, r.sequence, math.MaxInt64, r.offset}
	if len(r.maps) > 0 {
		p.look.maps = r.maps[0].from
	}
	if c.Rest != nil || endsMidLine(c) {
		return errNotPlain
	}
	p.fork.Begin()
	p.sc.ResetChunk(c)
	p.sc.SetState(p.state.headers)
	for p.sc.Next() {
		if err := p.record(p.sc.Record()); err != nil {
			return err
		}
	}
	return p.sc.Err()
}

// record is Reader.record for a part.
func (p *part) record(rec *dump.Record) error {
	f := &p.fork
	if rec.Kind == dump.Header && rec.Err == nil || rec.Kind == dump.Event && !f.Events || rec.Line >= p.look.maps {
		return errNotPlain
	}
	p.found++
	if rec.Err != nil && !rec.Cut {
		return call(f.Unreadable, rec)
	}
	if rec.Kind != dump.Event && p.look.sequence != nil {
		p.inLine = false
		from := int32(rec.Offset - p.offset)
		p.records = append(p.records, position{rec.Line, from, from + int32(len(rec.Text))})
	}
	if bias := p.look.bias; bias != 0 {
		for i := range rec.Stack.PCs {
			rec.Stack.PCs[i] += bias
		}
	}
	if f.stack != nil {
		f.stack(p, rec)
		return nil
	}
	if !p.look.symbols {
		return f.Record(rec, p.process.Recover(&rec.Stack, rec.Blob), nil)
	}
	var recovery symbol.Recovery
	var ok bool
	p.addrs, recovery, ok = p.r.Process.ResolveKnown(&p.counts, p.addrs[:0], &rec.Stack, rec.Blob, p.state.space)
	if !ok {
		return errNotPlain
	}
	return f.Record(rec, recovery, p.addrs)
}

// Write takes text between records.
func (p *part) Write(text []byte) (int, error) {
	if p.inLine && text[0] != '\n' { // together, they may be a mark
		return 0, errNotPlain
	}
	q := p.look.sequence
	p.inLine = q != nil && text[len(text)-1] != '\n'
	if len(text) > 1 || text[0] != '\n' {
		if mayBeMarkup(text) || q != nil && q.Marks(text) {
			return 0, errNotPlain
		}
	}
	if p.fork.Text != nil {
		return len(text), p.fork.Text(text)
	}
	return len(text), nil
}

// mayBeMarkup reports whether text may have a part of "{{{".
func mayBeMarkup(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '{')
		if i < 0 {
			return false
		}
		if text = text[i+1:]; len(text) == 0 || text[0] == '{' {
			return true
		}
	}
}

// apply has what the fork made of a chunk count, if it is right, or else hands the chunk
// to the handler.
func (r *Reader) apply(p *part, c *dump.Chunk, h Handler) error {
	turns := r.bases != nil && r.sequence.Boot() != r.boot // see turnToBoot
	if !p.plain || p.state != r.now || r.midLine || turns || !r.wordStays() {
		return r.inOrder(c, h)
	}
	r.scanner.Tally().Take(p.sc.Tally())
	r.Process.Counts.Add(&p.counts)
	r.Process.Counts.Add(&p.process.Counts)
	r.found += p.found
	if p.fork.exclusive != nil && p.fork.exclusive() {
		r.reading.Lock()
		defer r.reading.Unlock()
	}
	rec := &p.scratch
	for i, at := range p.records {
		rec.Place = dump.Place{File: c.File, Line: at.line, Offset: c.Offset + int64(at.from)}
		rec.Text = c.Data[at.from:at.to]
		r.verdict = r.sequence.Record(rec)
		if p.fork.placed != nil {
			p.fork.placed(p, i)
		}
	}
	if p.fork.Emit == nil {
		return nil
	}
	return p.fork.Emit()
}

// inOrder hands a chunk to the handler, while no fork reads what that may change.
func (r *Reader) inOrder(c *dump.Chunk, h Handler) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.scanner.ResetChunk(c)
	for r.scanner.Next() {
		if err := r.record(r.scanner.Record(), h); err != nil {
			return err
		}
	}
	if len(c.Data) > 0 {
		r.midLine = endsMidLine(c)
	}
	r.now = r.currentState()
	return r.scanner.Err()
}

// endsMidLine reports whether a chunk's last line has no end.
func endsMidLine(c *dump.Chunk) bool {
	n := len(c.Data)
	return n > 0 && c.Data[n-1] != '\n'
}
