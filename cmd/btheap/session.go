package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

// session holds the state that all subcommands share: flags and input. A subcommand sets the
// first fields.
type session struct {
	unit   profile.Granularity                   // default of --by
	args   func(args []string) ([]string, error) // returns the logs among the arguments; if nil, all are logs
	load   func() error                          // reads the input; if nil, read does
	report func(w io.Writer) error
	last   bool // without --dump, the report is on the last steady dump
	listed bool // the report includes dumps without records
	adds   bool // dumps that may have been added up are reported, too (Summary.Undecided)

	logflags.Flags
	view     profile.View
	by       string
	weight   string
	maxPaths cli.Natural
	output   string
	json     bool
	at       string
	label    heaplog.Label // of --by thread and --by size
	noFold   bool
	folds    bool // the command has --no-fold

	moment  *instant      // of --at, nil if it is not given
	badFree heaplog.Place // of the first event that frees a block that is not live
	w       profile.Weight
	c       *cobra.Command
	files   []string // arguments that are logs or profiles
	stop    context.CancelFunc
	reader  *heaplog.Reader // nil if files of other profilers were read
	out     logflags.Outcome
	replay  *profile.Replay  // of events, nil if there is none
	dumps   []*profile.Dump  // all dumps read
	shown   *profile.Profile // the reported profile, nil if there is none
	status  status
	latest  latest
	outcome error // error of the command after a successful report
}

// Flags that most commands read, by the groups in which help lists them.
var (
	symbolFlags = []string{"exe", "maps", "sysroot", "debug-dir", "adjust", "machine"}
	inputFlags  = []string{"dump", "split", "only", "serial", "follow", "bare", "input-format", "strict", "quiet", "verbose"}
	frameFlags  = []string{"hide", "show", "ignore", "focus", "basenames", "full-names"}
)

// own maps the name of a flag that only btheap has to the function that adds it.
var own = map[string]func(s *session, f *pflag.FlagSet){
	"by": func(s *session, f *pflag.FlagSet) {
		f.StringVar(&s.by, "by", "", "group by `WHAT`: the line, function, file, module or address of the call site, or the thread or size of the block")
	},
	"basenames": func(s *session, f *pflag.FlagSet) {
		f.BoolVarP(&s.view.Basenames, "basenames", "s", false, "strip directories from file names")
	},
	"full-names": func(s *session, f *pflag.FlagSet) {
		f.BoolVar(&s.view.FullNames, "full-names", false, "show C++ names with their arguments")
	},
	"no-fold": func(s *session, f *pflag.FlagSet) {
		s.folds = true
		f.BoolVar(&s.noFold, "no-fold", false, "show the allocators and their wrappers at the inner end of call paths")
	},
	"at": func(s *session, f *pflag.FlagSet) {
		f.StringVar(&s.at, "at", "", "for a recording with events, report the blocks that were live at `WHEN`: peak, end, or a time such as 2.5s")
	},
	"max-paths": func(s *session, f *pflag.FlagSet) {
		f.Var(&s.maxPaths, "max-paths", "keep `N` distinct call paths, and add up the others as one (default 10 million)")
	},
	"weight": func(s *session, f *pflag.FlagSet) {
		f.StringVar(&s.weight, "weight", "bytes", "order by `WHAT`: bytes or count")
	},
	"json": func(s *session, f *pflag.FlagSet) {
		f.BoolVar(&s.json, "json", false, "write JSON (docs/btheap.schema.json)")
	},
	"output": func(s *session, f *pflag.FlagSet) {
		f.StringVarP(&s.output, "output", "o", "", "write to `FILE`")
	},
}

// add adds flags to a command, as a group in its help.
func (s *session) add(c *cobra.Command, group string, names ...string) {
	for _, name := range names {
		define := own[name]
		if define == nil {
			s.Add(c, group, name)
			continue
		}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		define(s, f)
		cli.AddFlags(c, group, f)
	}
	if slices.Contains(names, "by") {
		c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(append(profile.Granularities(), "thread", "size"), cobra.ShellCompDirectiveNoFileComp))
	}
}

// addAll adds the flags of a report on call paths: symbols, input, frames and these.
func (s *session) addAll(c *cobra.Command, frames, output []string) {
	s.add(c, "Symbols", symbolFlags...)
	s.add(c, "Input", inputFlags...)
	s.add(c, "Frames", frames...)
	s.add(c, "Output", output...)
}

// check reads the values of the flags.
func (s *session) check() (err error) {
	if err := s.Flags.Check(s.files); err != nil {
		return err
	}
	s.view.By, s.view.Filter, s.view.Fold = s.unit, s.Filter, s.folds && !s.noFold
	switch s.by {
	case "":
	case "thread":
		s.label, s.view.By = heaplog.ByThread, profile.ByFunction
	case "size":
		s.label, s.view.By = heaplog.BySize, profile.ByFunction
	default:
		if s.view.By, err = profile.ParseGranularity(s.by); err != nil {
			return cli.BadArgsf("--by %w, thread, size", err)
		}
	}
	switch s.weight {
	case "", "bytes":
	case "count":
		s.w = profile.Count
	default:
		return cli.BadArgsf("--weight %q, expected bytes or count", s.weight)
	}
	if s.at != "" {
		if s.moment, err = parseMoment(s.at); err != nil {
			return cli.BadArgsf("--at %w", err)
		}
	}
	return nil
}

