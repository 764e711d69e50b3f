package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/render"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newBench() *cobra.Command {
	o := benchOptions{}
	c := &cobra.Command{
		Use:   "bench [flags] -- BTREF",
		Short: "time lws and the codec in one run",
		Long: `bench times the codec and the real library in turns on the same stacks, of 4, 12
and 16 frames, and shows the best of all rounds of each. BTREF is the program
ref-c/btref, which "make -C ref-c" builds where libwebsockets is installed.

The library reads and writes bit by bit, so its speed depends on how well the
processor predicts the next bit. Hence there are two kinds of stacks: random
addresses in a program's code, which are not predictable, and those of a program
that allocates at the same places over and over, most of which are predictable.`,
		Example: "btconform bench -- ref-c/btref",
		RunE:    o.bench,
	}
	c.Flags().IntVar(&o.rounds, "rounds", 12, "run each `N` times")
	c.Flags().Float64Var(&o.seconds, "seconds", 0.002, "measure for at least `S` seconds")
	c.Flags().StringVar(&o.model, "model", "x86_64-pie", "make stacks in the address space `NAME`")
	return c
}

type benchOptions struct {
	rounds  int
	seconds float64
	model   string
}

// benchDepths are the depths of the measured stacks.
var benchDepths = []int{4, 12, 16}

// speed is ns per stack.
type speed struct{ encode, decode float64 }

func (a *speed) best(b speed) {
	if a.encode == 0 || b.encode < a.encode {
		a.encode = b.encode
	}
	if a.decode == 0 || b.decode < a.decode {
		a.decode = b.decode
	}
}

func (o *benchOptions) bench(c *cobra.Command, args []string) error {
	if n := c.ArgsLenAtDash(); n != 0 || len(args) == 0 {
		return cli.BadArgsf("bench without the library to compare with, expected -- BTREF: the program that " +
			"`make -C ref-c` builds where libwebsockets (4.4.0 or later) is installed")
	}
	if args[0] == "" {
		return errNoTestee
	}
	if o.rounds < 1 || !(o.seconds > 0 && o.seconds <= 60) {
		return cli.BadArgsf("--rounds %d --seconds %g, expected more than 0 and at most 60 seconds", o.rounds, o.seconds)
	}
	sets, err := benchSets(o.model)
	if err != nil {
		return cli.BadArgs(err)
	}
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	for range o.rounds {
		for _, set := range sets {
			if err := set.measure(ctx, args, o.seconds); err != nil {
				return failed(err)
			}
		}
	}
	t := render.NewTable(c.OutOrStdout(), 2)
	t.Header([]string{"", "addresses", "frames", "lws ns", "ours ns", "ratio"})
	for _, what := range []string{"decode", "encode"} {
		for _, set := range sets {
			for _, depth := range benchDepths {
				l, o := set.lws[depth].decode, set.ours[depth].decode
				if what == "encode" {
					l, o = set.lws[depth].encode, set.ours[depth].encode
				}
				if err := t.Append([]string{what, set.name, strconv.Itoa(depth), fmt.Sprintf("%.0f", l),
					fmt.Sprintf("%.1f", o), fmt.Sprintf("%.1f", l/o)}); err != nil {
					return failed(err)
				}
			}
		}
	}
	if err := t.Render(); err != nil {
		return failed(err)
	}
	return nil
}

// benchSet holds stacks of one kind by depth, and their best times.
type benchSet struct {
	name      string
	stacks    map[int][]codec.Stack
	lws, ours map[int]*speed
}

// benchLimit is the time that the library may take in addition to its measurements.
const benchLimit = 30 * time.Second

// benchCount is the number of stacks of each kind and depth.
const benchCount = 1000

// benchSets makes stacks of the depths to show, of a model's two kinds.
func benchSets(name string) ([]benchSet, error) {
	m, ok := gen.ModelByName(name)
	if !ok {
		var names []string
		for _, m := range gen.Models() {
			names = append(names, m.Name)
		}
		return nil, fmt.Errorf("--model %s, expected one of %s", name, strings.Join(names, " "))
	}
	sets := []benchSet{{name: "random"}, {name: "program"}}
	for i := range sets {
		sets[i].stacks = map[int][]codec.Stack{}
		sets[i].lws, sets[i].ours = map[int]*speed{}, map[int]*speed{}
		for _, depth := range benchDepths {
			sets[i].lws[depth], sets[i].ours[depth] = &speed{}, &speed{}
		}
	}
	random, program := m.Program(1), m.Program(1)
	for _, depth := range benchDepths {
		for range benchCount {
			var s codec.Stack
			random.Scatter(&s, depth)
			sets[0].stacks[depth] = append(sets[0].stacks[depth], s)
		}
		for range 1 << 20 {
			var s codec.Stack
			if program.Next(&s); len(s.PCs) >= depth {
				s.PCs = s.PCs[:depth]
				sets[1].stacks[depth] = append(sets[1].stacks[depth], s)
			}
			if len(sets[1].stacks[depth]) == benchCount {
				break
			}
		}
		if len(sets[1].stacks[depth]) < benchCount {
			return nil, fmt.Errorf("--model %s, expected one with stacks of %d frames", name, depth)
		}
	}
	return sets, nil
}

