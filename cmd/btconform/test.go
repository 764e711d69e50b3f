package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/render"
	"github.com/spf13/pflag"
)

type testOptions struct {
	run     []string
	format  string
	known   string
	style   string
	seed    uint64
	jobs    int
	timeout time.Duration
	written bool
	strict  bool
}

func testFlags(o *testOptions) *pflag.FlagSet {
	f := pflag.NewFlagSet("btconform", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringArrayVar(&o.run, "run", nil, "vectors whose ID fits `GLOB` (* is any text)")
	f.StringVar(&o.format, "format", "table", strings.Join(render.Formats(), ", ")+"\n(clauses: what became of each, as a table)")
	f.StringVar(&o.known, "known", "", "`FILE` of failures to expect: GLOB[:OP] OUTCOME LINK")
	f.StringVar(&o.style, "exec-style", "btp", "how TESTEE is run: btp, or lws (lws32), the\n"+
		"stock tool: a process per ~m# line, ~b# back")
	f.Uint64Var(&o.seed, "seed", 0, "order and random spill bits (default: by chance)")
	f.IntVarP(&o.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "testees at a time")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "no answer for so long is a hang")
	f.BoolVar(&o.written, "as-written", false, "do not vary spill bits")
	f.BoolVar(&o.strict, "strict-reasons", false, "a rejection for another reason fails")
	return f
}

// test runs vectors on a testee.
func test(s streams, args []string) int {
	var o testOptions
	flags := testFlags(&o)
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return help(s)
	}
	if code, done := parseFlags(s, flags, args, helpText); done {
		return code
	}
	paths, testee := flags.Args(), []string(nil)
	if n := flags.ArgsLenAtDash(); n >= 0 {
		paths, testee = paths[:n], paths[n:]
		if len(testee) == 0 {
			return s.usage("nothing after --, expected the testee's program")
		}
	}
	if !slices.Contains(render.Formats(), o.format) {
		return s.usage("--format %s, expected one of %s", o.format, strings.Join(render.Formats(), ", "))
	}
	if o.jobs < 1 {
		return s.usage("--jobs %d, expected at least 1", o.jobs)
	}
	start, err := o.starter(testee)
	if err != nil {
		return s.usage("%v", err)
	}
	set, err := loadVectors(paths, s.in)
	if err != nil {
		return s.usage("%v", err)
	}
	if set = set.Select(o.run...); len(set.Vectors) == 0 {
		return s.usage("no vector's ID fits --run %s; btconform list shows them", strings.Join(o.run, " --run "))
	}
	options := conformance.Options{Seed: o.seed, Workers: o.jobs, Written: o.written, StrictReasons: o.strict,
		Partial: len(o.run) > 0, Again: o.repeat(paths, testee)}
	if !flags.Changed("seed") {
		options.Seed = uint64(rand.Uint32())
	}
	if o.known != "" {
		text, err := os.ReadFile(o.known)
		if err != nil {
			return s.usage("%v", err)
		}
		if options.Known, err = conformance.ParseKnown(o.known, text); err != nil {
			return s.usage("%v", err)
		}
	}
	report, err := conformance.Run(set, start, options)
	if err != nil {
		return s.fail(err)
	}
	if err := render.Report(s.out, report, o.format, wantsColour(s.out)); err != nil {
		return s.fail(err)
	}
	switch {
	case report.Failed():
		return exitShort
	case !report.Ran():
		return s.usage("the testee answered none of %d vectors: it offers none of their operations, or skipped them all",
			report.Vectors)
	}
	return exitOK
}

func loadVectors(paths []string, stdin io.Reader) (*conformance.Set, error) {
	if len(paths) == 0 {
		return conformance.Builtin()
	}
	return conformance.Load(paths, stdin)
}

func (o *testOptions) starter(testee []string) (conformance.Starter, error) {
	switch {
	case o.style != "btp" && o.style != "lws" && o.style != "lws32":
		return nil, fmt.Errorf("--exec-style %s, expected btp, lws or lws32", o.style)
	case len(testee) == 0 && o.style != "btp":
		return nil, fmt.Errorf("--exec-style %s without a testee, expected -- TOOL args", o.style)
	case len(testee) == 0:
		return conformance.Codec, nil
	case o.style == "lws":
		return conformance.LwsTool(testee, 64, o.timeout), nil
	case o.style == "lws32":
		return conformance.LwsTool(testee, 32, o.timeout), nil
	}
	return conformance.Process(testee, o.timeout), nil
}

// repeat is what matters for putting a vector once more.
func (o *testOptions) repeat(paths, testee []string) conformance.Repeat {
	var flags []string
	if o.style != "btp" {
		flags = append(flags, "--exec-style", o.style)
	}
	if o.written {
		flags = append(flags, "--as-written")
	}
	if o.strict {
		flags = append(flags, "--strict-reasons")
	}
	return conformance.Repeat{Flags: flags, Vectors: paths, Testee: testee}
}

// wantsColour says whether w is a terminal whose user has not said NO_COLOR.
func wantsColour(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
