// Package logflags has the flags of the heap tools that read logs, and opens the logs.
package logflags

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.bug.st/serial"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
	shared "github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/symbol"
)

// Stdin is the name of the log on standard input.
const Stdin = shared.Stdin

// Flags holds the values of flags. A command adds the flags that it reads by [Flags.Add];
// others keep their defaults.
type Flags struct {
	shared.Flags
	Sysroots       []string
	Dump, Serial   string
	Split          *regexp.Regexp
	HeapLine       *regexp.Regexp
	Quiet, Verbose bool
	Filter         profile.Filter
	from, to       int  // dumps of Dump, -1 is the last; 0 if it selects all
	whole          bool // Open reads all dumps
	brief          bool // the command has --verbose
	port           string
	baud           int
	device         io.Writer // the open serial port
}

// define maps the name of a flag that only the heap tools have to the function that adds it.
var define = map[string]func(f *Flags, s *pflag.FlagSet){
	"sysroot": func(f *Flags, s *pflag.FlagSet) {
		s.StringArrayVar(&f.Sysroots, "sysroot", nil, "look for the files of modules below `DIR` (repeatable)")
	},
	"dump": func(f *Flags, s *pflag.FlagSet) {
		s.StringVar(&f.Dump, "dump", "", "read `WHICH` dumps of the log: last, N, A..B, or all; btheap dumps lists them")
	},
	"split": func(f *Flags, s *pflag.FlagSet) {
		s.Var(shared.Regexp{To: &f.Split}, "split", "a line that matches `REGEX` begins a dump")
	},
	"heap-line": func(f *Flags, s *pflag.FlagSet) {
		s.Var(shared.Regexp{To: &f.HeapLine}, "heap-line", "read what is free, or used, from lines that match `REGEX`, such as 'free=(?P<free>\\d+)'; other groups: largest, min, size, used, heap, time")
	},
	"serial": func(f *Flags, s *pflag.FlagSet) {
		s.StringVar(&f.Serial, "serial", "", "read a serial port, `DEVICE` or DEVICE:BAUD")
	},
	"quiet": func(f *Flags, s *pflag.FlagSet) {
		s.BoolVarP(&f.Quiet, "quiet", "q", false, "print no notes on stderr, except on damage and on a wrong ELF file")
	},
	"verbose": func(f *Flags, s *pflag.FlagSet) {
		f.brief = true
		s.BoolVarP(&f.Verbose, "verbose", "v", false, "print each note, not one line for all notes of the same kind")
	},
	"hide": func(f *Flags, s *pflag.FlagSet) {
		s.Var(shared.Regexp{To: &f.Filter.Hide}, "hide", "leave out frames that match `REGEX`")
	},
	"ignore": func(f *Flags, s *pflag.FlagSet) {
		s.Var(shared.Regexp{To: &f.Filter.Ignore}, "ignore", "leave out call paths with a frame that matches\n`REGEX`")
	},
	"focus": func(f *Flags, s *pflag.FlagSet) {
		s.Var(shared.Regexp{To: &f.Filter.Focus}, "focus", "leave out call paths with no frame that matches\n`REGEX`")
	},
}

// Add adds flags to a command, as a group in its help.
func (f *Flags) Add(c *cobra.Command, group string, names ...string) {
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, name := range names {
		if d, own := define[name]; own {
			d(f, s)
		} else {
			f.Flags.Define(s, name)
		}
	}
	cli.AddFlags(c, group, s)
}

// Check reads the values of the flags; args are the logs.
func (f *Flags) Check(args []string) (err error) {
	if f.from, f.to, err = parseDumps(f.Dump); err != nil {
		return cli.BadArgsf("--dump %w", err)
	}
	if err := f.checkSerial(); err != nil {
		return err
	}
	switch {
	case f.Follow && f.Serial != "":
		return cli.BadArgsf("--follow and --serial are two ways to read on: give one")
	case f.Serial != "" && len(args) > 0:
		return cli.BadArgsf("--serial reads the port alone: no log can be given beside it")
	}
	return f.Flags.Check(args)
}

// checkSerial reads DEVICE or DEVICE:BAUD.
func (f *Flags) checkSerial() error {
	f.port, f.baud = f.Serial, 115200
	i := strings.LastIndexByte(f.Serial, ':')
	if i <= 0 || i == len(f.Serial)-1 {
		return nil
	}
	n, err := strconv.Atoi(f.Serial[i+1:])
	if err != nil || n <= 0 {
		return cli.BadArgsf("--serial %s: %q, expected DEVICE:BAUD such as /dev/ttyUSB0:115200", f.Serial, f.Serial[i+1:])
	}
	f.port, f.baud = f.Serial[:i], n
	return nil
}

