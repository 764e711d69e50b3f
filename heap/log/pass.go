package heaplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/log/internal/foreign"
	"github.com/lwsbt/lwsbt/heap/log/internal/input"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// bufSize is the size of the log buffer in bytes. It is larger than the longest record, and
// fits a processor's cache.
const bufSize = 256 << 10

// minBuf is the buffer size for a short log, in bytes.
const minBuf = 16 << 10

// consumer receives the items of a pass.
type consumer interface {
	// item takes an item. It returns false to end the pass.
	item(*pass, *Item) bool
	// end is called at the end of all inputs, and where an input cannot be read to its end.
	end(*pass) bool
	// fail takes an error. If fail returns true after a *ReadError, the pass continues.
	fail(error) bool
}

// pass is one pass over all inputs: input → scanner → sequence and process → consumer.
type pass struct {
	r        *Reader
	consumer consumer
	hooks    input.Hooks
	scanner  scanner
	sequence *sequence
	tally    tally

	paths     *callPaths        // of the latest boot that had lines of call paths, nil if none had
	names     []*callpath.Names // of each boot that had lines of call paths
	lostLines int64             // before this line of call paths

	log       int // index of the input
	boot      int // the boot that the current bases belong to
	maps      []snapshot
	word      word
	inLine    bool      // the next data continues a line, for Only and Bare
	keep      bool      // Only matches that line
	err       error     // ends the pass
	damaged   bool      // the input ended with an error, which is yielded next
	stopped   bool      // the consumer wants no more items
	finished  bool      // all inputs were read
	idleSince time.Time // time of the last Idle; zero if data was read since
}

func newPass(r *Reader, c consumer) *pass {
	p := &pass{r: r, consumer: c, maps: r.maps, sequence: &sequence{split: r.split, groups: r.groups}}
	p.hooks = input.Hooks{Ctx: r.ctx, Idle: p.idle, Note: func(text string) { p.tally.note(NoteLoss, text) }}
	p.scanner.use = p.use
	p.scanner.always32 = r.machineBy != "" && r.machine.Word() == 32
	r.process.Reset()
	r.bases.begin()
	r.pass = p
	return p
}

// run reads all inputs.
func (p *pass) run() {
	for i, in := range p.r.inputs {
		p.log, p.damaged = i, false
		err := p.read(in)
		if p.err != nil {
			err = p.err
		}
		if errors.Is(err, input.ErrStopped) {
			return
		}
		p.damaged = err != nil
		if err == nil {
			continue
		}
		var read *ReadError
		if !p.consumer.end(p) || !p.consumer.fail(err) || !errors.As(err, &read) {
			return
		}
		p.tally.readErrors++
	}
	p.damaged = false
	if !p.consumer.end(p) {
		return
	}
	p.finished = true
	switch err := p.r.ctx.Err(); {
	case err != nil:
		p.consumer.fail(err)
	case p.tally.readable == 0 && p.tally.readErrors == 0 && !p.sequence.emptied():
		p.consumer.fail(p.noRecord())
	}
}

// read reads one log.
func (p *pass) read(in *input.Input) error {
	p.r.process.NewLog()
	if p.log > 0 {
		p.sequence.newLog(p.log)
		p.newCode()
	}
	if err := p.r.ctx.Err(); err != nil {
		return &ReadError{Name: in.Name, Err: err}
	}
	p.scanner.begin(in.Name)
	src, err := in.Open(&p.hooks)
	if err != nil {
		return err
	}
	if p.stopped {
		src.Close()
		return input.ErrStopped
	}
	traces, err := foreign.NewReader(src, p.r.format)
	if err != nil {
		return err
	}
	defer func() {
		p.traces(in.Name, traces)
		p.tally.Stored += src.Stored
		p.tally.Lines += p.scanner.at.Line - 1
		p.tally.source = nil
		src.Close()
	}()
	p.tally.source = src
	p.inLine = false
	buf := make([]byte, minBuf)
	end := 0
	last := byte('\n')
	for empty := 0; err == nil; {
		var n int
		interrupted := !in.Live && p.r.ctx.Err() != nil
		if n, err = traces.Read(buf[end:]); interrupted && n > 0 {
			return &ReadError{in.Name, src.Compression, p.r.ctx.Err()}
		}
		if empty++; n > 0 {
			empty, last, p.idleSince = 0, buf[end+n-1], time.Time{}
		} else if empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
		p.tally.Bytes += int64(n)
		end += n
		took, ok := p.feed(buf[:end], err == nil)
		if !ok {
			return input.ErrStopped
		}
		full := end == len(buf)
		end = copy(buf, buf[took:end])
		if full && len(buf) < bufSize {
			buf = append(make([]byte, 0, 2*len(buf)), buf...)
			buf = buf[:cap(buf)]
		}
	}
	if last != '\n' {
		p.tally.Lines++
	}
	switch {
	case err == io.EOF:
		return nil
	case errors.Is(err, input.ErrStopped):
		return err
	}
	return &ReadError{in.Name, src.Compression, err}
}

