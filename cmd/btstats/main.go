// Btstats reports the size of the compressed backtraces in a log, their size in other
// encodings, and which settings to choose.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/stats"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newCommand(), args, stdin, stdout, stderr)
}

func newCommand() *cobra.Command {
	c := &config{}
	root := cli.Root(&cobra.Command{
		Use:   "btstats [flags] FILE...",
		Short: "report what compressed backtraces cost, and could cost",
		Long: `btstats reports on the ~m#, ~b# and ~p# records in logs: the bytes they take,
what other encodings would take, where each bit goes, and which SNIP_PRE and
SNIP_POST to set: how many frames lws leaves out at the inner and the outer end
of each stack. A FILE may be compressed by gzip, zstd or xz; - is standard
input. The machine that encoded the log is inferred, unless --machine names it:
exact32, exact64, wrap32, wrap64, zero32 or zero64. With --model, btstats
reports on synthetic stacks instead.`,
		Example: `btstats --captured 2,1 serial.log
btstats -e app.elf --hide '^(lws_|_lws_)' --section advice serial.log
btstats --model cortex-m,x86_64-pie --section models`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd.Flags(), args); err != nil {
				return cli.BadArgs(err)
			}
			return c.report(cmd)
		},
	})
	cli.ExitCodes(root, `0 a report was printed, 1 a bad record under --strict, or a log not read to
its end, 2 usage, unreadable input or no record in it, 3 the report could not
be written.`)
	c.addFlags(root)
	return root
}

// config holds the values of the flags.
type config struct {
	logflags.Flags
	format   string
	rebase   string
	captured string
	sections []string
	interval time.Duration
	models   []string
	stacks   int
	seed     uint64
	hide     *regexp.Regexp

	given *codec.Machine // of --machine
	addr  *uint64        // of --rebase
	pre   int
	post  int
	args  []string
}

func (c *config) addFlags(root *cobra.Command) {
	group := func(name string, define func(f *pflag.FlagSet)) {
		f := pflag.NewFlagSet(name, pflag.ContinueOnError)
		define(f)
		cli.AddFlags(root, name, f)
	}
	group("Output", func(f *pflag.FlagSet) {
		f.StringVar(&c.format, "format", "table", "write format `NAME`: table, markdown, csv or json")
		f.StringSliceVar(&c.sections, "section", nil, "print only sections `NAME,...` of advice, dump, compression, bits, snip, overhead, paths, and with --model also models (default: all)")
	})
	group("Dump", func(f *pflag.FlagSet) {
		f.StringVar(&c.captured, "captured", "", "`PRE,POST`: the SNIP_PRE and SNIP_POST that the dump was captured with, or skip and post of device/ (default: 2,1, or 0,0 for device/)")
		f.StringVar(&c.rebase, "rebase", "", "report on the dump as it would be with the program loaded at `ADDRESS`")
		f.DurationVar(&c.interval, "interval", 5*time.Second, "`TIME` between reports with --follow")
	})
	c.Add(root, "Dump", "machine", "bare", "strict", "follow")
	group("Symbols, for the advice on SNIP_PRE and SNIP_POST", func(f *pflag.FlagSet) {
		for _, name := range []string{"exe", "maps", "debug-dir"} {
			c.Define(f, name)
		}
		f.Var(logflags.Regexp{To: &c.hide}, "hide", "leave out frames that match `REGEX`")
	})
	group("Synthetic stacks", func(f *pflag.FlagSet) {
		f.StringSliceVar(&c.models, "model", nil, "report on address spaces `NAME,...`, or all")
		f.IntVar(&c.stacks, "stacks", 20000, "make `N` stacks for each model")
		f.Uint64Var(&c.seed, "seed", 1, "make the stacks from seed `N`")
	})
}

