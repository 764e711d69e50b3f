// Command btstats says what the compressed backtraces in a log cost, what they could
// cost, and which settings to choose.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/stats"
)

// Exit codes.
const (
	exitOK      = 0
	exitShort   = 1 // the data falls short: a bad record under --strict, too much growth
	exitUsage   = 2 // usage, unreadable input, nothing to do
	exitFailure = 3 // btstats itself failed: could not write
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const help = `btstats - what compressed backtraces cost, and could cost

Usage:
  btstats [flags] FILE...             report on the ~m# and ~b# records in logs
  btstats [flags] --model NAME,...    report on made-up stacks of address spaces
  btstats compare [flags] A B         growth from dump A to dump B, by call path

A FILE may be compressed by gzip or zstd; - is standard input.

Example:
  btstats --captured 2,1 --top 5 serial.log

Flags:
`

// config is what the flags say.
type config struct {
	format   string
	machine  string
	rebase   string
	captured string
	loss     float64
	top      int
	sections []string
	bare     bool
	strict   bool
	follow   bool
	interval time.Duration
	models   []string
	stacks   int
	seed     uint64
	growth   int64

	given   *codec.Machine
	addr    *uint64
	pre     int
	post    int
	compare bool
	args    []string
	flags   *pflag.FlagSet
}

func (c *config) define() {
	f := pflag.NewFlagSet("btstats", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	f.StringVar(&c.format, "format", "table", "table, markdown, csv or json")
	f.StringVar(&c.machine, "machine", "", "what wrote the dump: exact32 exact64\nwrap32 wrap64 zero32 zero64\n(default: inferred from the dump)")
	f.StringVar(&c.captured, "captured", "2,1", "SNIP_PRE,SNIP_POST of the dump")
	f.Float64Var(&c.loss, "allow-merge", 0, "recommend snips that merge up to this\nmany `percent` of the call paths")
	f.StringVar(&c.rebase, "rebase", "", "report on the dump as it would be with\nthe program loaded at `address`")
	f.IntVar(&c.top, "top", 10, "call sites and call paths to list")
	f.StringSliceVar(&c.sections, "section", nil, "parts to print, of dump compression bits\nsnip overhead memory, and with --model\nmodels (default: all)")
	f.BoolVar(&c.bare, "bare", false, "take lines that are base64 and nothing\nelse as records, too")
	f.BoolVar(&c.strict, "strict", false, "stop with status 1 at the first record\nthat cannot be read")
	f.BoolVarP(&c.follow, "follow", "f", false, "read on as the last FILE grows, with a\nreport each interval, until interrupted")
	f.DurationVar(&c.interval, "interval", 5*time.Second, "time between reports of --follow")
	f.StringSliceVar(&c.models, "model", nil, "address spaces to make stacks up for,\nor all")
	f.IntVar(&c.stacks, "stacks", 20000, "stacks to make up for each model")
	f.Uint64Var(&c.seed, "seed", 1, "what made-up stacks follow from")
	f.Int64Var(&c.growth, "fail-on-growth", -1, "compare: status 1 if B has over this many\n`bytes` more than A")
	c.flags = f
}

// parse reads flags and holds them to each other.
func (c *config) parse(args []string) error {
	if len(args) > 0 && args[0] == "compare" {
		c.compare, args = true, args[1:]
	}
	if err := c.flags.Parse(args); err != nil {
		return err
	}
	c.args = c.flags.Args()
	switch c.format {
	case "table", "markdown", "csv", "json":
	default:
		return fmt.Errorf("--format %q: expected table, markdown, csv or json", c.format)
	}
	if c.machine != "" {
		m, err := codec.ParseMachine(c.machine)
		if err != nil {
			return fmt.Errorf("--machine: %w", err)
		}
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
	pre, post, ok := strings.Cut(c.captured, ",")
	c.pre, err1 = strconv.Atoi(pre)
	c.post, err2 = strconv.Atoi(post)
	if !ok || err1 != nil || err2 != nil || c.pre < 0 || c.post < 0 || c.pre > 255 || c.post > 255 {
		return fmt.Errorf("--captured %q: expected SNIP_PRE,SNIP_POST, such as 2,1", c.captured)
	}
	if c.loss < 0 || c.loss > 100 {
		return fmt.Errorf("--allow-merge %v: expected a percentage from 0 to 100", c.loss)
	}
	if c.top < 0 {
		return fmt.Errorf("--top %d: expected 0 or more", c.top)
	}
	for _, name := range c.sections {
		if !slices.Contains(sectionNames, name) {
			return fmt.Errorf("--section %q: expected some of %s", name, strings.Join(sectionNames, " "))
		}
	}
	if len(c.sections) > 0 && c.format == "json" {
		return errors.New("--section: is not for --format json, which is one object")
	}
	return c.parseMode()
}

var sectionNames = []string{"models", "dump", "compression", "bits", "snip", "overhead", "memory"}

// wanted is the sections that --section names.
func (c *config) wanted(all []stats.Section) []stats.Section {
	if len(c.sections) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(s stats.Section) bool {
		_, part, ok := strings.Cut(s.ID, "/") // of a model
		return !slices.Contains(c.sections, s.ID) && !(ok && slices.Contains(c.sections, part))
	})
}

// parseMode checks what only some ways of calling take.
func (c *config) parseMode() error {
	changed := c.flags.Changed
	switch {
	case c.compare && len(c.args) != 2:
		return fmt.Errorf("compare: got %d arguments, expected two dumps, A and B", len(c.args))
	case c.compare && (len(c.models) > 0 || c.follow || c.rebase != "" || len(c.sections) > 0):
		return errors.New("compare: takes no --model, --follow, --rebase or --section")
	case !c.compare && changed("fail-on-growth"):
		return errors.New("--fail-on-growth: is for btstats compare A B")
	case changed("fail-on-growth") && c.growth < 0:
		return fmt.Errorf("--fail-on-growth %d: expected 0 or more bytes", c.growth)
	case len(c.models) > 0 && (len(c.args) > 0 || c.follow || c.bare || c.strict):
		return errors.New("--model: makes its stacks up, and takes no FILE, --follow, --bare or --strict")
	case len(c.models) > 0 && (c.stacks < 1):
		return fmt.Errorf("--stacks %d: expected 1 or more", c.stacks)
	case len(c.models) == 0 && len(c.args) == 0:
		return errors.New("expected a FILE, or - for standard input")
	case c.follow && c.rebase != "":
		return errors.New("--follow: takes no --rebase")
	case c.follow && c.interval <= 0:
		return fmt.Errorf("--interval %v: expected more than 0", c.interval)
	}
	return nil
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &config{}
	c.define()
	if err := c.parse(args); errors.Is(err, pflag.ErrHelp) {
		return exit(stderr, c.printHelp(stdout))
	} else if err != nil {
		fmt.Fprintf(stderr, "btstats: %v\nTry btstats --help.\n", err)
		return exitUsage
	}
	ctx, stop := context.Background(), func() {}
	if c.follow {
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	}
	defer stop()
	r := &reporter{config: c, ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	switch {
	case c.compare:
		return exit(stderr, r.compareDumps())
	case len(c.models) > 0:
		return exit(stderr, r.reportModels())
	}
	return exit(stderr, r.reportLogs())
}

func (c *config) printHelp(w io.Writer) error {
	_, err := io.WriteString(w, help+c.flags.FlagUsagesWrapped(80))
	return failure(err)
}

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func short(format string, args ...any) error {
	return &exitError{exitShort, fmt.Errorf(format, args...)}
}

// failure is an error in writing; a closed pipe is none.
func failure(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return &exitError{exitFailure, err}
}

func exit(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "btstats: %v\n", err)
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}

// write renders data as the flags say: as JSON itself, else as sections.
func (c *config) write(w io.Writer, data any, sections []stats.Section) error {
	sections = c.wanted(sections)
	switch c.format {
	case "json":
		out, err := json.MarshalIndent(data, "", "  ")
		if err != nil {
			return failure(err)
		}
		_, err = w.Write(append(out, '\n'))
		return failure(err)
	case "markdown":
		return failure(stats.WriteMarkdown(w, sections))
	case "csv":
		return failure(stats.WriteCSV(w, sections))
	}
	return failure(stats.WriteText(w, sections))
}