// measure measures a set once more, with the library and with the codec.
func (s *benchSet) measure(ctx context.Context, btref []string, seconds float64) error {
	if err := benchLibrary(ctx, btref, s.stacks, seconds, s.lws); err != nil {
		return err
	}
	for _, depth := range benchDepths {
		sp, err := benchCodec(s.stacks[depth], seconds)
		if err != nil {
			return err
		}
		s.ours[depth].best(sp)
	}
	return nil
}

// benchLibrary runs BTREF bench on all stacks and keeps the best of speeds.
func benchLibrary(ctx context.Context, argv []string, stacks map[int][]codec.Stack, seconds float64, best map[int]*speed) error {
	var in bytes.Buffer
	for _, depth := range benchDepths {
		for i := range stacks[depth] {
			writeStack(&in, fmt.Sprintf("bench/%d/%d", depth, i), &stacks[depth][i])
		}
	}
	args := append(append([]string{}, argv[1:]...), "bench", "--seconds", strconv.FormatFloat(seconds, 'f', -1, 64))
	limit := benchLimit + time.Duration(float64(len(stacks))*4*seconds*float64(time.Second))
	out, errs, err := conformance.RunLimited(ctx, append(argv[:1:1], args...), &in, limit)
	if err != nil {
		if errs = strings.TrimSpace(errs); errs != "" {
			err = fmt.Errorf("%w: %s", err, errs)
		}
		return fmt.Errorf("%s: %w", strings.Join(append([]string{argv[0]}, args...), " "), err)
	}
	seen := map[int]bool{}
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var depth, count int
		var sp speed
		n, err := fmt.Sscanf(line, "depth=%d stacks=%d encode_ns=%f decode_ns=%f", &depth, &count, &sp.encode, &sp.decode)
		if n != 4 || err != nil || best[depth] == nil || count != len(stacks[depth]) || sp.encode <= 0 || sp.decode <= 0 {
			return fmt.Errorf("%s bench, line %d: %q, expected depth=N stacks=K encode_ns=F decode_ns=F", argv[0], i+1, line)
		}
		best[depth].best(sp)
		seen[depth] = true
	}
	if len(seen) != len(benchDepths) {
		return fmt.Errorf("%s bench: lines for %d depths, expected one for each of %v", argv[0], len(seen), benchDepths)
	}
	return nil
}

// benchCodec measures the codec with reused buffers and stack.
func benchCodec(stacks []codec.Stack, seconds float64) (speed, error) {
	var blobs [][]byte
	for i := range stacks {
		blob, err := codec.AppendBlob(nil, &stacks[i], codec.MachineWrap64, codec.SearchLws)
		if err != nil {
			return speed{}, err
		}
		blobs = append(blobs, blob)
	}
	var s codec.Stack
	var buf []byte
	decode := perCall(len(blobs), seconds, func() {
		for _, blob := range blobs {
			if err := codec.Decode(&s, blob); err != nil {
				panic(err) // Decode accepts all output of AppendBlob
			}
		}
	})
	encode := perCall(len(stacks), seconds, func() {
		for i := range stacks {
			buf, _ = codec.AppendBlob(buf[:0], &stacks[i], codec.MachineWrap64, codec.SearchLws)
		}
	})
	return speed{encode: encode, decode: decode}, nil
}

// perCall returns the ns of one of the n calls in f, the best of several rounds.
func perCall(n int, seconds float64, f func()) float64 {
	best := 0.0
	for round := range 8 { // the first warms up
		from, calls := time.Now(), 0
		var took time.Duration
		for took.Seconds() < seconds {
			f()
			calls += n
			took = time.Since(from)
		}
		if ns := float64(took.Nanoseconds()) / float64(calls); round > 0 && (best == 0 || ns < best) {
			best = ns
		}
	}
	return best
}
