package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heap/internal/logflags"
	"github.com/lwsbt/lwsbt/internal/cli"
)

const about = `btdecode decodes the compressed call stacks in logs of libwebsockets, the ~m#
lines. It prints these alone, or with --passthrough also all other text. Without
FILE, or with '-', it reads standard input. With an ELF file or a memory map of
the process, it also prints functions and lines.`

const examples = `
btdecode device.log                  ~b#size: 7520, 0x406651 0x406852
btdecode -e app.elf device.log       the same, and the frames below it
btdecode --passthrough -e app.elf --serial /dev/ttyUSB0:115200
btdecode --maps app.maps --format jsonl device.log
btheap top -e app.elf device.log     sums: see btheap --help`

const exitCodes = `0 decoded, 1 a log is damaged, or --strict and a record could not be read,
2 usage, unreadable input or no record, 3 the output cannot be written.`

// formats that --format takes.
var formats = []string{"text", "jsonl"}

// options is the command line.
type options struct {
	logflags.Flags
	args []string

	format      string
	output      string
	color       string
	passthrough bool
	panicText   string
	panicLine   *regexp.Regexp

	basenames bool
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
	o.Add(c, "Symbols", "exe", "force", "maps", "sysroot", "debug-dir", "machine")
	o.Add(c, "Input", "serial", "follow", "strict", "quiet")

	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&o.format, "format", "F", "text", "`NAME`: text or jsonl; btheap export has formats of sums")
	f.BoolVar(&o.passthrough, "passthrough", false, "also print all other text, with the records decoded in place, and the frames of panic backtraces")
	f.StringVar(&o.panicText, "panic-line", "", "with --passthrough, name the addresses in the last group of `REGEX`, too: 'crash at (\\w+)'")
	f.StringVar(&o.color, "color", "auto", "colour the output `WHEN`: auto, always, or never")
	f.StringVarP(&o.output, "output", "o", "", "write to `FILE`")
	cli.AddFlags(c, "Output", f)

	o.Add(c, "Frames", "hide")
	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BoolVarP(&o.basenames, "basenames", "s", false, "strip directories from file names")
	cli.AddFlags(c, "Frames", f)

	return c
}

// check reads the flags' values, and rejects flags without effect.
func (o *options) check(f *pflag.FlagSet) (err error) {
	if err := o.Flags.Check(o.args); err != nil {
		return err
	}
	if !slices.Contains(formats, o.format) {
		return fmt.Errorf("--format %q, expected %s; btheap export has the formats that add up", o.format, strings.Join(formats, ", "))
	}
	if o.panicText != "" {
		if o.panicLine, err = regexp.Compile(o.panicText); err != nil {
			return fmt.Errorf("--panic-line: %w", err)
		}
	}
	switch {
	case o.panicLine != nil && (o.panicLine.NumSubexp() == 0 || !o.passthrough):
		return fmt.Errorf("--panic-line needs a group with the address, and --passthrough")
	case !slices.Contains([]string{"auto", "always", "never"}, o.color):
		return fmt.Errorf("--color %q, expected auto, always or never", o.color)
	case o.passthrough && o.format != "text":
		return fmt.Errorf("--passthrough goes with --format text only")
	case o.format != "text" && f.Changed("color"):
		return fmt.Errorf("--color has no effect here: it needs --format text")
	}
	return nil
}

// file returns the name of a source file in the output.
func (o *options) file(path string) string {
	if o.basenames && path != "" {
		return filepath.Base(path)
	}
	return path
}
