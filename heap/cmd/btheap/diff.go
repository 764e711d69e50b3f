package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// threshold is the value of --fail-on-growth.
type threshold struct {
	bytes uint64
	given bool
}

// parseThreshold reads the value of --fail-on-growth, which may be empty.
func parseThreshold(s string) (threshold, error) {
	if s == "" {
		return threshold{}, nil
	}
	n, err := cli.ParseSize(s)
	if err != nil {
		return threshold{}, cli.BadArgsf("--fail-on-growth %q, expected SIZE, such as 64K", s)
	}
	return threshold{n, true}, nil
}

// signed writes a difference with its sign.
func signed(d delta) string {
	switch {
	case d.magnitude == 0:
		return "0"
	case d.negative:
		return "-" + cli.Number(d.magnitude)
	}
	return "+" + cli.Number(d.magnitude)
}

// stack writes the frames of a call path below its sums.
func (s *session) stack(w io.Writer, sites []profile.Site) {
	for _, f := range sites {
		fmt.Fprintf(w, "    %s\n", f)
	}
	if len(sites) == 0 {
		fmt.Fprintln(w, "    (no frames)")
	}
}

func diffCommand() *cobra.Command {
	s := &session{rows: 20, view: profile.View{By: profile.ByFunction}}
	fail, failNew := "", false
	c := &cobra.Command{
		Use: "diff [flags] A B | LOG", Short: "what changed between two dumps",
		Long: `diff compares the logs of two builds, A before an update and B after it: first
which leaks are mended, still there or new, then the last dumps. For one LOG, it
compares the first and the last dump, or those of --dump A..B. Call paths that
grew come first, those that shrank last. Each log uses the ELF file of its
build, and call paths are the same if their functions have the same names.`,
		Example: "btheap diff -e old.elf -e new.elf old.log new.log\nbtheap diff --dump 2..5 -e app.elf device.log",
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) > 2 {
				return cli.BadArgsf("%d files, expected two, or one with several dumps", len(files))
			}
			limit, err := parseThreshold(fail)
			if err != nil {
				return err
			}
			if failNew && len(files) != 2 {
				return cli.BadArgsf("--fail-on-new needs two logs: before and after an update")
			}
			return s.run(c, files, func(w io.Writer) error { return s.writeDiff(w, limit, failNew) })
		},
	}
	cli.ExitCodes(c, `0 reported, 1 a log is damaged, the heap grows more than --fail-on-growth
allows, or a leak is new or may be (--fail-on-new), 2 usage, unreadable input,
no record, or it is not clear where dumps begin (give --split), 3 the output
cannot be written.`)
	f := c.Flags()
	f.VarP(&s.rows, "rows", "n", "list `N` call paths, 0 for all")
	f.StringVar(&fail, "fail-on-growth", "", "exit with 1 if the total grew by more than `SIZE`")
	f.BoolVar(&failNew, "fail-on-new", false, "exit with 1 if a leak in B is not known to be in A, too")
	s.addAll(c, "Diff", compareFrames, jsonOutput)
	return c
}

// writeDiff writes the changes between two dumps.
func (s *session) writeDiff(w io.Writer, limit threshold, failNew bool) error {
	pair, err := s.pair()
	if err != nil {
		return err
	}
	p, err := s.profile(pair...)
	if err != nil {
		return err
	}
	s.outcome = limit.check(p, s.outcome)
	update, err := s.compared(failNew)
	if err != nil {
		return err
	}
	changed := changes(p, s.w)
	shown := ends(changed, int(s.rows))
	left := len(changed) - len(shown)
	if s.json {
		return s.diffJSON(w, p, update, shown, left)
	}
	s.writeUpdate(w, update)
	before, after := p.Total(0), p.Total(1)
	fmt.Fprintf(w, "%s\n%s → %s bytes (%s), %s → %s allocations (%s)\n", joined(pair),
		cli.Number(before.Bytes), cli.Number(after.Bytes), signed(subtract(after.Bytes, before.Bytes)),
		cli.Number(before.Count), cli.Number(after.Count), signed(subtract(after.Count, before.Count)))
	var frames stackLimit
	for _, c := range shown {
		word := ""
		switch {
		case c.before.IsZero():
			word = ", new"
		case c.after.IsZero():
			word = ", gone"
		}
		fmt.Fprintf(w, "\n%s bytes, %s allocations: %s → %s bytes%s\n", signed(c.delta(profile.Bytes)), signed(c.delta(profile.Count)),
			cli.Number(c.before.Bytes), cli.Number(c.after.Bytes), word)
		s.stack(w, frames.stack(c.Row))
	}
	s.noteCut(&frames)
	writeMore(w, "\n", left, "more call path")
	return nil
}

