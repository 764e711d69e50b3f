package logflags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// Outcome collects the errors of a pass over logs, and derives the error of the
// command from them.
type Outcome struct {
	Flags  *Flags
	Reader *heaplog.Reader
	// Note prints a line for the user; nil prints nothing. Warn prints a line that --quiet must
	// not hide; if nil, Note does.
	Note, Warn func(text string)
	// Decoded is set by a command that has found something other than records, such as a panic.
	Decoded bool
	// Hint is the advice where a log has no records, "" for one on the flags of records.
	Hint string

	damaged []string // logs that could not be read to their ends
	first   error    // of damaged
	none    error    // no record could be read
}

// Notes returns a function that prints lines on w that begin with the command's name;
// nil with --quiet.
func (f *Flags) Notes(w io.Writer, command string) func(text string) {
	if f.Quiet {
		return nil
	}
	return func(text string) { fmt.Fprintf(w, "%s: %s\n", command, cli.Printable(text)) }
}

// Add records an error of an iterator of Reader. It returns nil if the command can continue
// and report the records read, else the error of the command.
func (o *Outcome) Add(err error) error {
	var read *heaplog.ReadError
	switch {
	case errors.As(err, &read):
		s := o.Reader.Summary()
		o.damaged = append(o.damaged, fmt.Sprintf("%v; %s before that", err, cli.Count(found(&s), "record")))
		if o.first == nil {
			o.first = err
		}
		return nil
	case errors.Is(err, heaplog.ErrNoRecord):
		o.none = err
		return nil
	case errors.Is(err, context.Canceled): // an interrupt ends a log that has no end
		return nil
	}
	return flagError(err)
}

// flagError returns an error with the flag in place of the option of the library.
func flagError(err error) error {
	var e *heaplog.OptionError
	if !errors.As(err, &e) {
		return err
	}
	flag := map[string]string{"Exe": "-e", "Maps": "--maps:", "Select": "--dump", "HeapLine": "--heap-line"}[e.Option]
	if flag == "" {
		return e.Err
	}
	return fmt.Errorf("%s %w", flag, e.Err)
}

// SplitHint is the advice where dumps cannot be told apart.
const SplitHint = "--split REGEX says at which line a dump begins"

// withHint returns the text of a note, with the flag that may help.
func withHint(n heaplog.Note) string {
	hint := map[string]string{
		"Split": SplitHint,
		"Maps":  "give --maps, or -e with the ELF file",
		"Exe":   "give -e with the build that ran, --maps or -e FILE@0xADDR, or link with -no-pie",
	}[n.Option]
	if hint == "" {
		return n.Text
	}
	return n.Text + "; " + hint
}

// noneHint is the advice where a log has no records.
const noneHint = "one without a lead-in is read as an argument: btdecode RECORD"

// found returns the number of records, including unreadable ones.
func found(s *heaplog.Summary) int64 { return s.Readable() + s.Records[recording.KindUnreadable] }

// Nothing returns an error if no record of the logs could be read.
func (o *Outcome) Nothing() error {
	s := o.Reader.Summary()
	switch {
	case o.none != nil && o.Decoded:
		return nil
	case errors.Is(o.none, heaplog.ErrNoBlock):
		return cli.Shortf("%w", o.none)
	case o.none != nil && s.Dumps == 0 && found(&s) == 0:
		return fmt.Errorf("%w; %s", o.none, cmp.Or(o.Hint, s.Is, noneHint))
	case o.none != nil:
		return o.none
	case found(&s) == 0 && o.first != nil:
		return o.first
	case o.Flags.from > s.Dumps && s.Dumps > 0:
		return cli.Usagef("--dump %d: the log has %d", o.Flags.from, s.Dumps)
	}
	return nil
}

// End prints the notes of the pass, and returns the error that the command ends with.
func (o *Outcome) End() error {
	s := o.Reader.Summary()
	nothing := o.Nothing()
	warn := o.Warn
	if warn == nil {
		warn = o.Note
	}
	if warn != nil {
		for i, text := range o.damaged {
			if i > 0 || nothing != o.first {
				warn(text)
			}
		}
		for _, n := range s.Notes {
			if n.Kind == heaplog.NoteWrong && n.Option != "Force" {
				warn(withHint(n))
			}
		}
	}
	if o.Note != nil && !o.Flags.Quiet {
		o.notes(s.Notes)
	} else if n := s.Records[recording.KindUnreadable]; n > 0 && warn != nil && o.Nothing() == nil {
		i := slices.IndexFunc(s.Faults, func(f heaplog.Fault) bool { return !f.Cut })
		warn(fmt.Sprintf("%s unreadable, the first at %v", cli.Count(n, "record"), s.Faults[i].Places[0]))
	}
	wrong := slices.IndexFunc(s.Notes, func(n heaplog.Note) bool { return n.Option == "Force" })
	switch {
	case nothing != nil:
		return nothing
	case wrong >= 0:
		return cli.Shortf("%s; --force prints its names", s.Notes[wrong].Text)
	case len(o.damaged) > 0, o.Flags.Strict && s.Records[recording.KindUnreadable]+s.Cut > 0:
		return cli.Exit(cli.Short)
	}
	return nil
}

// notes prints the notes other than those on wrong files: all, or one for each kind.
func (o *Outcome) notes(list []heaplog.Note) {
	for _, kind := range []heaplog.NoteKind{heaplog.NoteInfo, heaplog.NoteLoss, heaplog.NoteSymbols} {
		var texts []string
		for _, n := range list {
			if n.Kind == kind {
				texts = append(texts, withHint(n))
			}
		}
		if more := len(texts) - 1; more > 0 && o.Flags.brief && !o.Flags.Verbose {
			texts = []string{fmt.Sprintf("%s (and %s: -v)", texts[0], cli.Count(more, "more note"))}
		}
		for _, text := range texts {
			o.Note(text)
		}
	}
}