// check reads the values of flags, and checks them and their combinations.
func (c *config) check(flags *pflag.FlagSet, args []string) error {
	c.args = args
	switch c.format {
	case "table", "markdown", "csv", "json":
	default:
		return fmt.Errorf("--format %q: expected table, markdown, csv or json", c.format)
	}
	if err := c.Flags.Check(args); err != nil {
		return err
	}
	if m, given := c.CodecMachine(); given {
		c.given = &m
	}
	if c.rebase != "" {
		addr, err := strconv.ParseUint(c.rebase, 0, 64)
		if err != nil {
			return fmt.Errorf("--rebase %q: expected an address such as 0x400000", c.rebase)
		}
		c.addr = &addr
	}
	var err1, err2 error
	pre, post, ok := strings.Cut(cmp.Or(c.captured, "2,1"), ",")
	c.pre, err1 = strconv.Atoi(pre)
	c.post, err2 = strconv.Atoi(post)
	if !ok || err1 != nil || err2 != nil || c.pre < 0 || c.post < 0 || c.pre > 255 || c.post > 255 {
		return fmt.Errorf("--captured %q: expected SNIP_PRE,SNIP_POST, such as 2,1", c.captured)
	}
	for _, name := range c.sections {
		if !slices.Contains(sectionNames, name) {
			return fmt.Errorf("--section %q: expected some of %s", name, strings.Join(sectionNames, " "))
		}
	}
	if len(c.sections) > 0 && c.format == "json" {
		return errors.New("--section has no effect with --format json, which writes one object")
	}
	return c.checkMode(flags.Changed)
}

var sectionNames = []string{"advice", "models", "dump", "compression", "bits", "snip", "overhead", "paths"}

// wanted returns the sections that --section names.
func (c *config) wanted(all []stats.Section) []stats.Section {
	if len(c.sections) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(s stats.Section) bool {
		_, part, ok := strings.Cut(s.ID, "/") // of a model
		return !slices.Contains(c.sections, s.ID) && !(ok && slices.Contains(c.sections, part))
	})
}

// checkMode rejects flags that could not take effect together.
func (c *config) checkMode(changed func(flag string) bool) error {
	if len(c.models) > 0 {
		if len(c.args) > 0 {
			return errors.New("--model reports on synthetic stacks: expected no FILE")
		}
		for _, name := range []string{"follow", "bare", "strict", "exe", "maps", "debug-dir", "hide", "interval"} {
			if changed(name) {
				return fmt.Errorf("--%s has no effect with --model", name)
			}
		}
		if c.stacks < 1 {
			return fmt.Errorf("--stacks %d: expected 1 or more", c.stacks)
		}
		return nil
	}
	for _, name := range []string{"stacks", "seed"} {
		if changed(name) {
			return fmt.Errorf("--%s has no effect without --model", name)
		}
	}
	for _, name := range []string{"exe", "maps", "debug-dir", "hide", "captured"} {
		switch {
		case !changed(name):
		case len(c.sections) > 0 && !slices.Contains(c.sections, "advice") && !(name == "captured" && slices.Contains(c.sections, "snip")):
			return fmt.Errorf("--%s has no effect without --section advice", name)
		case c.rebase != "" && name != "captured":
			return fmt.Errorf("--%s has no effect with --rebase: the addresses are others", name)
		}
	}
	switch {
	case len(c.args) == 0:
		return errors.New("expected a FILE, or - for standard input")
	case c.Follow && c.rebase != "":
		return errors.New("--follow and --rebase exclude each other")
	case c.Follow && c.interval <= 0:
		return fmt.Errorf("--interval %v: expected more than 0", c.interval)
	case !c.Follow && changed("interval"):
		return errors.New("--interval has no effect without --follow")
	case changed("debug-dir") && !c.Named():
		return errors.New("--debug-dir needs an ELF file (--exe)")
	case changed("hide") && !c.Named():
		return errors.New("--hide needs the names of functions: give an ELF file (--exe)")
	}
	return nil
}

// report runs the command after the flags were checked.
func (c *config) report(cmd *cobra.Command) error {
	ctx, stop := context.Background(), context.CancelFunc(func() {})
	if c.Follow {
		ctx, stop = cli.Interruptible(ctx)
	}
	defer stop()
	r := &reporter{config: c, ctx: ctx, stdin: cmd.InOrStdin(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	if len(c.models) > 0 {
		return r.reportModels()
	}
	return r.reportLogs()
}

// write renders data in the format of --format: data itself as JSON, else the sections.
func (c *config) write(w io.Writer, data any, sections []stats.Section) error {
	sections = c.wanted(sections)
	switch c.format {
	case "json":
		out, err := json.MarshalIndent(data, "", "  ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(out, '\n'))
		return err
	case "markdown":
		return stats.WriteMarkdown(w, sections)
	case "csv":
		return stats.WriteCSV(w, sections)
	}
	return stats.WriteText(w, sections)
}
