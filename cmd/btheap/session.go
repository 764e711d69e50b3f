package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/logs"
	"github.com/lwsbt/lwsbt/internal/printable"
	heap "github.com/lwsbt/lwsbt/profile"
)

// session is what all subcommands share: flags, and what they read.
type session struct {
	logs.Flags
	filter   logs.Filter
	view     heap.View
	by       string
	weight   string
	maxPaths int
	output   string
	at       string
	unused   []unused

	moment  *logs.At // of --at, nil if it is not given
	w       heap.Weight
	c       *cobra.Command
	args    []string
	files   []string // logs and profiles, without other arguments
	stop    context.CancelFunc
	reader  *logs.Reader // nil if profiles were read
	prof    *heap.Profile
	noPaths bool           // the report is of call sites, and needs no call paths
	sites   *logs.SiteSums // nil if prof has call paths
	names   *heap.Names
	status  status
	listed  bool  // dumps without any record are reported, too
	outcome error // how the command ends if it reports what it read
}

// unused is flags that cannot take effect in a subcommand, and why. They are usage errors.
type unused struct {
	why   string
	flags []string
}

// refuse returns an error if a flag is given that cannot take effect.
func (s *session) refuse(flags *pflag.FlagSet) error {
	for _, u := range s.unused {
		for _, name := range u.flags {
			if flags.Changed(name) {
				return cli.BadArgsf("--%s has no effect here: %s", name, u.why)
			}
		}
	}
	return nil
}

// add adds the flags that subcommands have; those that are unused are not in help.
func (s *session) add(c *cobra.Command) {
	s.AddSymbols(c)
	s.AddInput(c)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&s.by, "by", "", "group call sites by `WHAT`: line, function, file, module or address")
	s.filter.AddFlags(f)
	f.BoolVarP(&s.view.Basenames, "basenames", "s", false, "strip directories from file names")
	f.BoolVar(&s.view.FullNames, "full-names", false, "show C++ names with their arguments")
	f.StringVar(&s.at, "at", "", "of a recording with events, report what was live at `WHEN`: peak, end, or a time such as 2.5s")
	f.IntVar(&s.maxPaths, "max-paths", 0, "keep `N` distinct call paths, and add up the others as one (default 10 million)")
	cli.AddFlags(c, "Frames", f)
	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&s.weight, "weight", "bytes", "order by `WHAT`: bytes or count")
	f.StringVarP(&s.output, "output", "o", "", "write to `FILE`")
	cli.AddFlags(c, "Output", f)
	c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(heap.Granularities(), cobra.ShellCompDirectiveNoFileComp))
	for _, u := range s.unused {
		for _, name := range u.flags {
			c.Flags().Lookup(name).Hidden = true
		}
	}
}

