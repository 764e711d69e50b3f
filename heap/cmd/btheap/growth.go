package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// threshold is the value of --fail-on-growth.
type threshold struct {
	bytes   uint64
	perDump bool
	given   bool
}

// parseThreshold reads SIZE or SIZE/dump.
func parseThreshold(s string, perDump bool) (threshold, error) {
	if s == "" {
		return threshold{}, nil
	}
	number, unit, slash := strings.Cut(s, "/")
	n, err := cli.ParseSize(number)
	if err != nil || slash && (unit != "dump" || !perDump) {
		want := "SIZE, such as 64K"
		if perDump {
			want = "SIZE or SIZE/dump, such as 64K"
		}
		return threshold{}, cli.BadArgsf("--fail-on-growth %q, expected %s", s, want)
	}
	return threshold{n, slash, true}, nil
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
func stack(w io.Writer, sites []profile.Site) {
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
			limit, err := parseThreshold(fail, false)
			if err != nil {
				return err
			}
			return s.run(c, files, func(w io.Writer) error { return s.writeDiff(w, limit) })
		},
	}
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
		stack(w, c.Stack())
	}
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

func growthCommand() *cobra.Command {
	s := &session{rows: 10, view: profile.View{By: profile.ByFunction}}
	fail, every := "", false
	c := &cobra.Command{
		Use: "growth [flags] [FILE...]", Short: "what grows from dump to dump",
		Long: `growth lists the call paths that grow over all dumps of the logs: first those
that grew in every dump, the steepest first. The slope is that of a straight
line fitted by least squares. Dumps without an end (~h#end), or with fewer
records than they announce, are left out. If a log has several boots, growth
uses the last boot with two or more complete dumps, unless --dump is given.`,
		Example: "btheap growth -e app.elf device.log\nbtheap growth --fail-on-growth 1024/dump -e app.elf monday.log tuesday.log",
		RunE: func(c *cobra.Command, files []string) error {
			limit, err := parseThreshold(fail, true)
			if err != nil {
				return err
			}
			return s.run(c, files, func(w io.Writer) error { return s.writeGrowth(w, limit, every) })
		},
	}
	f := c.Flags()
	f.VarP(&s.rows, "rows", "n", "list `N` call paths, 0 for all")
	f.BoolVar(&every, "every", false, "list only those that grew in every dump")
	f.StringVar(&fail, "fail-on-growth", "", "exit with 1 if the total grew by more than `SIZE` from the first dump to the last; with SIZE/dump, if its slope is more than SIZE per dump")
	s.addAll(c, "Growth", compareFrames, jsonOutput)
	return c
}

// writeGrowth writes the call paths that grow over the complete dumps, with every only those
// that grew in every dump.
func (s *session) writeGrowth(w io.Writer, limit threshold, every bool) error {
	if err := s.read(allDumps); err != nil {
		return err
	}
	all := s.lastBoot()
	list, err := s.complete(all)
	if err != nil {
		return err
	}
	p, err := s.profile(list...)
	if err != nil {
		return err
	}
	s.outcome = limit.check(p, s.outcome)
	trend := p.Growth(s.w)
	grown := trend.Rows
	if n := slices.IndexFunc(grown, func(g profile.Growth) bool { return !g.Every }); every && n >= 0 { // those come first
		grown = grown[:n]
	}
	shown, left := first(grown, s.rows)
	if s.json {
		return s.growthJSON(w, p, trend.Total, shown, left)
	}
	fmt.Fprintf(w, "%s: %s\n\ntotal ", cli.Count(len(list), "dump"), joined(list))
	var totals []profile.Value
	for i := range list {
		totals = append(totals, p.Total(i))
	}
	s.growthLines(w, all, trend.Total.Slope, totals, "")
	for _, g := range shown {
		word := ""
		if g.Every {
			word = ", in every dump"
		}
		fmt.Fprintln(w)
		s.growthLines(w, all, g.Slope, g.Points(), word)
		stack(w, g.Stack())
	}
	if len(grown) == 0 {
		fmt.Fprintln(w, "\nno call path grows")
	}
	writeMore(w, "\n", left, "more call path")
	return nil
}

// growthLines writes a growth in two lines. The points are those of the complete dumps.
func (s *session) growthLines(w io.Writer, all []*profile.Dump, rise float64, points []profile.Value, word string) {
	unit := "bytes"
	if s.w == profile.Count {
		unit = "allocations"
	}
	first, last := points[0], points[len(points)-1]
	bars := make([]profile.Value, len(all))
	for i, d := range all {
		if d.Complete() {
			bars[i], points = points[0], points[1:]
		}
	}
	complete := func(i int) bool { return all[i].Complete() }
	fmt.Fprintf(w, "%s %s per dump%s  %s\n", leaktext.Signed(rise), unit, word, sparkline(bars, complete, s.w, 24))
	fmt.Fprintf(w, "  %s → %s bytes, %s → %s allocations\n", cli.Number(first.Bytes), cli.Number(last.Bytes), cli.Number(first.Count), cli.Number(last.Count))
}

// check returns an error if the total grows by more than the threshold. If it does not, check
// returns the error otherwise.
func (l threshold) check(p *profile.Profile, otherwise error) error {
	switch {
	case !l.given:
	case l.perDump:
		if rise := p.Growth(profile.Bytes).Total.Slope; rise > float64(l.bytes) {
			return cli.Shortf("grows by %s bytes per dump, more than %s (--fail-on-growth)", leaktext.Signed(rise), cli.Number(l.bytes))
		}
	default:
		first, last := p.Total(0), p.Total(len(p.Dumps())-1)
		if d := profile.Sub(last.Bytes, first.Bytes); d.Over(l.bytes) {
			return cli.Shortf("grew by %s bytes, more than %s (--fail-on-growth)", cli.Number(d.Magnitude), cli.Number(l.bytes))
		}
	}
	return otherwise
}