// status is a line on a terminal that is replaced by the next.
type status struct {
	w     io.Writer // nil if there is no terminal
	shown string
}

func (l *status) show(text string) {
	if l.w != nil && text != l.shown {
		fmt.Fprintf(l.w, "\r\x1b[K%s", text)
		l.shown = text
	}
}

// dumps shows the number of dumps of a live log.
func (l *status) dumps(list []*profile.Dump) {
	text := "no dump yet"
	if len(list) == 1 {
		text = fmt.Sprintf("1 dump, %s bytes", cli.Number(list[0].Total.Bytes))
	} else if n := len(list); n > 1 {
		text = fmt.Sprintf("%d dumps, %s → %s bytes", n, cli.Number(list[0].Total.Bytes), cli.Number(list[n-1].Total.Bytes))
	}
	l.show(text + "; Ctrl-C prints the report")
}

// note prints a message to stderr, unless --quiet is given.
func (s *session) note(format string, args ...any) {
	if !s.Quiet {
		s.warn(fmt.Sprintf(format, args...))
	}
}

// warn prints a message to stderr.
func (s *session) warn(text string) {
	s.status.show("")
	fmt.Fprintf(s.c.ErrOrStderr(), "btheap: %s\n", printable.Text(text))
}

// command completes a subcommand.
func (s *session) command(c *cobra.Command) *cobra.Command {
	s.c = c
	if c.Args == nil {
		c.Args = cobra.ArbitraryArgs
	}
	c.RunE = func(_ *cobra.Command, args []string) error { return s.run(args) }
	return c
}

// run reads all input, and then writes the report.
func (s *session) run(args []string) (err error) {
	if s.files = args; s.args != nil {
		if s.files, err = s.args(args); err != nil {
			return cli.BadArgs(err)
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	load := s.load
	if load == nil {
		load = s.read
	}
	defer s.close()
	err = cli.WriteOutput(s.output, s.Inputs(s.files), s.c.OutOrStdout(), func(w io.Writer) error {
		if err := load(); err != nil {
			return err
		}
		b := bufio.NewWriterSize(w, 64<<10)
		if err := s.report(b); err != nil {
			return err
		}
		for _, e := range s.shown.Unmatched() {
			s.note("--%s: matches no frame", e)
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
	var ctx context.Context
	ctx, s.stop = cli.Interruptible(context.Background())
	if errs := s.c.ErrOrStderr(); !s.Quiet && s.Live() && cli.IsTerminal(errs) {
		s.status.w = errs
		more = append(more, heaplog.Refresh(time.Second))
	}
	if s.WaitsForTerminal(s.files, s.c.InOrStdin()) {
		s.note("reading standard input")
	}
	more = append(more, heaplog.MaxPaths(int(s.maxPaths)), heaplog.GroupBy(s.label))
	if s.reader, err = s.Open(ctx, s.files, s.c.InOrStdin(), more...); err != nil {
		return err
	}
	s.out = logflags.Outcome{Flags: &s.Flags, Reader: s.reader, Note: func(text string) { s.note("%s", text) }, Warn: s.warn}
	return nil
}

// read reads all input into s.dumps.
func (s *session) read() error {
	profiles, err := s.profiles()
	switch {
	case err != nil:
		return err
	case profiles != nil && s.label != heaplog.ByPath:
		return cli.BadArgsf("--by %s has no effect here: it is for logs, and %s is a heap profile", s.by, s.files[0])
	case profiles != nil:
		return s.readProfiles(profiles)
	}
	if err := s.open(); err != nil {
		return err
	}
	if s.moment != nil {
		return s.readMoment()
	}
	return s.readDumps()
}

// readDumps reads the dumps of logs. A longer version of a growing dump replaces the
// earlier version.
func (s *session) readDumps() error {
	s.status.dumps(nil)
	for d, err := range s.reader.Dumps() {
		if err != nil {
			if err := s.out.Add(err); err != nil {
				return err
			}
			continue
		}
		if s.last && s.Dump == "" && !s.Live() {
			s.latest.add(d)
			continue
		}
		s.dumps = append(s.dumps[:d.Index], d)
		s.status.dumps(s.dumps)
	}
	s.status.show("")
	s.replay = s.reader.Replay()
	if list := s.reader.Summary().BadFrees; len(list) > 0 {
		s.badFree = list[0]
	}
	s.dumps = append(s.dumps, s.latest.choose(s.replay)...)
	s.outcome = s.out.End()
	if s.outcome != nil && cli.Code(s.outcome) != cli.Short && !(s.listed && len(s.dumps) > 0) {
		return s.outcome
	}
	if len(s.dumps) == 0 {
		return fmt.Errorf("no dump")
	}
	if err := s.undecided(); err != nil && s.Dump == "" && !s.adds {
		return fmt.Errorf("%w, or --dump all to report on their sum", err)
	}
	return nil
}

// profile returns the profile of dumps that the command reports on.
func (s *session) profile(list []*profile.Dump) (*profile.Profile, error) {
	p, err := profile.New(list...)
	if err != nil {
		return nil, err
	}
	s.shown = p.View(s.view)
	return s.shown, nil
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