// traces adds notes about the traces of other systems that were read.
func (p *pass) traces(name string, r *foreign.Reader) {
	if p.hooks.Survey || r.Format() == "" {
		return
	}
	p.tally.note(NoteInfo, fmt.Sprintf("%s: read as heap traces of %s", name, r.Format()))
	if n := r.Skipped(); n > 0 {
		p.tally.note(NoteLoss, fmt.Sprintf("%s: %s of the heap traces could not be read", name, printable.Count(n, "line")))
	}
}

// feed passes data to the scanner: line by line, if lines count. It skips the lines that Only does
// not match.
func (p *pass) feed(data []byte, more bool) (took int, ok bool) {
	s, only, bare := &p.scanner, p.r.only, p.r.bare
	if only == nil && !bare {
		return s.scan(data, more)
	}
	for took < len(data) {
		line, open := data[took:], more
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, open = line[:i+1], false
		}
		begins := !p.inLine
		if begins && open && len(line) < bufSize {
			return took, true
		}
		if begins {
			p.keep = only == nil || only.Match(bytes.TrimRight(line, "\r\n"))
		}
		p.inLine = line[len(line)-1] != '\n'
		n, ok := len(line), true
		switch {
		case !p.keep:
			s.skip(line)
		case bare && begins && !open:
			n, ok = s.bareLine(line)
		default:
			n, ok = s.scan(line, open)
		}
		if took += n; !ok || n < len(line) {
			return took, ok
		}
	}
	return took, true
}

// idle is called repeatedly while no data is available.
func (p *pass) idle() error {
	if p.stopped { // a reader between may have dropped the error
		return input.ErrStopped
	}
	now := time.Now()
	if !p.idleSince.IsZero() && (p.r.refresh == 0 || now.Sub(p.idleSince) < p.r.refresh) {
		return nil
	}
	p.idleSince = now
	if p.stopped = !p.consumer.item(p, &Item{Kind: KindIdle, Place: p.scanner.at}); p.stopped {
		return input.ErrStopped
	}
	return nil
}

// use takes an item from the scanner.
func (p *pass) use(it *Item) bool {
	switch it.Kind {
	case KindText:
		p.text(it.Text)
	case KindMark:
		p.mark(it)
	case KindUnreadable:
	case KindPaths:
		p.pathLine(it)
	case KindPathEvents:
		p.eventLine(it)
	default:
		p.record(it)
	}
	p.tally.add(it)
	if p.err != nil {
		return false
	}
	return p.consumer.item(p, it)
}

// text processes text between records.
func (p *pass) text(text []byte) {
	p.sequence.text(text)
	boots, err := p.r.process.Markup(text)
	if boots {
		p.sequence.newBoot(Place{})
	}
	if err != nil && !p.hooks.Survey {
		p.tally.badMarkup(err)
	}
}

// mark processes a ~h# line.
func (p *pass) mark(it *Item) {
	p.sequence.header(it)
	p.r.process.Marked()
	switch given := len(p.r.maps) > 0; it.Header.Verb {
	case codec.VerbBoot:
		p.word.boot(it)
		if !given {
			p.r.process.Reset()
			p.boot = 0
		}
		p.newCode()
	case codec.VerbMap: // the modules known so far end here (BT-REC-4)
		if !given {
			p.r.process.Remap()
		}
	}
}

// record processes a record with a stack.
func (p *pass) record(it *Item) {
	if it.Kind == KindEvent {
		p.sequence.events = true
	} else {
		p.sequence.endLine()
		p.sequence.boot = p.sequence.bootNumber()
		p.sequence.record(it)
	}
	p.word.record(it)
	if !p.locatable(it) || p.hooks.Survey {
		return
	}
	if p.r.bases.refine(p.r, it) && p.tally.readable > 0 {
		p.tally.note(NoteSymbols, fmt.Sprintf("no load base was known before %s:%d: addresses of earlier records have no names", it.File, it.Line))
	}
	p.resolve(it)
}