// parseDumps reads "last", "all", "N" or "A..B". The result 0 means all dumps.
func parseDumps(s string) (from, to int, err error) {
	switch s {
	case "", "all":
		return 0, 0, nil
	case "last":
		return -1, -1, nil
	}
	first, last, isRange := strings.Cut(s, "..")
	from, err1 := strconv.Atoi(first)
	to, err2 := from, error(nil)
	if isRange {
		to, err2 = strconv.Atoi(last)
	}
	if err1 != nil || err2 != nil || from < 1 || to < from {
		return 0, 0, fmt.Errorf("%q, expected last, all, a number from 1, or A..B", s)
	}
	return from, to, nil
}

// Selected returns the dumps of --dump, from 1; -1 means the last dump, and 0 all dumps.
func (f *Flags) Selected() (from, to int) { return f.from, f.to }

// ReadAll makes Open read all dumps, for a command that selects those of --dump itself.
func (f *Flags) ReadAll() { f.whole = true }

// Port returns the serial port that Open has opened, to write to it, or nil.
func (f *Flags) Port() io.Writer { return f.device }

// Inputs returns all files that the command reads, logs and others. No output may be one
// of them.
func (f *Flags) Inputs(args []string) []string {
	all := slices.Clone(args)
	if len(args) == 0 {
		all = append(all, cli.Stdio)
	}
	for _, e := range f.Exes {
		if spec, err := symbol.ParseFileSpec(e); err == nil {
			all = append(all, spec.Path)
		}
	}
	return append(all, f.Maps...)
}

// Open opens the logs that args name, with the options of the flags and more. The context
// ends every pass.
func (f *Flags) Open(ctx context.Context, args []string, stdin io.Reader, more ...heaplog.Option) (*heaplog.Reader, error) {
	options := []heaplog.Option{heaplog.Force(f.Force), heaplog.Split(f.Split), heaplog.HeapLine(f.HeapLine)}
	for _, e := range f.Exes {
		options = append(options, heaplog.Exe(e))
	}
	for _, m := range f.Maps {
		options = append(options, heaplog.Maps(m))
	}
	for _, dir := range f.Sysroots {
		options = append(options, heaplog.Sysroot(dir))
	}
	if f.DebugDirs != nil {
		options = append(options, heaplog.DebugDirs(f.DebugDirs...))
	}
	if m, given := f.CodecMachine(); given {
		options = append(options, heaplog.Machine(m))
	}
	if f.from != 0 && !f.whole {
		options = append(options, heaplog.Select(f.from, f.to))
	}
	inputs, err := f.openInputs(ctx, args, stdin)
	if err != nil {
		return nil, err
	}
	r, err := heaplog.Open(ctx, slices.Concat(options, inputs, more)...)
	return r, flagError(err)
}

// openInputs returns the options of the logs.
func (f *Flags) openInputs(ctx context.Context, args []string, stdin io.Reader) (list []heaplog.Option, err error) {
	switch {
	case f.Serial != "":
		port, err := serial.Open(f.port, &serial.Mode{BaudRate: f.baud})
		if err != nil {
			return nil, cli.Usagef("--serial %s: %w", f.port, err)
		}
		f.device = port
		context.AfterFunc(ctx, func() { port.Close() })
		return []heaplog.Option{heaplog.Stream(port, f.port)}, nil
	case f.Follow:
		return []heaplog.Option{heaplog.Follow(args[0])}, nil
	case len(args) == 0:
		args = []string{cli.Stdio}
	}
	logs, err := shared.Logs(args, stdin)
	for _, l := range logs {
		if l.Stream != nil {
			list = append(list, heaplog.Stream(l.Stream, l.Name))
		} else {
			list = append(list, heaplog.Files(l.Name))
		}
	}
	return list, err
}

// WaitsForTerminal reports whether the logs are read from a terminal, so that a command should say
// that it waits.
func (f *Flags) WaitsForTerminal(args []string, stdin io.Reader) bool {
	return f.Serial == "" && (len(args) == 0 || slices.Contains(args, cli.Stdio)) && cli.IsTerminal(stdin)
}
