// Package logs opens what the command line of a command names: logs, ELF files and
// memory maps; and it runs over the records, with symbols, dump by dump.
//
// It is what btdecode and btheap share: one group of flags, one order of reading,
// one set of notes.
package logs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// Flags is what the command line says of input and symbols.
type Flags struct {
	Exes      []string
	Maps      []string
	Sysroots  []string
	DebugDirs []string
	Section   string
	Machine   string
	Adjust    string

	Bare   bool
	Follow bool
	Serial string
	Split  string
	Only   string
	Dump   string
	Strict bool
	Quiet  bool

	adjust   symbol.Adjust
	mach     codec.Machine
	machSet  bool
	splitRE  *regexp.Regexp
	onlyRE   *regexp.Regexp
	dumps    Selection
	baud     int
	dropOnly bool
}

// AddSymbols adds the flags of symbols as a group.
func (f *Flags) AddSymbols(c *cobra.Command) {
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.StringArrayVarP(&f.Exes, "exe", "e", nil, "ELF `FILE`; FILE@0xADDR if loaded at 0xADDR, FILE@+0xBIAS if loaded 0xBIAS above the addresses in it (repeatable)")
	s.StringArrayVarP(&f.Maps, "maps", "m", nil, "copy `FILE` of /proc/PID/maps; FILE@LINE applies from that line of the log on (repeatable)")
	s.StringArrayVar(&f.Sysroots, "sysroot", nil, "look for the files of modules below `DIR` (repeatable)")
	s.StringArrayVar(&f.DebugDirs, "debug-dir", symbol.DebugDirs(), "look for debug files, by build-id or path, below `DIR`")
	s.StringVar(&f.Adjust, "adjust", "auto", "look up return addresses at the call before them: `WHICH` is auto, all, or none")
	s.StringVar(&f.Machine, "machine", "", "`NAME` of the machine that encoded the log, such as wrap64 (SPEC.md, Machines)")
	cli.AddFlags(c, "Symbols", s)
}

// AddInput adds the flags of input as a group.
func (f *Flags) AddInput(c *cobra.Command) {
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.StringVar(&f.Dump, "dump", "", "read `WHICH` dumps of the log: last, N, A..B, or all; btheap dumps lists them")
	s.StringVar(&f.Split, "split", "", "a line that matches `REGEX` begins a dump")
	s.StringVar(&f.Only, "only", "", "read only lines that match `REGEX`")
	s.StringVar(&f.Serial, "serial", "", "read a serial port, `DEVICE` or DEVICE:BAUD")
	s.BoolVar(&f.Follow, "follow", false, "go on reading as the log grows, until interrupted")
	s.BoolVar(&f.Bare, "bare", false, "read lines of base64 without ~m# as records, too")
	s.BoolVar(&f.Strict, "strict", false, "exit with 1 if a record could not be read")
	s.BoolVarP(&f.Quiet, "quiet", "q", false, "print no notes on stderr")
	cli.AddFlags(c, "Input", s)
}

// DropOnly has --only leave nothing of other lines, not even their ends: for
// output that passes lines through.
func (f *Flags) DropOnly() { f.dropOnly = true }

// Check reads the values of the flags; args are the logs.
func (f *Flags) Check(args []string) (err error) {
	if f.adjust, err = symbol.ParseAdjust(cmpOr(f.Adjust, "auto")); err != nil {
		return cli.BadArgsf("--adjust %w", err)
	}
	if f.Machine != "" {
		if f.mach, err = codec.ParseMachine(f.Machine); err != nil {
			return cli.BadArgsf("--machine: %w", err)
		}
		f.machSet = true
	}
	if f.splitRE, err = compile("--split", f.Split); err != nil {
		return err
	}
	if f.onlyRE, err = compile("--only", f.Only); err != nil {
		return err
	}
	if f.dumps, err = ParseSelection(f.Dump); err != nil {
		return cli.BadArgsf("--dump %w", err)
	}
	if f.Serial != "" {
		port, baud, found := f.Serial, 115200, false
		if i := strings.LastIndexByte(f.Serial, ':'); i > 0 {
			if n, err := strconv.Atoi(f.Serial[i+1:]); err == nil && n > 0 {
				port, baud, found = f.Serial[:i], n, true
			}
			if !found && f.Serial[i+1:] != "" {
				return cli.BadArgsf("--serial %s: %q, expected DEVICE:BAUD such as /dev/ttyUSB0:115200", f.Serial, f.Serial[i+1:])
			}
		}
		f.Serial, f.baud = port, baud
	}
	switch {
	case f.Section != "" && len(f.Exes) != 1:
		return cli.BadArgsf("-j needs one ELF file (-e) that has the section")
	case f.Section != "" && len(f.Maps) > 0:
		return cli.BadArgsf("-j and --maps exclude each other: both give the addresses of the code")
	case f.Follow && f.Serial != "":
		return cli.BadArgsf("--follow and --serial are two ways to read on: give one")
	case f.Serial != "" && len(args) > 0:
		return cli.BadArgsf("--serial reads the port alone: no log can be given beside it")
	case slices.Contains(args, ""):
		return cli.BadArgsf("the name of a log is empty")
	case f.Follow && (len(args) != 1 || args[0] == dump.Stdin || IsLine(args[0])):
		return cli.BadArgsf("--follow needs one log FILE")
	}
	return nil
}

func cmpOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func compile(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, cli.BadArgsf("%s: %w", flag, err)
	}
	return re, nil
}

// Live reports whether a log is read on until the user interrupts the command.
func (f *Flags) Live() bool { return f.Follow || f.Serial != "" }

// Selected returns the value of --dump.
func (f *Flags) Selected() Selection { return f.dumps }

// CodecMachine returns the value of --machine, and whether it was given.
func (f *Flags) CodecMachine() (m codec.Machine, given bool) { return f.mach, f.machSet }

// Named reports whether symbols come from files that the command line names.
func (f *Flags) Named() bool { return len(f.Exes)+len(f.Maps) > 0 }

// Inputs returns the files that are read, logs and others: no output may be one.
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
	for _, m := range f.Maps {
		path, _, _ := splitLine(m)
		all = append(all, path)
	}
	return all
}

// Selection says which dumps of a log are meant.
type Selection struct {
	All, Last bool
	From, To  int // from 1, if neither All nor Last
}

// ParseSelection reads "last", "all", "N" or "A..B"; "" is Last, too.
func ParseSelection(s string) (Selection, error) {
	switch s {
	case "", "last":
		return Selection{Last: true}, nil
	case "all":
		return Selection{All: true}, nil
	}
	from, to, isRange := strings.Cut(s, "..")
	a, err1 := strconv.Atoi(from)
	b, err2 := a, error(nil)
	if isRange {
		b, err2 = strconv.Atoi(to)
	}
	if err1 != nil || err2 != nil || a < 1 || b < a {
		return Selection{}, fmt.Errorf("%q, expected last, all, a number from 1, or A..B", s)
	}
	return Selection{From: a, To: b}, nil
}

// Of returns the dumps from index from up to but not including to that are
// selected of n.
func (s Selection) Of(n int) (from, to int, err error) {
	switch {
	case n == 0:
		return 0, 0, nil
	case s.All:
		return 0, n, nil
	case s.Last:
		return n - 1, n, nil
	case s.From > n:
		return 0, 0, cli.Usagef("--dump %d: the log has %d", s.From, n)
	}
	return s.From - 1, min(s.To, n), nil
}

// snapshot is a file of --maps, and from which line of the log on it holds.
type snapshot struct {
	from int64
	list []symbol.Mapping
}

// splitLine splits FILE@LINE.
func splitLine(name string) (path string, line int64, err error) {
	i := strings.LastIndexByte(name, '@')
	if i <= 0 {
		return name, 0, nil
	}
	if n, err := strconv.ParseInt(name[i+1:], 10, 64); err == nil && n > 0 {
		return name[:i], n, nil
	}
	if _, err := os.Stat(name); err != nil {
		return "", 0, fmt.Errorf("--maps %s: %q, expected FILE@LINE", name, name[i+1:])
	}
	return name, 0, nil
}

// readSnapshots reads the files of --maps, sorted by their lines.
func (r *Reader) readSnapshots() ([]snapshot, error) {
	var all []snapshot
	for _, name := range r.flags.Maps {
		path, from, err := splitLine(name)
		if err != nil {
			return nil, err
		}
		file := &pipe{path: path} // it may be one, as of <(ssh …), and nothing come
		list, err := symbol.ReadMaps(r.interruptible(file), path)
		file.close()
		if r.ctx.Err() != nil {
			return nil, fmt.Errorf("--maps: %s: interrupted", path)
		}
		if file.err != nil { // of opening: it names the file
			err = file.err
		}
		if err != nil {
			return nil, fmt.Errorf("--maps: %w", err)
		}
		all = append(all, snapshot{from, list})
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return int(min(max(a.from-b.from, -1), 1)) })
	return all, nil
}