// compared returns the leaks before and after an update, nil unless there are two logs with enough dumps.
func (s *session) compared(failNew bool) (*growth.Comparisons, error) {
	if len(s.files) != 2 {
		return nil, nil
	}
	n := slices.IndexFunc(s.dumps, func(d *profile.Dump) bool { return d.File != s.dumps[0].File })
	if n < 0 {
		return nil, nil
	}
	p, err := newView(s.view, s.dumps...)
	if err != nil {
		return nil, err
	}
	c := growth.Compare(p, n)
	if failNew {
		s.outcome = cmp.Or(newLeak(c), s.outcome)
	}
	return c, nil
}

// newLeak returns an error if a leak is new, or may be.
func newLeak(c *growth.Comparisons) error {
	if c.Before == 0 || c.After == 0 {
		return cli.Shortf("--fail-on-new: a boot of each log needs three dumps or more")
	}
	for _, x := range c.List { // the new ones are first
		function := "(no frames)"
		if stack := x.Stack(); len(stack) > 0 {
			function = stack[0].String()
		}
		switch {
		case x.Fate == growth.FateNew:
			return cli.Shortf("a leak is new (--fail-on-new): %s", function)
		case x.Fate == growth.FateUnknown && x.After.Verdict == leak.Leak:
			return cli.Shortf("a leak may be new (--fail-on-new): %s", function)
		}
	}
	return nil
}

// writeUpdate writes which leaks an update has mended, which are still there, and which are new.
func (s *session) writeUpdate(w io.Writer, c *growth.Comparisons) {
	switch {
	case c == nil:
		return
	case c.Before == 0 || c.After == 0:
		fmt.Fprintf(w, "leaks cannot be compared: a boot of each log needs three dumps or more\n\n")
		return
	case len(c.List) == 0:
		fmt.Fprintf(w, "no leak in either log: none above %s after the update\n\n", leaktext.BytesPer(c.Per, c.Span, c.Bound))
		return
	}
	words := map[growth.Fate]string{growth.FateNew: "new leak", growth.FateStill: "still there", growth.FateMended: "mended",
		growth.FateGone: "gone, or under another name", growth.FateUnknown: "cannot tell"}
	rate := func(j *leak.Judgement) string {
		switch {
		case j.Verdict == leak.None:
			return "none above " + leaktext.BytesPer(c.Per, c.Span, j.Bound)
		case math.IsInf(j.High, 0):
			return "cannot tell"
		}
		return leaktext.Rate(c.Per, c.Span, j.Rate, j.Low, j.High)
	}
	var frames stackLimit
	for i := range c.List {
		x := &c.List[i]
		fmt.Fprintf(w, "%s\n  before: %s\n  after:  %s\n", words[x.Fate], rate(&x.Before), rate(&x.After))
		if x.Why != "" {
			for _, line := range cli.Wrap(x.Why, 76) {
				fmt.Fprintf(w, "  %s\n", line)
			}
		}
		s.stack(w, frames.stack(x.Row))
		fmt.Fprintln(w)
	}
	s.noteCut(&frames)
}

// ends keeps n of the changes: the largest gains and losses.
func ends(list []change, n int) []change {
	if n == 0 || len(list) <= n {
		return list
	}
	losses := n / 4
	return slices.Concat(list[:n-losses], list[len(list)-losses:])
}

// check returns an error if the total grows by more than the threshold. If it does not, check
// returns the error otherwise.
func (l threshold) check(p *profile.Profile, otherwise error) error {
	first, last := p.Total(0), p.Total(len(p.Dumps())-1)
	if d := subtract(last.Bytes, first.Bytes); l.given && d.over(l.bytes) {
		return cli.Shortf("grew by %s bytes, more than %s (--fail-on-growth)", cli.Number(d.magnitude), cli.Number(l.bytes))
	}
	return otherwise
}
