package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

const usage = `Usage: btdecode [flags] [FILE... | LINE...]

Decodes the ~m# lines of libwebsockets in whole logs; '-' or nothing is stdin.
With an ELF file or a map of the process, also names functions and lines.

  btdecode device.log                        ~b#size: 7520, 0x406651 0x406852
  btdecode -e app.elf device.log             the same, and the frames below it
  btdecode -e app --format pprof -o heap.pb.gz device.log
  btdecode --maps app.maps --top 10 device.log

`

// formats that --format takes.
var formats = []string{"text", "addr2line", "jsonl", "folded", "pprof", "speedscope"}

// options is the command line.
type options struct {
	args []string

	exes      []string
	maps      []string
	sysroots  []string
	debugDirs []string
	section   string
	machine   string
	adjust    string

	format      string
	top         int
	weight      string
	fold        string
	output      string
	color       string
	passthrough bool
	encode      bool
	search      string
	bare        bool
	follow      bool
	strict      bool
	quiet       bool
	help        bool

	addresses, functions, pretty, inlines, demangle, basenames bool

	foldRE     *regexp.Regexp
	adjustment symbol.Adjust
	mach       codec.Machine
	machSet    bool
	how        codec.Search
}

// parse reads the command line; help goes to stdout.
func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	f := pflag.NewFlagSet("btdecode", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.SortFlags = false
	f.Usage = func() {}
	f.StringArrayVarP(&o.exes, "exe", "e", nil, "ELF `FILE`, or FILE@0xBASE where it was loaded (repeatable)")
	f.StringArrayVarP(&o.maps, "maps", "m", nil, "snapshot `FILE` of /proc/PID/maps, or FILE@LINE from\nthat line of the log on (repeatable)")
	f.StringArrayVar(&o.sysroots, "sysroot", nil, "look for modules below `DIR`, not / (repeatable)")
	f.StringArrayVar(&o.debugDirs, "debug-dir", symbol.DebugDirs(), "debug files by build-id or path below `DIR`")
	f.StringVarP(&o.section, "section", "j", "", "addresses are relative to section `NAME`")
	f.StringVar(&o.adjust, "adjust", "auto", "look up the call, for `WHICH` addresses:\nauto, all, or none")
	f.StringVar(&o.machine, "machine", "", "`NAME` of what wrote the log, such as wrap64")
	f.StringVarP(&o.format, "format", "F", "text", "`NAME`: text, addr2line, jsonl, folded, pprof,\nspeedscope")
	f.BoolVarP(&o.addresses, "addresses", "a", false, "addr2line: show addresses")
	f.BoolVarP(&o.functions, "functions", "f", false, "addr2line: show functions")
	f.BoolVarP(&o.pretty, "pretty-print", "p", false, "addr2line: a line for each location")
	f.BoolVarP(&o.inlines, "inlines", "i", false, "addr2line: unwind inlined functions")
	f.BoolVarP(&o.demangle, "demangle", "C", false, "addr2line: names as in the source")
	f.BoolVarP(&o.basenames, "basenames", "s", false, "strip directories from file names")
	f.IntVar(&o.top, "top", 0, "print the `N` call sites with the most bytes")
	f.StringVar(&o.fold, "fold", "", "hide functions that match `REGEX`")
	f.StringVar(&o.weight, "weight", "bytes", "folded: `WHAT` to add up, bytes or count")
	f.BoolVar(&o.passthrough, "passthrough", false, "keep all other text, decode in place")
	f.BoolVar(&o.encode, "encode", false, "turn ~b# lines into ~m# lines")
	f.StringVar(&o.search, "search", "lws", "--encode: `HOW`, as lws does, or best")
	f.BoolVar(&o.bare, "bare", false, "take lines of bare base64 as records, too")
	f.BoolVar(&o.follow, "follow", false, "read on as the log grows")
	f.BoolVar(&o.strict, "strict", false, "exit 1 if a record could not be read")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no notes on stderr")
	f.StringVar(&o.color, "color", "auto", "`WHEN`: auto, always, or never")
	f.StringVarP(&o.output, "output", "o", "", "write to `FILE`")
	f.BoolVarP(&o.help, "help", "h", false, "show this")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if o.help {
		fmt.Fprint(stdout, usage, f.FlagUsagesWrapped(80))
		return o, nil
	}
	o.args = f.Args()
	return o, o.check(f)
}

