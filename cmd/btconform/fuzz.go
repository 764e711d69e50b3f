package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/render"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/fuzz"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newFuzz() *cobra.Command {
	var o fuzz.Options
	var ops []string
	var file string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "fuzz [flags] -- TESTEE args...",
		Short: "compare answers to requests that no vector has",
		Long: `fuzz makes up requests, by a model of the format and from the vectors, and
compares the answers of TESTEE with those of the codec of this module. Each
request whose answers differ is made as short as it can be, printed as a
failure, and appended to a file of vectors. What SPEC.md leaves open is not
asked.`,
		Example: `btconform fuzz -- ./mine
btconform fuzz --for 5m --ops dumps,log --seed 7 -- ./mine
btconform found.btv -- ./mine`,
		RunE: func(c *cobra.Command, args []string) error {
			paths, testee, given := testeeOf(c, args)
			if len(paths) > 0 || !given || len(testee) == 0 {
				return cli.BadArgsf("expected the command of the testee after --")
			}
			if !c.Flags().Changed("seed") {
				o.Seed = uint64(rand.Uint32())
			}
			for _, op := range ops {
				if !slices.Contains(conformance.Ops(), conformance.Op(op)) {
					return cli.BadArgsf("--ops %s, expected operations of BTP/1", op)
				}
				o.Ops = append(o.Ops, conformance.Op(op))
			}
			return runFuzz(c, testee, o, file, timeout)
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", 0, "make up the requests of `SEED` (default: random)")
	f.DurationVar(&o.For, "for", 30*time.Second, "end after `TIME`")
	f.IntVar(&o.Requests, "requests", 0, "end after `N` requests, whatever the time")
	f.StringSliceVar(&ops, "ops", nil, "ask `OP,OP` only")
	f.BoolVar(&o.First, "first", false, "end at the first difference")
	f.StringVar(&file, "out", "found.btv", "append the vectors to `FILE`")
	f.DurationVar(&timeout, "timeout", 2*time.Second, "report a hang after `TIME` without an answer")
	cli.ExitCodes(c, "0 no difference, 1 differences, 2 usage, 3 the testee cannot be run.")
	return c
}

func runFuzz(c *cobra.Command, testee []string, o fuzz.Options, file string, timeout time.Duration) error {
	if o.Requests > 0 && !c.Flags().Changed("for") {
		o.For = 0
	}
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	out := c.OutOrStdout()
	var wrong error // of writing the file
	n := 0
	o.Found = func(x *fuzz.Finding) {
		n++
		text, v, err := x.Vector(fmt.Sprintf("found/%s-%d-%d", x.Request.Op, o.Seed, n))
		if err != nil {
			fmt.Fprintf(out, "FAIL %s: %v\n%s\n", x.Request.Describe(), err, text)
			return
		}
		if err := appendVector(file, text, x); err != nil && wrong == nil {
			wrong = err
		}
		v.File, v.Row = file, 0
		render.Failure(out, v.Failure(x.Request.Op, x.Got, conformance.Repeat{Vectors: []string{file}, Testee: testee}), false)
	}
	r, err := fuzz.Run(ctx, conformance.Process(testee, timeout), o)
	if err != nil && r == nil {
		return failed(err)
	}
	if err == nil || ctx.Err() != nil { // an interrupted run has a result
		summary(out, r, o.Seed)
		err = nil
	}
	switch {
	case err != nil:
		return failed(err)
	case wrong != nil:
		return failed(wrong)
	case r.Asked == 0:
		return cli.BadArgsf("nothing was asked: the testee offers none of the operations")
	case r.Findings > 0:
		return cli.Exit(cli.Short)
	}
	return nil
}

func summary(out io.Writer, r *fuzz.Report, seed uint64) {
	fmt.Fprintf(out, "%s: %s %s; %s requests in %.0f s, %s skipped; seed %d\n", cli.Count(r.Findings, "difference"), cli.Printable(r.Testee.Name),
		cli.Printable(r.Testee.Version), cli.Number(r.Asked), r.Took.Seconds(), cli.Number(r.Skipped), seed)
	for _, op := range r.Hung {
		fmt.Fprintf(out, "%s hung: it was not asked again\n", op)
	}
}

// appendVector appends a vector to a .btv file.
func appendVector(file, text string, x *fuzz.Finding) error {
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(before) == 0 {
		before = []byte("btv 1\nsource: btconform fuzz\n")
	}
	if !x.Certain {
		text = text[:len(text)-1] + "\nwhy: the clause is that of the field that differs, " + x.Field + "\n"
	}
	return cli.WriteOutput(file, nil, nil, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%s", before, text)
		return err
	})
}