// locatable prepares the process for the addresses of an item. It returns false after an
// error, which ends the pass.
func (p *pass) locatable(it *Item) bool {
	for len(p.maps) > 0 && p.maps[0].from <= it.Line {
		p.r.process.Map(p.maps[0].list)
		p.maps = p.maps[1:]
	}
	if p.err = p.setWord(); p.err != nil {
		return false
	}
	if boot := p.sequence.bootNumber(); boot != p.boot {
		p.boot = boot
		p.r.bases.setBoot(p.r.process, boot)
	}
	return true
}

// newCode begins a boot with its ~h#boot line, or a log.
func (p *pass) newCode() {
	p.r.process.ResetCode()
	if p.paths != nil {
		p.paths.closed = true
	}
}

// callPaths returns the call paths of this boot.
func (p *pass) callPaths() *callPaths {
	boot := p.sequence.bootNumber()
	if c := p.paths; c == nil || c.closed {
		p.paths = newCallPaths(p.r, p.sequence.bootLine, c, &p.tally.outside)
		if n := len(p.names); n < len(p.r.names) {
			p.paths.names = p.r.names[n]
		}
		p.names = append(p.names, p.paths.names)
		if p.paths.problem != "" {
			p.tally.note(NoteSymbols, p.paths.problem)
		}
	} else if boot != c.boot { // a boot without a ~h#boot line
		c.lines, c.events = callpath.Sequence{}, callpath.Sequence{}
	}
	p.paths.boot = boot
	return p.paths
}

// pathLine processes a line of call paths.
func (p *pass) pathLine(it *Item) {
	p.sequence.endLine()
	p.sequence.boot = p.sequence.bootNumber()
	if !p.locatable(it) {
		return
	}
	c := p.callPaths()
	p.lostLines = c.lines.Line(uint64(it.Paths.Seq), 1<<12)
	frames, values := c.line(it.Paths, !p.hooks.Survey)
	p.tally.states[symbol.Exact] += frames
	p.sequence.paths(it, values)
}

// eventLine processes a line of events.
func (p *pass) eventLine(it *Item) {
	p.sequence.endLine()
	p.sequence.events = true
	if !p.locatable(it) {
		return
	}
	c := p.callPaths()
	lost := c.events.Line(uint64(it.events.Seq), 1<<18)
	p.tally.lostEventLines += lost
	if it.events.EventsHead.Next > c.next && c.events.Read > 1 {
		p.tally.lostAllocs += it.events.EventsHead.Next - c.next
	}
	var e callpath.Event
	for it.events.Next(&e) {
		if e.Kind == callpath.Lost {
			p.tally.LostEvents += clampInt(min(e.Count, uint64(math.MaxInt64-p.tally.LostEvents)))
		}
	}
	c.next = it.events.After()
	it.events.Rewind()
}

// setWord rejects ELF files whose address size differs from the log's.
func (p *pass) setWord() error {
	if p.r.machineBy != "" {
		return nil
	}
	bits, by := p.word.bits, p.word.by
	if bits == 0 {
		bits, by = p.r.process.MapWord(), "its memory map has addresses over 32 bits"
	}
	if err := p.r.process.SetWord(bits, by); err != nil {
		return &OptionError{"Exe", err}
	}
	return nil
}

// resolve names the addresses of a record, unless the cache has them.
func (p *pass) resolve(it *Item) {
	d := it.decoded
	if generation := p.r.process.Generation() + 1; d.generation != generation {
		d.generation = generation
		d.hasPath = false
		p.lookUp(d, it)
	}
	it.Allocs = d.allocs[:]
	t := &p.tally
	for state := range d.states {
		t.states[state] += int64(d.states[state])
	}
	t.ambiguous += int64(d.ambiguous)
	if d.allocs[0].SizeLost {
		t.lostSizes++
	}
}

// lookUp is resolve for addresses that are not in the cache.
func (p *pass) lookUp(d *decoded, it *Item) {
	s := it.Stack
	a := &d.allocs[0]
	a.Stack = p.r.process.Resolve(a.Stack[:0], s, it.Blob)
	a.Value = profile.Value{Bytes: s.Size, Count: 1}
	a.SizeLost = s.Marks.LossySize && !p.r.symbols.Lossless
	d.states, d.ambiguous = [3]int32{}, 0
	for _, addr := range a.Stack {
		d.states[addr.State]++
		if addr.State == symbol.Lost && addr.Ambiguous() {
			d.ambiguous++
		}
	}
}
