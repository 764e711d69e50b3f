package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Reader runs over the records of the logs that a command line names.
type Reader struct {
	Process symbol.Process
	// Note is given what the user should hear; nil if nothing. Set before Open.
	Note func(format string, args ...any)

	// Status is given by Profile how far it is, before it waits for more of a live
	// log; nil if that is not to be shown.
	Status func(text string)

	flags   *Flags
	ctx     context.Context
	stdin   io.Reader
	sources []source
	maps    []snapshot // of --maps that hold from a later line on
	offset  uint64     // of the section that -j names
	cleanup []func()

	raw       func(*dump.Record) // in a pass that resolves nothing
	verdict   dump.Verdict
	window    *window // of --dump, nil if records of all dumps are handed on
	scanner   *dump.Scanner
	sequence  *dump.Sequence
	markup    *symbol.MarkupWriter
	badMaps   int
	bases     map[int][]symbol.Base // by boot, as far as inferred
	boot      int
	epoch     int  // counts changes of bases
	partial   bool // bases were inferred from what there was of a live log
	final     bool // the pass over the records is the last one
	retry     int  // distinct addresses at which bases are inferred again
	seen      map[symbol.ReturnAddr]bool
	scanned   int   // logs before the current one
	found     int64 // records
	begun     int   // ~h#begin lines
	announced bool  // one of them gives a number of records
	allocated bool  // a ~h#total says that there were allocations
	damaged   []error
	word      word

	events     *profile.Events
	badFrees   []dump.Place
	lostEvents uint64
	process    string // of the last ~h#boot, "" if it names none
	unended    bool   // there are events behind its last dump
	addrs      []symbol.FrameAddr

	parts   []*part
	reading sync.RWMutex // held by forks while they read what follows, and Process
	now     state
	midLine bool // the last chunk that the handler had ended inside a line
}

