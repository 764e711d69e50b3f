package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/logs"
)

const about = `btdecode decodes the compressed call stacks in logs of libwebsockets, the ~m#
lines. It prints these alone, or with --passthrough also all other text. Without
FILE, or with '-', it reads standard input. With an ELF file or a memory map of
the process, it also prints functions and lines.`

const examples = `
btdecode device.log                  ~b#size: 7520, 0x406651 0x406852
btdecode -e app.elf device.log       the same, and the frames below it
btdecode --passthrough -e app.elf --serial /dev/ttyUSB0:115200
btdecode -e app --format pprof -o heap.pb.gz device.log
btdecode --maps app.maps --top 10 device.log`

const exitCodes = `0 decoded, 1 a log is damaged, or --strict and a record could not be read,
2 usage, unreadable input or no record, 3 the output cannot be written.`

// formats that --format takes, and of these the ones that add up.
var (
	formats  = []string{"text", "addr2line", "jsonl", "folded", "pprof", "speedscope"}
	addingUp = []string{"folded", "pprof", "speedscope"}
)

// options is the command line.
type options struct {
	logs.Flags
	args []string

	format      string
	top         int
	weight      string
	maxPaths    int
	output      string
	color       string
	passthrough bool
	encode      bool
	searchName  string

	addresses, functions, pretty, inlines, demangle, basenames, fullNames bool

	filter filter
	search codec.Search
}

func newCommand() *cobra.Command {
	o := &options{}
	c := cli.Root(&cobra.Command{
		Use: "btdecode [flags] [FILE... | LINE...]", Long: about, Example: examples, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.args = args
			if err := o.check(c.Flags()); err != nil {
				return cli.BadArgs(err)
			}
			return decode(c, o)
		},
	})
	cli.ExitCodes(c, exitCodes)
	o.AddSymbols(c)
	o.AddInput(c)

	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&o.format, "format", "F", "text", "`NAME`: text, addr2line, jsonl, folded, pprof,\nspeedscope; btheap export has more")
	f.BoolVar(&o.passthrough, "passthrough", false, "copy all other text, and decode records in place; print the frames of panic backtraces, too")
	f.BoolVar(&o.encode, "encode", false, "turn ~b# lines into ~m# lines")
	f.StringVar(&o.searchName, "search", "lws", "with --encode, encode as `NAME`: lws, or best, for the shortest records")
	f.IntVar(&o.top, "top", 0, "print the `N` call sites with the most bytes")
	f.StringVar(&o.weight, "weight", "bytes", "with --format folded, add up `WHAT`: bytes or count")
	f.IntVar(&o.maxPaths, "max-paths", 0, "when adding up, keep `N` distinct call paths, and add the others as one (default 10 million)")
	f.StringVar(&o.color, "color", "auto", "colour the output `WHEN`: auto, always, or never")
	f.StringVarP(&o.output, "output", "o", "", "write to `FILE`")
	cli.AddFlags(c, "Output", f)

	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.filter.AddFlags(f)
	f.Var(logs.Regexp{To: &o.filter.Hide}, "fold", "the former name of --hide")
	f.MarkHidden("fold")
	f.BoolVarP(&o.basenames, "basenames", "s", false, "strip directories from file names")
	f.BoolVar(&o.fullNames, "full-names", false, "when adding up, show C++ names with arguments")
	cli.AddFlags(c, "Frames", f)

	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BoolVarP(&o.addresses, "addresses", "a", false, "show addresses")
	f.BoolVarP(&o.functions, "functions", "f", false, "show functions")
	f.BoolVarP(&o.pretty, "pretty-print", "p", false, "print each location on one line")
	f.BoolVarP(&o.inlines, "inlines", "i", false, "show inlined functions, too")
	f.BoolVarP(&o.demangle, "demangle", "C", false, "demangle the names of functions")
	f.StringVarP(&o.Section, "section", "j", "", "addresses are relative to section `NAME`")
	cli.AddFlags(c, "As addr2line (with --format addr2line; -j with any format)", f)
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// check reads the flags' values and refuses what has no effect.
func (o *options) check(f *pflag.FlagSet) (err error) {
	if err := o.Flags.Check(o.args); err != nil {
		return err
	}
	if !slices.Contains(formats, o.format) {
		return fmt.Errorf("--format %q, expected %s", o.format, strings.Join(formats, ", "))
	}
	if o.search, err = codec.ParseSearch(o.searchName); err != nil {
		return fmt.Errorf("--search: %w", err)
	}
	if f.Changed("fold") && f.Changed("hide") {
		return fmt.Errorf("--fold is the former name of --hide: give --hide alone")
	}
	switch {
	case o.weight != "bytes" && o.weight != "count":
		return fmt.Errorf("--weight %q, expected bytes or count", o.weight)
	case !slices.Contains([]string{"auto", "always", "never"}, o.color):
		return fmt.Errorf("--color %q, expected auto, always or never", o.color)
	case o.top < 0:
		return fmt.Errorf("--top %d, expected a number of call sites", o.top)
	case o.maxPaths < 0:
		return fmt.Errorf("--max-paths %d, expected a number of call paths", o.maxPaths)
	case o.format == "addr2line" && !o.Named():
		return fmt.Errorf("--format addr2line needs an ELF file (-e) or a map (--maps)")
	case o.passthrough && (o.format != "text" || o.top > 0):
		return fmt.Errorf("--passthrough goes with --format text only")
	case o.encode && (o.format != "text" || o.top > 0 || o.Named()):
		return fmt.Errorf("--encode makes ~m# lines and nothing else")
	case o.top > 0 && f.Changed("format"):
		return fmt.Errorf("--top and --format are two outputs: give one")
	}
	return o.noEffect(f)
}

// noEffect refuses flags that would change nothing.
func (o *options) noEffect(f *pflag.FlagSet) error {
	addr2line := o.format == "addr2line"
	for _, c := range []struct {
		useful bool
		needs  string
		flags  []string
	}{
		{addr2line, "--format addr2line", []string{"addresses", "functions", "pretty-print", "inlines", "demangle"}},
		{o.format == "folded", "--format folded", []string{"weight"}},
		{o.encode, "--encode", []string{"search"}},
		{!o.encode, "no --encode", []string{"hide", "show", "ignore", "focus", "fold", "basenames", "debug-dir", "sysroot", "adjust", "section"}},
		{!addr2line, "another format than addr2line", []string{"hide", "show", "ignore", "focus", "fold"}},
		{o.addsUp(), "a format that adds up (--top, folded, pprof, speedscope)", []string{"max-paths", "full-names"}},
		{o.format == "text" && !o.encode && o.top == 0, "--format text", []string{"color"}},
		{!o.passthrough, "no --passthrough", []string{"dump", "ignore", "focus"}},
		{!o.encode, "no --encode", []string{"dump"}},
	} {
		for _, name := range c.flags {
			if f.Changed(name) && !c.useful {
				return fmt.Errorf("--%s has no effect here: it needs %s", name, c.needs)
			}
		}
	}
	return nil
}

// addsUp reports whether output comes only once everything was read.
func (o *options) addsUp() bool { return o.top > 0 || slices.Contains(addingUp, o.format) }

// file is how a source file is called in output.
func (o *options) file(path string) string {
	if o.basenames && path != "" {
		return filepath.Base(path)
	}
	return path
}
