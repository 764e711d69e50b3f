package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/logflags"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// session holds the flags that several subcommands have, and the input.
type session struct {
	logflags.Flags
	view   profile.View // a subcommand sets the default of View.By
	by     string
	weight string
	rows   cli.Natural // a subcommand sets the default
	output string
	json   bool
	at     string
	noFold bool

	c       *cobra.Command
	files   []string // arguments
	label   heaplog.Label
	w       profile.Weight
	moment  func(r *replay.Replay) *profile.Dump // of --at, nil if it is not given
	time    time.Duration                        // of moment, the largest if it is not at a time
	ctx     context.Context                      // of reading
	stop    context.CancelFunc
	reader  *heaplog.Reader // nil until the logs are open
	out     logflags.Outcome
	replay  *replay.Replay // of events, nil if there is none
	moments int            // that replay keeps
	dumps   []*profile.Dump
	outcome error // error of the command after a successful report

	keepNotes bool     // notes are not printed
	warned    []string // with keepNotes: messages that --quiet does not hide
}

// note prints a message to stderr, unless --quiet is given.
func (s *session) note(format string, args ...any) {
	if !s.Quiet && !s.keepNotes {
		s.warn(fmt.Sprintf(format, args...))
	}
}

// noteCut says that a list of call stacks is not whole.
func (s *session) noteCut(l *stackLimit) {
	if l.cut > 0 {
		s.note("%s without the outer frames that they share with others: only the first %s frames of the list are written in full", cli.Count(l.cut, "call stack"), cli.Number(maxStackSites))
	}
}

// warn prints a message to stderr.
func (s *session) warn(text string) {
	if s.keepNotes {
		s.warned = append(s.warned, text)
		return
	}
	fmt.Fprintf(s.c.ErrOrStderr(), "btheap: %s\n", printable.Text(text))
}

// run checks the flags and writes a report, which reads the files first.
func (s *session) run(c *cobra.Command, files []string, report func(w io.Writer) error) error {
	s.c, s.files = c, files
	if err := s.check(); err != nil {
		return err
	}
	defer s.close()
	err := cli.WriteOutput(s.output, s.Inputs(s.files), c.OutOrStdout(), func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)
		if err := report(b); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return err
	}
	return s.outcome
}

func (s *session) close() {
	if s.reader != nil {
		s.reader.Close()
	}
	s.stopReading()
}

// stopReading restores the default effect of interrupts.
func (s *session) stopReading() {
	if s.stop != nil {
		s.stop()
	}
}

// open opens the logs.
func (s *session) open(more ...heaplog.Option) (err error) {
	s.ctx, s.stop = cli.Interruptible(context.Background())
	if s.WaitsForTerminal(s.files, s.c.InOrStdin()) {
		s.note("reading standard input")
	}
	more = append(more, heaplog.GroupBy(s.label), heaplog.KeepMoments(s.moments))
	if s.reader, err = s.Open(s.ctx, s.files, s.c.InOrStdin(), more...); err != nil {
		return err
	}
	s.out = logflags.Outcome{Flags: &s.Flags, Reader: s.reader, Note: func(text string) { s.note("%s", text) }, Warn: s.warn}
	return nil
}

// wanted selects the dumps that read keeps.
type wanted uint8

const (
	allDumps    wanted = iota
	listedDumps        // all, even if none has a record, or if dumps may have been added up (Summary.Undecided)
	lastDumps          // without --dump, those that latest needs
)

// read reads all input.
func (s *session) read(which wanted) error {
	if err := s.open(); err != nil {
		return err
	}
	if s.moment != nil {
		return s.readMoment()
	}
	return s.readDumps(which)
}

// errOnlyHeaps is the error for logs with reports of allocators and no dump.
var errOnlyHeaps = errors.New("no dump, only what the allocator reports: btheap leaks tells the trend")