// Handler is what a pass over the records calls, in the order of the log. Any of
// it may be nil.
type Handler struct {
	// Text is given what stands between records.
	Text func(p []byte) error
	// Record is given each record with a stack that could be read, at least in part.
	// Addrs are nil where nothing is looked up.
	Record func(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error
	// Known, if it returns true, has dealt with a record that came before: Record is
	// not called for it. Record.Memo says which it is.
	Known func(rec *dump.Record) bool
	// Event is given allocation events.
	Event func(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error
	// Header is given marks of recordings.
	Header func(rec *dump.Record) error
	// Unreadable is given records that could not be read.
	Unreadable func(rec *dump.Record) error
	// Flush is called before a read that may wait.
	Flush func() error
	// Sequence, if true, finds dumps and boots: see Reader.Sequence.
	Sequence bool
	// Fork, if not nil, returns what does the work of the handler for parts of the log,
	// by several goroutines.
	Fork func(worker int) Fork
}

// Open opens what the flags name. The context ends live input. Close closes all.
func Open(ctx context.Context, f *Flags, args []string, stdin io.Reader, note func(string, ...any)) (r *Reader, err error) {
	r = &Reader{flags: f, ctx: ctx, stdin: stdin, Note: note}
	if f.Quiet || note == nil {
		r.Note = func(string, ...any) {}
	}
	if err := r.openAll(args); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) openAll(args []string) (err error) {
	f, files := r.flags, &r.Process.Files
	files.DebugDirs, files.Sysroots, files.Adjust = f.DebugDirs, f.Sysroots, f.adjust
	r.Process.Lossless = f.machSet && !f.mach.Lossy()
	if f.machSet {
		files.SetWord(f.mach.Word(), "--machine "+f.Machine)
	}
	for _, e := range f.Exes {
		spec, err := symbol.ParseFileSpec(e)
		if err != nil {
			return fmt.Errorf("-e %w", err)
		}
		if err := files.AddFile(spec); err != nil {
			return fmt.Errorf("-e %w", err)
		}
	}
	if f.Section != "" {
		if r.offset, err = files.Files()[0].SectionAddr(f.Section); err != nil {
			return fmt.Errorf("-j: %w", err)
		}
	}
	if r.maps, err = r.readSnapshots(); err != nil {
		return err
	}
	if r.sources, err = r.findSources(args); err != nil {
		return err
	}
	files.SetBases(nil)
	if len(r.maps) == 0 && len(files.FilesWithoutBase()) > 0 && f.Section == "" {
		return r.inferBases()
	}
	return nil
}

// Close closes all files and removes temporary ones.
func (r *Reader) Close() {
	r.Process.Close()
	for _, f := range r.cleanup {
		f()
	}
	r.cleanup = nil
}

// Symbols reports whether addresses are looked up at this moment.
func (r *Reader) Symbols() bool { return r.flags.Named() || r.Process.Maps.Space() != nil }

// Sequence returns the dumps of the pass so far.
func (r *Reader) Sequence() *dump.Sequence { return r.sequence }

// Tally returns what the last pass met.
func (r *Reader) Tally() *dump.Tally { return r.scanner.Tally() }

// Found returns how many records the last pass met, readable or not.
func (r *Reader) Found() int64 { return r.found }

// Damaged returns why logs could not be read to their ends.
func (r *Reader) Damaged() []error { return r.damaged }

// Verdict returns to which dump the last record belongs, if dumps are looked for.
func (r *Reader) Verdict() dump.Verdict { return r.verdict }

// Each runs over the records of all logs. A log that cannot be read to its end
// counts as far as it could be: see Damaged.
func (r *Reader) Each(h Handler) error {
	r.final = true
	return r.pass(h)
}

// passRaw calls each with the records that could be read, without symbols.
func (r *Reader) passRaw(each func(*dump.Record)) error {
	r.raw = each
	defer func() { r.raw = nil }()
	return r.pass(Handler{Sequence: true})
}

func (r *Reader) pass(h Handler) error {
	r.scanner = dump.NewScanner(nil, "")
	r.found, r.damaged, r.badMaps = 0, nil, 0
	r.begun, r.announced, r.allocated = 0, false, false
	r.sequence, r.boot, r.word = nil, 0, word{}
	if h.Sequence || r.bases != nil {
		r.sequence = &dump.Sequence{Split: r.flags.splitRE}
	}
	r.markup = &symbol.MarkupWriter{Timeline: &r.Process.Maps, Bad: r.badMarkup}
	r.options(r.scanner)
	if h.Known != nil {
		r.scanner.Remember(nil, nil)
	}
	r.scanner.Text = &text{r, h.Text}
	r.parts, r.midLine = nil, false
	for i := range r.sources {
		if r.ctx.Err() != nil {
			for _, s := range r.sources[i:] {
				r.damaged = append(r.damaged, &dump.ReadError{Name: s.place(), Err: dump.ErrInterrupted})
			}
			break
		}
		if err := r.one(&r.sources[i], i, h); err != nil {
			return err
		}
	}
	return nil
}

// options sets how a scanner reads.
func (r *Reader) options(sc *dump.Scanner) {
	sc.Bare, sc.Recordings = r.flags.Bare, true
	sc.Word32 = r.flags.machSet && r.flags.mach.Word() == 32
}

// one runs over one log.
func (r *Reader) one(s *source, i int, h Handler) error {
	in, err := s.open()
	if err != nil {
		var read *dump.ReadError
		if i > 0 && errors.As(err, &read) {
			r.damaged = append(r.damaged, err)
			return nil
		}
		return err
	}
	defer in.Close()
	var src io.Reader = in
	if !s.live {
		src = untilDone{in, r.ctx}
	}
	if r.flags.onlyRE != nil {
		src = dump.Only(src, r.flags.onlyRE, r.flags.dropOnly)
	}
	if h.Flush != nil && s.live {
		src = flushing{src, h.Flush}
	}
	if r.sequence != nil && i > 0 {
		r.sequence.NewLog()
	}
	r.scanned = i
	r.scanner.Reset(src, in.Name)
	if r.inParallel(s, &h) {
		err = r.parallel(s, src, in.Name, h)
	} else if err = r.scan(h, s.live); err == nil {
		err = r.scanner.Err()
	}
	r.markup.Reset()
	var read *dump.ReadError
	if errors.As(err, &read) {
		r.damaged = append(r.damaged, err)
		return nil
	}
	return err
}

// untilDone ends with the context, with an error if the log has more.
type untilDone struct {
	*dump.Input
	ctx context.Context
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() == nil {
		return u.Input.Read(p)
	}
	if n, err := u.Input.Read(p[:min(len(p), 1)]); n == 0 {
		return 0, err
	}
	return 0, &dump.ReadError{Name: u.Name, Compression: u.Compression, Stored: u.Stored(), Err: dump.ErrInterrupted}
}

// scan runs over what the scanner has. What is live can be left anywhere.
func (r *Reader) scan(h Handler, live bool) error {
	for r.scanner.Next() {
		if err := r.record(r.scanner.Record(), h); err != nil || live && r.ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// record hands on one record.
func (r *Reader) record(rec *dump.Record, h Handler) error {
	if rec.Kind == dump.Header && rec.Err == nil {
		if r.sequence != nil {
			r.sequence.Header(rec)
		}
		switch rec.Header.Verb {
		case codec.VerbBoot:
			r.word.boot(rec)
		case codec.VerbBegin, codec.VerbEnd:
			if rec.Header.Verb == codec.VerbBegin {
				r.begun++
			}
			n, _ := rec.Header.Uint("n")
			r.announced = r.announced || n > 0
		case codec.VerbTotal:
			n, _ := rec.Header.Uint("allocs")
			r.allocated = r.allocated || n > 0
		}
		switch rec.Header.Verb { // what was known of modules ends here (BT-REC-1, BT-REC-4)
		case codec.VerbBoot, codec.VerbMap:
			if len(r.flags.Maps) == 0 {
				r.Process.Maps.Reset()
			}
		}
		return call(h.Header, rec)
	}
	r.found++
	if rec.Err != nil && !rec.Cut {
		if r.window != nil && !r.window.has(rec, r.scanned) {
			return nil
		}
		return call(h.Unreadable, rec)
	}
	if rec.Kind != dump.Event && r.sequence != nil {
		r.verdict = r.sequence.Record(rec)
	}
	r.word.record(rec)
	if r.raw != nil {
		if err := r.setWord(); err != nil {
			return err
		}
		r.raw(rec)
		return nil
	}
	if r.window != nil && !r.window.has(rec, r.scanned) {
		return nil
	}
	for len(r.maps) > 0 && r.maps[0].from <= rec.Line {
		r.Process.Maps.Set(r.maps[0].list)
		r.maps = r.maps[1:]
	}
	if err := r.setWord(); err != nil {
		return err
	}
	if r.offset != 0 {
		for i := range rec.Stack.PCs {
			rec.Stack.PCs[i] += r.offset
		}
	}
	if r.bases != nil && r.sequence != nil && rec.Kind != dump.Event {
		r.turnToBoot()
	}
	each := h.Record
	if rec.Kind == dump.Event {
		each = h.Event
	}
	if each == nil {
		return nil
	}
	if r.partial {
		r.inferAgain(rec)
	}
	if rec.Memo != 0 && h.Known != nil && h.Known(rec) {
		return nil
	}
	if !r.Symbols() {
		return each(rec, r.Process.Recover(&rec.Stack, rec.Blob), nil)
	}
	var recovery symbol.Recovery
	r.addrs, recovery = r.Process.Resolve(r.addrs[:0], &rec.Stack, rec.Blob)
	return each(rec, recovery, r.addrs)
}

func call(f func(*dump.Record) error, rec *dump.Record) error {
	if f == nil {
		return nil
	}
	return f(rec)
}

// text passes on the text between records, to those who read it.
type text struct {
	r    *Reader
	next func(p []byte) error
}

func (t *text) Write(p []byte) (int, error) {
	if t.r.sequence != nil {
		t.r.sequence.Text(p)
	}
	if _, err := t.r.markup.Write(p); err != nil {
		return 0, err
	}
	if t.next != nil {
		if err := t.next(p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// badMarkup says the first time that markup was not understood.
func (r *Reader) badMarkup(err error) {
	if r.badMaps++; r.badMaps == 1 && r.final {
		r.Note("markup %v", err)
	}
}

// Outcome returns how a command ends that has read all there is: an error if
// nothing could be read, or cli.Short if the data is damaged or incomplete.
func (r *Reader) Outcome() error {
	t := r.Tally()
	switch {
	case r.found == 0 && len(r.damaged) > 0:
		return r.damaged[0]
	case r.found == 0 && r.ctx.Err() != nil:
		return nil
	case r.found == 0 && r.begun > 0:
		return errors.New(r.empty())
	case r.found == 0:
		if len(r.sources) > 1 {
			return fmt.Errorf("no records in %d logs: looked for %s and %s", len(r.sources), codec.LeadIn, codec.LeadInDecoded)
		}
		return fmt.Errorf("%s: no records in %s: looked for %s and %s", r.sources[0].place(), cli.Count(t.Bytes, "byte"), codec.LeadIn, codec.LeadInDecoded)
	case t.Read+t.Cut == 0 && r.found == 1:
		return errors.New("the only record could not be read")
	case t.Read+t.Cut == 0:
		return fmt.Errorf("none of %s could be read", cli.Count(r.found, "record"))
	case len(r.damaged) > 0, r.flags.Strict && t.Unreadable+t.Cut > 0:
		return cli.Exit(cli.Short)
	}
	return nil
}

// empty returns what may be wrong with a log of dumps without any record.
func (r *Reader) empty() string {
	text := fmt.Sprintf("%d dumps, all empty", r.begun)
	if r.begun == 1 {
		text = "1 dump, and it is empty"
	}
	switch {
	case r.announced:
		text = fmt.Sprintf("%s, but none of the records that they announce", cli.Count(r.begun, "dump"))
	case !r.allocated:
		text += ": does malloc reach the library (-Wl,--wrap=malloc and so on)?"
	}
	return text
}

// window is the dumps of --dump, for output that is not by dump.
type window struct {
	starts   []dump.Dump
	from, to int // in starts
	at       int
}

// has reports whether a record is in the window; records come in order.
func (w *window) has(rec *dump.Record, log int) bool {
	for w.at+1 < len(w.starts) {
		next := &w.starts[w.at+1]
		if log < next.Log || log == next.Log && rec.Offset < next.Offset {
			break
		}
		w.at++
	}
	return w.from <= w.at && w.at < w.to
}

// Select restricts Each to the dumps of --dump. It reads the logs once for that, a
// live one to its end.
func (r *Reader) Select() error {
	if err := r.spool(true); err != nil {
		return err
	}
	if err := r.passRaw(func(*dump.Record) {}); err != nil {
		return err
	}
	w := &window{starts: r.sequence.Dumps}
	var err error
	if w.from, w.to, err = r.flags.dumps.Of(len(w.starts)); err != nil {
		return err
	}
	r.window = w
	r.Process.Maps.Reset()
	return nil
}
