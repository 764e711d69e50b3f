package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/profile"
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
func signed(d profile.Delta) string {
	switch {
	case d.Magnitude == 0:
		return "0"
	case d.Negative:
		return "-" + cli.Number(d.Magnitude)
	}
	return "+" + cli.Number(d.Magnitude)
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
	fail := ""
	c := &cobra.Command{
		Use: "diff [flags] A B | LOG", Short: "what changed between two dumps",
		Long: `diff compares the last dump of log A with the last of log B. For one LOG, it
compares the first and the last dump, or those of --dump A..B. Call paths that
grew come first, those that shrank last.`,
		Example: "btheap diff -e app.elf before.log after.log\nbtheap diff --dump 2..5 -e app.elf device.log",
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) > 2 {
				return cli.BadArgsf("%d files, expected two, or one with several dumps", len(files))
			}
			limit, err := parseThreshold(fail)
			if err != nil {
				return err
			}
			return s.run(c, files, func(w io.Writer) error { return s.writeDiff(w, limit) })
		},
	}
	cli.ExitCodes(c, `0 reported, 1 a log is damaged, or the heap grows more than --fail-on-growth
allows, 2 usage, unreadable input, no record, or it is not clear where dumps
begin (give --split), 3 the output cannot be written.`)
	f := c.Flags()
	f.VarP(&s.rows, "rows", "n", "list `N` call paths, 0 for all")
	f.StringVar(&fail, "fail-on-growth", "", "exit with 1 if the total grew by more than `SIZE`")
	s.addAll(c, "Diff", compareFrames, jsonOutput)
	return c
}

// writeDiff writes the changes between two dumps.
func (s *session) writeDiff(w io.Writer, limit threshold) error {
	pair, err := s.pair()
	if err != nil {
		return err
	}
	p, err := s.profile(pair...)
	if err != nil {
		return err
	}
	s.outcome = limit.check(p, s.outcome)
	changes := p.Diff(s.w)
	shown := ends(changes, int(s.rows))
	left := len(changes) - len(shown)
	if s.json {
		return s.diffJSON(w, p, shown, left)
	}
	before, after := p.Total(0), p.Total(1)
	fmt.Fprintf(w, "%s\n%s → %s bytes (%s), %s → %s allocations (%s)\n", joined(pair),
		cli.Number(before.Bytes), cli.Number(after.Bytes), signed(profile.Sub(after.Bytes, before.Bytes)),
		cli.Number(before.Count), cli.Number(after.Count), signed(profile.Sub(after.Count, before.Count)))
	var frames profile.StackLimit
	for _, c := range shown {
		word := ""
		switch {
		case c.New():
			word = ", new"
		case c.Gone():
			word = ", gone"
		}
		fmt.Fprintf(w, "\n%s bytes, %s allocations: %s → %s bytes%s\n", signed(c.Delta(profile.Bytes)), signed(c.Delta(profile.Count)),
			cli.Number(c.Before.Bytes), cli.Number(c.After.Bytes), word)
		s.stack(w, frames.Stack(c.Row))
	}
	s.noteCut(&frames)
	writeMore(w, "\n", left, "more call path")
	return nil
}

// ends keeps n of the changes: the largest gains and losses.
func ends(list []profile.Change, n int) []profile.Change {
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
	if d := profile.Sub(last.Bytes, first.Bytes); l.given && d.Over(l.bytes) {
		return cli.Shortf("grew by %s bytes, more than %s (--fail-on-growth)", cli.Number(d.Magnitude), cli.Number(l.bytes))
	}
	return otherwise
}