// check reads the values of the flags; byDefault is what --by is by default.
func (s *session) check(byDefault heap.Granularity) (err error) {
	if err := s.Flags.Check(s.files); err != nil {
		return err
	}
	s.view.By = byDefault
	if s.by != "" {
		if s.view.By, err = heap.ParseGranularity(s.by); err != nil {
			return cli.BadArgsf("--by %w", err)
		}
	}
	s.view.Hide, s.view.Show, s.view.Ignore, s.view.Focus = s.filter.Hide, s.filter.Show, s.filter.Ignore, s.filter.Focus
	switch {
	case s.weight == "count":
		s.w = heap.Count
	case s.weight != "bytes":
		return cli.BadArgsf("--weight %q, expected bytes or count", s.weight)
	}
	if s.at != "" {
		at, err := logs.ParseAt(s.at)
		if err != nil {
			return cli.BadArgsf("--at %w", err)
		}
		s.moment = &at
	}
	if s.maxPaths < 0 {
		return cli.BadArgsf("--max-paths %d, expected a number of call paths", s.maxPaths)
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

// note says something on stderr.
func (s *session) note(format string, args ...any) {
	if !s.Quiet {
		s.status.show("")
		fmt.Fprintf(s.c.ErrOrStderr(), "btheap: %s\n", printable.Text(fmt.Sprintf(format, args...)))
	}
}

// command makes a subcommand: its RunE reads all input and then calls report with
// what to write to.
func (s *session) command(c *cobra.Command, by heap.Granularity, split func(args []string) ([]string, error), report func(w io.Writer) error) *cobra.Command {
	s.c = c
	s.add(c)
	if c.Args == nil {
		c.Args = cobra.ArbitraryArgs
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		s.c, s.args, s.files = c, args, args
		if err := s.refuse(c.Flags()); err != nil {
			return err
		}
		if split != nil {
			files, err := split(args)
			if err != nil {
				return cli.BadArgs(err)
			}
			s.files = files
		}
		if err := s.check(by); err != nil {
			return err
		}
		defer s.close()
		err := cli.WriteOutput(s.output, s.Inputs(s.files), c.OutOrStdout(), func(w io.Writer) error {
			if err := s.read(); err != nil {
				return err
			}
			b := bufio.NewWriterSize(w, 64<<10)
			if err := report(b); err != nil {
				return err
			}
			s.noteView()
			return b.Flush()
		})
		if err != nil {
			return err
		}
		return s.outcome
	}
	return c
}

func (s *session) close() {
	if s.reader != nil {
		s.reader.Close()
	}
	s.stopReading()
}

// stopReading gives interrupts back their usual meaning.
func (s *session) stopReading() {
	if s.stop != nil {
		s.stop()
	}
}

// read reads all input into s.prof.
func (s *session) read() error {
	profiles, err := s.profiles()
	if err != nil {
		return err
	}
	if profiles == nil {
		var ctx context.Context
		ctx, s.stop = cli.Interruptible(context.Background())
		if s.reader, err = logs.Open(ctx, &s.Flags, s.files, s.c.InOrStdin(), s.note); err != nil {
			return err
		}
		if errs := s.c.ErrOrStderr(); !s.Quiet && s.Live() && cli.IsTerminal(errs) {
			s.status.w = errs
			s.reader.Status = s.status.show
		}
		if by := s.view.By; s.noPaths && by != heap.ByFile && by != heap.ByModule && !s.filter.Any() && s.moment == nil {
			s.prof, s.sites, err = s.reader.Sites(s.maxPaths, s.Selected())
		}
		if err == nil && s.sites == nil {
			s.prof, err = s.reader.Profile(s.maxPaths, s.moment)
		}
		s.status.show("")
		if err != nil {
			return err
		}
		s.outcome = s.reader.Outcome()
		s.reader.Notes()
		if s.outcome != nil && cli.Code(s.outcome) != cli.Short && !(s.listed && len(s.prof.Dumps) > 0) {
			return s.outcome
		}
	} else {
		s.prof = &heap.Profile{MaxPaths: s.maxPaths}
		for i, p := range profiles {
			if _, err := s.prof.AddPprof(p, s.files[i]); err != nil {
				return err
			}
		}
	}
	if len(s.prof.Dumps) == 0 {
		return fmt.Errorf("no dump")
	}
	s.names = s.view.Names(s.prof)
	return nil
}

// profiles reads the arguments as profiles of pprof, nil if they are logs.
func (s *session) profiles() ([]*profile.Profile, error) {
	var list []*profile.Profile
	for i, path := range s.files {
		p, err := readProfile(path)
		if err != nil {
			return nil, err
		}
		if p == nil && len(list) > 0 || p != nil && len(list) < i {
			return nil, fmt.Errorf("%s: logs and profiles of pprof cannot be read together", path)
		}
		if p != nil {
			list = append(list, p)
		}
	}
	if list == nil {
		return nil, nil
	}
	for _, name := range []string{"exe", "maps", "sysroot", "debug-dir", "adjust", "machine", "split", "only", "follow", "bare", "strict", "at"} {
		if s.c.Flags().Changed(name) {
			return nil, cli.BadArgsf("--%s has no effect here: it is for logs, and %s is a profile of pprof", name, s.files[0])
		}
	}
	return list, nil
}

// maxProfile is how large a profile of pprof may be, in bytes, decompressed.
const maxProfile = 128 << 20

// Frames that a profile of pprof may have, counted for each sample anew: locations are
// written once, however often they are called. The deepest stacks that profilers record
// have 2,048; a byte stands for some 3 frames.
const (
	maxSampleFrames = 1 << 12
	minFrames       = 1 << 20 // whatever its size
	framesPerByte   = 16
)

// checkFrames returns an error for a profile of size bytes with too many frames.
func checkFrames(p *profile.Profile, size int) error {
	total, most := 0, minFrames+framesPerByte*size
	for i, s := range p.Sample {
		n := 0
		for _, l := range s.Location {
			if n += max(1, len(l.Line)); n > maxSampleFrames {
				return fmt.Errorf("sample %d has over %d frames", i+1, maxSampleFrames)
			}
		}
		if total += n; total > most {
			return fmt.Errorf("over %d frames in %d bytes: too many", most, size)
		}
	}
	return nil
}

// readProfile reads a file as a profile of pprof, nil if it is none. Such a file
// begins with field 1 of a message, itself one with a field 1, once it is decompressed.
// A file is an error if it is certain not to be a log, since it goes on with field 2.
func readProfile(path string) (*profile.Profile, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	in, err := dump.Open(path, nil)
	if err != nil {
		return nil, nil
	}
	var head [64]byte
	n, _ := io.ReadFull(in, head[:])
	in.Close()
	if n < 8 || head[0] != 0x0a || head[2] != 0x08 || bytes.Contains(head[:n], []byte("~m#")) {
		return nil, nil
	}
	certain := head[1] == 4 && head[4] == 0x10
	fail := func(format string, args ...any) (*profile.Profile, error) {
		if certain {
			return nil, fmt.Errorf("%s: profile of pprof: "+format, append([]any{path}, args...)...)
		}
		return nil, nil
	}
	if in, err = dump.Open(path, nil); err != nil {
		return nil, nil
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxProfile+1))
	if err != nil && certain {
		return nil, err // names the file
	}
	if err != nil {
		return nil, nil
	}
	if len(data) > maxProfile {
		return fail("over %d MB, decompressed: too large", maxProfile>>20)
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil {
		err = checkFrames(p, len(data))
	}
	if err != nil {
		return fail("%w", err)
	}
	// Its names are anybody's, as those of an ELF file are.
	for _, f := range p.Function {
		f.Name, f.SystemName, f.Filename = printable.Text(f.Name), printable.Text(f.SystemName), printable.Text(f.Filename)
	}
	for _, m := range p.Mapping {
		m.File, m.BuildID = printable.Text(m.File), printable.Text(m.BuildID)
	}
	return p, nil
}

// selected returns the dumps of --dump; all says that all are meant unless it is
// given.
func (s *session) selected(all bool) ([]*heap.Dump, error) {
	sel := s.Selected()
	if all && s.Flags.Dump == "" {
		sel = logs.Selection{All: true}
	}
	from, to, err := sel.Of(len(s.prof.Dumps))
	if err != nil {
		return nil, err
	}
	list := s.prof.Dumps[from:to]
	if s.reader != nil {
		s.reader.NoteDumps(s.prof, list)
	}
	return list, nil
}

// one returns the dump to report on: the last, or those of --dump together.
func (s *session) one() (*heap.Dump, error) {
	list, err := s.selected(false)
	if err != nil {
		return nil, err
	}
	if n := len(s.prof.Dumps); n > 1 && s.Flags.Dump == "" {
		s.note("%d dumps, of which this is the last; --dump N, A..B or all selects others, btheap growth compares them", n)
	}
	return s.prof.Sum(list), nil
}

// noteView reports the expressions that matched nothing, and saturated sums.
func (s *session) noteView() {
	s.filter.Note(logs.Matched(s.names.Matched), s.note)
	if s.prof.Saturated && s.reader == nil {
		s.note("sums over 2^64-1 are reported as 2^64-1")
	}
}

// width is how wide text may be: the terminal, or 80 columns, or as wide as it is
// in a file.
func (s *session) width() int {
	out := s.c.OutOrStdout()
	if s.output == "" && cli.IsTerminal(out) {
		return cli.Width(out)
	}
	return 0
}

// title returns the name of a dump, with that of its log.
func title(d *heap.Dump) string {
	s := d.Name
	if d.File != "" && d.File != d.Name {
		s = d.File + ", " + s
	}
	return s
}

// joined are the names of dumps that are compared.
func joined(list []*heap.Dump) string {
	return fmt.Sprintf("%s to %s", title(list[0]), title(list[len(list)-1]))
}