// check reads the flags' values and refuses what does not go together.
func (o *options) check(f *pflag.FlagSet) (err error) {
	if !slices.Contains(formats, o.format) {
		return fmt.Errorf("--format %q, expected %s", o.format, strings.Join(formats, ", "))
	}
	if o.adjustment, err = symbol.ParseAdjust(o.adjust); err != nil {
		return fmt.Errorf("--adjust %w", err)
	}
	if o.how, err = codec.ParseSearch(o.search); err != nil {
		return fmt.Errorf("--search: %w", err)
	}
	if o.machine != "" {
		if o.mach, err = codec.ParseMachine(o.machine); err != nil {
			return fmt.Errorf("--machine: %w", err)
		}
		o.machSet = true
	}
	if o.fold != "" {
		if o.foldRE, err = regexp.Compile(o.fold); err != nil {
			return fmt.Errorf("--fold: %w", err)
		}
	}
	switch {
	case o.weight != "bytes" && o.weight != "count":
		return fmt.Errorf("--weight %q, expected bytes or count", o.weight)
	case !slices.Contains([]string{"auto", "always", "never"}, o.color):
		return fmt.Errorf("--color %q, expected auto, always or never", o.color)
	case o.top < 0:
		return fmt.Errorf("--top %d, expected a number of call sites", o.top)
	case o.format == "addr2line" && len(o.exes)+len(o.maps) == 0:
		return errors.New("--format addr2line needs an ELF file (-e) or a map (--maps)")
	case o.section != "" && len(o.exes) != 1:
		return errors.New("-j needs one ELF file (-e) that has the section")
	case o.section != "" && len(o.maps) > 0:
		return errors.New("-j and --maps both say where the code was")
	case o.passthrough && (o.format != "text" || o.top > 0):
		return errors.New("--passthrough goes with --format text only")
	case o.encode && (o.format != "text" || o.top > 0 || len(o.exes)+len(o.maps) > 0):
		return errors.New("--encode makes ~m# lines and nothing else")
	case o.follow && (len(o.args) != 1 || o.args[0] == "-" || isLine(o.args[0])):
		return errors.New("--follow needs one log FILE")
	case o.follow && o.aggregates():
		return errors.New("--follow never comes to the end that --top, folded, pprof and speedscope wait for")
	}
	return nil
}

// aggregates says whether output comes only once everything was read.
func (o *options) aggregates() bool {
	return o.top > 0 || o.format == "folded" || o.format == "pprof" || o.format == "speedscope"
}

// symbols says whether addresses are looked up.
func (o *options) symbols() bool { return len(o.exes)+len(o.maps) > 0 }

// file is how a source file is called in output.
func (o *options) file(path string) string {
	if o.basenames && path != "" {
		return filepath.Base(path)
	}
	return path
}

// isLine says whether an argument is a record and not the name of a log.
func isLine(arg string) bool {
	return strings.HasPrefix(arg, codec.LeadIn) || strings.HasPrefix(arg, codec.LeadInDecoded)
}

// snapshot is a file of --maps, and from which line of the log on it holds.
type snapshot struct {
	from int64
	list []symbol.Mapping
}

// readSnapshots reads the files of --maps, sorted by their lines.
func (o *options) readSnapshots() ([]snapshot, error) {
	var all []snapshot
	for _, name := range o.maps {
		s := snapshot{}
		path := name
		if i := strings.LastIndex(name, "@"); i >= 0 {
			if n, err := strconv.ParseInt(name[i+1:], 10, 64); err == nil && n > 0 {
				path, s.from = name[:i], n
			} else if _, err := os.Stat(name); err != nil {
				return nil, fmt.Errorf("--maps %s: %q, expected FILE@LINE", name, name[i+1:])
			}
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--maps: %w", err)
		}
		s.list, err = symbol.ReadMaps(f, path)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("--maps: %w", err)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return int(a.from - b.from) })
	return all, nil
}