// readDumps reads the dumps of logs. A longer version of a growing dump replaces the
// earlier version.
func (s *session) readDumps(which wanted) error {
	few := which == lastDumps && s.Dump == ""
	err := each(s.reader.Dumps(), s.out.Add, func(d *profile.Dump) {
		if few {
			s.dumps = append(leaveOut(s.dumps), d)
			return
		}
		s.dumps = append(s.dumps[:d.Index], d)
	})
	if err != nil {
		return err
	}
	s.replay = s.reader.Replay()
	cli.Collect()
	s.noteBadFrees(s.reader.Summary().BadFrees)
	err = s.end()
	switch {
	case err != nil && (which != listedDumps || len(s.dumps) == 0):
		return err
	case len(s.dumps) == 0 && len(s.reader.Heaps()) > 0:
		return errOnlyHeaps
	case len(s.dumps) == 0:
		return fmt.Errorf("no dump")
	}
	if err := s.undecided(); err != nil && s.Dump == "" && which != listedDumps {
		return fmt.Errorf("%w, or --dump all to report on their sum", err)
	}
	return nil
}

// noteBadFrees notes frees of blocks that had been freed before. places are those of the first bad frees, if known.
func (s *session) noteBadFrees(places []recording.Place) {
	if s.replay == nil || s.replay.Totals().DoubleFrees == 0 {
		return
	}
	t, first := s.replay.Totals(), ""
	if len(places) > 0 {
		first = fmt.Sprintf("; the first at %v", places[0])
	}
	s.note("%s of addresses that are not allocated: %s freed before, %s unknown%s",
		cli.Count(t.DoubleFrees+t.UnknownFrees, "free"), cli.Number(t.DoubleFrees), cli.Number(t.UnknownFrees), first)
}

// each calls take with each value of a pass, and fail with each error. It returns the first error
// that fail returns, which ends the pass.
func each[T any](pass iter.Seq2[T, error], fail func(error) error, take func(T)) error {
	for value, err := range pass {
		if err == nil {
			take(value)
		} else if err := fail(err); err != nil {
			return err
		}
	}
	return nil
}

// end ends a pass. It returns nil if there is something to report; outcome is then the error of
// the command after the report.
func (s *session) end() error {
	s.outcome = s.out.End()
	none := errors.Is(s.outcome, heaplog.ErrNoRecord)
	if cli.Code(s.outcome) == cli.Short && !none {
		return nil
	}
	if none && cli.Code(s.outcome) == cli.Usage && s.reader.Summary().Dumps == 0 && s.HeapLine == nil && s.c.Flags().Lookup("heap-line") != nil {
		if refusal := s.reader.Summary().Refusal; refusal != "" {
			return &refused{s.Inputs(s.files)[0] + ": " + printable.Text(refusal), s.outcome}
		}
		return fmt.Errorf("%w; --heap-line names lines that say what is free or used", s.outcome)
	}
	return s.outcome
}

// refused is the error for a log whose numbers are no levels.
type refused struct {
	text    string
	outcome error
}

func (r *refused) Error() string { return r.text }
func (r *refused) Unwrap() error { return r.outcome }

// heaps returns what the allocator reported in the logs, nil if only some dumps of them are selected.
func (s *session) heaps() []growth.HeapSeries {
	if s.reader == nil || s.Dump != "" {
		return nil
	}
	return s.reader.Heaps()
}

// profile returns the profile of dumps that the command reports on.
func (s *session) profile(list ...*profile.Dump) (p *profile.Profile, err error) {
	return newView(s.view, list...)
}

// newView returns a view of the profile of dumps.
func newView(view profile.View, list ...*profile.Dump) (*profile.Profile, error) {
	p, err := profile.New(list...)
	if err != nil {
		return nil, err
	}
	return p.View(view), nil
}

// width returns the maximum width of the report: the columns of the terminal, or 80; 0 for a
// file.
func (s *session) width() int {
	out := s.c.OutOrStdout()
	if s.output == "" && cli.IsTerminal(out) {
		return cli.Width(out)
	}
	return 0
}

// title returns the name of a dump, with the name of its log.
func title(d *profile.Dump) string {
	s := d.Name
	if d.File != "" && d.File != d.Name {
		s = d.File + ", " + s
	}
	return s
}

// joined returns the names of the compared dumps.
func joined(list []*profile.Dump) string {
	return fmt.Sprintf("%s to %s", title(list[0]), title(list[len(list)-1]))
}

// first returns the first n elements of a list, all if n is 0, and the number of the others.
func first[T any](list []T, n cli.Natural) (shown []T, left int) {
	if n == 0 || len(list) <= int(n) {
		return list, 0
	}
	return list[:n], len(list) - int(n)
}
