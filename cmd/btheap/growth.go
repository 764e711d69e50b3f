package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/leaktext"
	"github.com/lwsbt/lwsbt/profile"
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
		return threshold{}, fmt.Errorf("--fail-on-growth %q, expected %s", s, want)
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

// Flags of commands that compare dumps. --at selects a single dump, so they do not
// include it.
var compareFrames = append([]string{"by", "no-fold"}, append(frameFlags, "max-paths")...)

func diffCommand() *cobra.Command {
	s := &session{unit: profile.ByFunction}
	rows, fail := cli.Natural(20), ""
	var limit threshold
	c := s.command(&cobra.Command{
		Use: "diff [flags] A B | LOG", Short: "what changed between two dumps",
		Long: `diff compares the last dump of log A with the last of log B. For one LOG, it
compares the first and the last dump, or those of --dump A..B. Call paths that
grew come first, those that shrank last.`,
		Example: "btheap diff -e app.elf before.log after.log\nbtheap diff --dump 2..5 -e app.elf device.log",
	})
	s.args = func(args []string) (files []string, err error) {
		if len(args) > 2 {
			return nil, fmt.Errorf("%d files, expected two, or one with several dumps", len(args))
		}
		limit, err = parseThreshold(fail, false)
		return args, err
	}
	s.report = func(w io.Writer) error {
		pair, err := s.pair()
		if err != nil {
			return err
		}
		p, err := s.profile(pair)
		if err != nil {
			return err
		}
		s.outcome = limit.check(p, s.outcome)
		if s.json {
			return s.diffJSON(p, int(rows)).write(w)
		}
		s.writeDiff(w, p, int(rows))
		return nil
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.VarP(&rows, "rows", "n", "list `N` call paths, 0 for all")
	f.StringVar(&fail, "fail-on-growth", "", "exit with 1 if the total grew by more than `SIZE`")
	cli.AddFlags(c, "Diff", f)
	s.addAll(c, compareFrames, jsonOutput)
	return c
}

// writeDiff writes the changes between two dumps.
func (s *session) writeDiff(w io.Writer, p *profile.Profile, rows int) {
	before, after := p.Total(0), p.Total(1)
	total := profile.Sub(after.Bytes, before.Bytes)
	fmt.Fprintf(w, "%s\n%s → %s bytes (%s), %s → %s allocations (%s)\n", joined(p.Dumps()),
		cli.Number(before.Bytes), cli.Number(after.Bytes), signed(total),
		cli.Number(before.Count), cli.Number(after.Count), signed(profile.Sub(after.Count, before.Count)))
	changes := p.Diff(s.w)
	shown := ends(changes, rows)
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
	if more := len(changes) - len(shown); more > 0 {
		fmt.Fprintln(w)
		writeMore(w, more, "more call path")
	}
}

// ends keeps n of the changes: the largest gains and losses.
func ends(list []profile.Change, n int) []profile.Change {
	if n == 0 || len(list) <= n {
		return list
	}
	gains := min(n-n/4, len(list))
	return append(append([]profile.Change(nil), list[:gains]...), list[len(list)-(n-gains):]...)
}

func growthCommand() *cobra.Command {
	s := &session{unit: profile.ByFunction}
	rows, fail, every := cli.Natural(10), "", false
	var limit threshold
	c := s.command(&cobra.Command{
		Use: "growth [flags] [FILE...]", Short: "what grows from dump to dump",
		Long: `growth lists the call paths that grow over all dumps of the logs: first those
that grew in every dump, the steepest first. The slope is that of a straight
line fitted by least squares. Dumps without an end (~h#end), or with fewer
records than they announce, are left out. If a log has several boots, growth
uses the last boot with two or more complete dumps, unless --dump is given.`,
		Example: "btheap growth -e app.elf device.log\nbtheap growth --fail-on-growth 1024/dump -e app.elf monday.log tuesday.log",
	})
	s.args = func(args []string) (files []string, err error) {
		limit, err = parseThreshold(fail, true)
		return args, err
	}
	s.report = func(w io.Writer) error {
		all := s.lastBoot(s.dumps)
		list, err := s.complete(all)
		if err != nil {
			return err
		}
		p, err := s.profile(list)
		if err != nil {
			return err
		}
		s.outcome = limit.check(p, s.outcome)
		if s.json {
			return s.growthJSON(p, int(rows), every).write(w)
		}
		s.writeGrowth(w, p, all, int(rows), every)
		return nil
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.VarP(&rows, "rows", "n", "list `N` call paths, 0 for all")
	f.BoolVar(&every, "every", false, "list only those that grew in every dump")
	f.StringVar(&fail, "fail-on-growth", "", "exit with 1 if the total grew by more than `SIZE` from the first dump to the last; with SIZE/dump, if its slope is more than SIZE per dump")
	cli.AddFlags(c, "Growth", f)
	s.addAll(c, compareFrames, jsonOutput)
	return c
}

// writeGrowth writes the call paths that grow over the dumps of p, which are the
// complete ones of all.
func (s *session) writeGrowth(w io.Writer, p *profile.Profile, all []*profile.Dump, rows int, every bool) {
	trend := p.Growth(s.w)
	var totals []profile.Value
	for i := range p.Dumps() {
		totals = append(totals, p.Total(i))
	}
	fmt.Fprintf(w, "%s: %s\n", cli.Count(len(totals), "dump"), joined(p.Dumps()))
	fmt.Fprint(w, "\ntotal ")
	s.growthLines(w, all, trend.Total.Slope, totals, "")
	grown := trend.Rows
	if every { // those come first
		if n := slices.IndexFunc(grown, func(g profile.Growth) bool { return !g.Every }); n >= 0 {
			grown = grown[:n]
		}
	}
	shown := grown
	if rows > 0 {
		shown = grown[:min(rows, len(grown))]
	}
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
	if more := len(grown) - len(shown); more > 0 {
		fmt.Fprintln(w)
		writeMore(w, more, "more call path")
	}
}

// growthLines writes a growth in two lines. The numbers are those of complete dumps.
func (s *session) growthLines(w io.Writer, all []*profile.Dump, rise float64, points []profile.Value, word string) {
	unit := "bytes"
	if s.w == profile.Count {
		unit = "allocations"
	}
	first, last := points[0], points[len(points)-1]
	bars, n := make([]*profile.Value, len(all)), 0
	for i, d := range all {
		if d.Complete() {
			bars[i] = &points[n]
			n++
		}
	}
	fmt.Fprintf(w, "%s %s per dump%s  %s\n", leaktext.Signed(rise), unit, word, sparkline(bars, s.w, 24))
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
