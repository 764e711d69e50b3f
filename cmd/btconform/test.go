package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/render"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
)

type testOptions struct {
	run     []string
	format  string
	known   string
	seed    uint64
	jobs    int
	timeout time.Duration
	written bool
	strict  bool
	verbose bool
}

func (o *testOptions) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("btconform", pflag.ContinueOnError)
	f.StringArrayVar(&o.run, "run", nil, "run vectors whose ID matches `GLOB` (* is any text; repeatable)")
	f.StringVar(&o.format, "format", "table", "write format `NAME`: "+strings.Join(render.Formats(), ", "))
	f.StringVar(&o.known, "known", "", "expect the failures in `FILE`: lines of GLOB[:OP] OUTCOME LINK")
	f.Uint64Var(&o.seed, "seed", 0, "use `SEED` for the order and for random spill bits (default: random)")
	f.IntVarP(&o.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "run `N` processes of TESTEE at a time")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "report a hang after `TIME` without an answer")
	f.BoolVar(&o.written, "as-written", false, "do not vary the spill bits of the vectors")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "write all failures, and counts of all vectors by group")
	f.BoolVar(&o.strict, "strict-reasons", false, "fail a rejection for another reason than expected")
	return f
}

// test runs vectors on an implementation.
func (o *testOptions) test(c *cobra.Command, args []string) error {
	paths, testee, dash := testeeOf(c, args)
	switch {
	case dash && len(testee) == 0:
		return cli.BadArgsf("nothing after --, expected a program")
	case dash && testee[0] == "":
		return errNoTestee
	case !slices.Contains(render.Formats(), o.format):
		return cli.BadArgsf("--format %s, expected one of %s", o.format, strings.Join(render.Formats(), ", "))
	case o.jobs < 1:
		return cli.BadArgsf("--jobs %d, expected at least 1", o.jobs)
	case !dash && c.Flags().Changed("timeout"):
		return cli.BadArgsf("--timeout has no effect without a program, expected -- TESTEE")
	case o.timeout <= 0:
		return cli.BadArgsf("--timeout %v, expected more than 0", o.timeout)
	}
	start := conformance.Codec
	if dash {
		start = conformance.Process(testee, o.timeout)
	}
	set, err := loadVectors(c, paths)
	if err != nil {
		return err
	}
	if set = set.Select(o.run...); len(set.Vectors) == 0 {
		return cli.Usagef("no vector's ID matches --run %s; btconform list shows them", strings.Join(o.run, " --run "))
	}
	options := conformance.Options{Seed: o.seed, Workers: o.jobs, Written: o.written, StrictReasons: o.strict,
		Partial: len(o.run) > 0, Again: o.repeat(paths, testee)}
	if !c.Flags().Changed("seed") {
		options.Seed = uint64(rand.Uint32())
	}
	if o.known != "" {
		text, err := os.ReadFile(o.known)
		if err != nil {
			return err
		}
		if options.Known, err = conformance.ParseKnown(o.known, text); err != nil {
			return err
		}
	}
	return o.runAndRender(c, set, start, options)
}

func (o *testOptions) runAndRender(c *cobra.Command, set *conformance.Set, start conformance.Starter, options conformance.Options) error {
	out := c.OutOrStdout()
	colour := cli.Color("auto", out)
	p := newProgress(c.ErrOrStderr())
	options.Progress = p.show
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	report, err := conformance.Run(ctx, set, start, options)
	p.clear()
	if err != nil {
		if err := render.NoReport(out, o.format, err); err != nil {
			return failed(err)
		}
		return failed(err)
	}
	if o.format == "table" {
		err = errors.Join(render.Failures(out, report, colour, o.verbose), render.Summary(out, report, colour, o.verbose))
	} else {
		err = render.Report(out, report, o.format, colour)
	}
	switch {
	case err != nil:
		return failed(err)
	case report.Failed():
		return cli.Exit(cli.Short)
	case !report.Ran():
		return cli.Usagef("TESTEE answered none of %d vectors: it offers none of their operations, or skipped them all",
			report.Vectors)
	}
	return nil
}

// failed is an error of the program or the output.
func failed(err error) error {
	if errors.Is(err, context.Canceled) {
		return cli.Failedf("interrupted")
	}
	return cli.Failedf("%w", err)
}

func loadVectors(c *cobra.Command, paths []string) (*conformance.Set, error) {
	if len(paths) == 0 {
		return conformance.Builtin()
	}
	if slices.Contains(paths, "") {
		return nil, cli.BadArgsf("the name of a file of VECTORS is empty")
	}
	set, err := conformance.Load(paths, c.InOrStdin())
	var missing *fs.PathError
	if errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) {
		if hint := cli.Suggest(c.Root(), missing.Path); hint != "" {
			return nil, fmt.Errorf("%w%s", err, hint)
		}
		return nil, fmt.Errorf("%w, expected a directory of vectors, a .btv file or a command", err)
	}
	return set, err
}

// repeat returns the arguments of a command that runs a vector again.
func (o *testOptions) repeat(paths, testee []string) conformance.Repeat {
	var flags []string
	if o.written {
		flags = append(flags, "--as-written")
	}
	if o.strict {
		flags = append(flags, "--strict-reasons")
	}
	return conformance.Repeat{Flags: flags, Vectors: paths, Testee: testee}
}

// progress is a line on a terminal that shows the progress of a run.
type progress struct {
	w     io.Writer // nil if it is no terminal
	last  time.Time
	shown bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{last: time.Now()}
	if cli.IsTerminal(w) {
		p.w = w
	}
	return p
}

func (p *progress) show(asked, total, failed int) {
	if p.w == nil || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last, p.shown = time.Now(), true
	fmt.Fprintf(p.w, "\r\x1b[K%d of %d questions asked, %d failures", asked, total, failed)
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
