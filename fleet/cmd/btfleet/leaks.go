package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func leaksCommand() *cobra.Command {
	q := &question{}
	var build, fail string
	c := q.command(&cobra.Command{Use: "leaks --build BUILD [flags]", Short: "what leaks in a build, how fast, and on how many devices",
		Long: `leaks ranks the call paths of a build by the evidence that they leak, over all
devices, and calls them leak, probably, grows or slowing (docs/fleet-leaks.md).
A leak that is too slow to be seen on one device is seen on many.`,
		Example: "btfleet leaks --build 1.4.2\nbtfleet leaks --build 5ca1ab1e --since 14d --fail-over 64/h", Args: cobra.NoArgs}, 10,
		func(c *cobra.Command, _ []string) error {
			limit, err := parseRate(fail)
			if err != nil {
				return cli.Usagef("--fail-over %v", err)
			}
			if err := q.one(c, build); err != nil {
				return err
			}
			l, err := q.db.Leaks(c.Context(), q.scope)
			if err != nil {
				return err
			}
			if q.json {
				err = writeJSON(c.OutOrStdout(), l)
			} else {
				q.writeLeaks(c.OutOrStdout(), l)
			}
			if err != nil || fail == "" {
				return err
			}
			if l.Moving || l.Examined == 0 {
				return cli.Shortf("--fail-over %s: nothing was examined", fail)
			}
			for _, r := range l.Rows {
				if r.Verdict.Sure() && r.Rate != nil && *r.Rate > float64(limit) {
					return cli.Shortf("a path grows by %s bytes per hour, more than --fail-over %s", bytesOf(*r.Rate), fail)
				}
			}
			return nil
		})
	addBuild(c, &build, buildUsage)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&fail, "fail-over", "", "exit with 1 if a leak, or a probable one, grows by more than `RATE` on the devices that leak: 64/h, 1K/h")
	cli.AddFlags(c, "Question", f)
	return c
}

// parseRate parses a number of bytes per hour, such as 1K/h.
func parseRate(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	n, ok := strings.CutSuffix(s, "/h")
	size, err := cli.ParseSize(n)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q: expected bytes per hour, such as 64/h or 1K/h", s)
	}
	return size, nil
}

// listedGrows is the number of paths with the word grows that are listed.
const listedGrows = 3

func (q *question) writeLeaks(w io.Writer, l *query.Leaks) {
	count := map[profile.Verdict]int64{}
	for _, r := range l.Rows {
		count[r.Verdict]++
	}
	found := "no leak found"
	switch {
	case l.Moving:
		fmt.Fprintf(w, "build %s: the addresses change with each boot, so call paths of two boots do not compare\n", page.Short(l.Build))
		fmt.Fprintf(w, "send the memory map with each boot (~h#map), or offsets in the code (~p# lines)\n")
		return
	case l.Examined == 0:
		fmt.Fprintf(w, "build %s: nothing to examine: none of %s has a boot of three dumps\n", page.Short(l.Build), cli.Count(l.Devices, "device"))
		return
	case count[profile.Leaking] > 0 && count[profile.Probably] > 0:
		found = fmt.Sprintf("%s, %d probable", cli.Count(count[profile.Leaking], "leak"), count[profile.Probably])
	case count[profile.Leaking] > 0:
		found = cli.Count(count[profile.Leaking], "leak")
	case count[profile.Probably] > 0:
		found = cli.Count(count[profile.Probably], "probable leak")
	}
	fmt.Fprintf(w, "%s in build %s: %s, %s\n", found, page.Short(l.Build), cli.Count(l.Devices, "device"), cli.Count(l.Paths, "call path"))
	if n := l.Devices - l.Examined; n > 0 {
		fmt.Fprintf(w, "not examined: %s without a boot of three dumps\n", cli.Count(n, "device"))
	}
	if l.Load > 0 {
		fmt.Fprintf(w, "the load grew: the typical call path by %.0f %%; paths that grow up to three times as much are not called leaks\n", 100*l.Load)
	}
	if x := l.Exhaustion; x != nil && x.Hours != nil {
		fmt.Fprintf(w, "heaps exhausted in %s (median of %s), the first 5 %% in %s\n", hours(*x.Hours), cli.Count(x.Devices, "device"), hours(*x.Hours05))
	}
	grows := 0
	for _, r := range cut(q, l.Rows) {
		if r.Verdict == profile.Grows {
			if grows++; grows > listedGrows && q.rows > 0 {
				continue
			}
		}
		rate := "at an unknown rate: the devices report no uptime"
		if r.Rate != nil {
			rate = fmt.Sprintf("%s bytes per hour (95th percentile %s)", signed(*r.Rate), bytesOf(*r.Rate95))
		}
		if r.Since != nil {
			rate += ", since " + when(*r.Since)
		}
		fmt.Fprintf(w, "\n%s  %s\n", r.Word(), rate)
		fmt.Fprintf(w, "  grows on %s of %s (%.1f %%), shrinks on %s\n", cli.Number(r.Grew), cli.Count(r.Examined, "device"), 100*float64(r.Grew)/float64(r.Examined), cli.Number(r.Shrank))
		writeStack(w, r.Stack)
	}
	if n := int64(grows - listedGrows); n > 0 && q.rows > 0 {
		fmt.Fprintf(w, "\n%s more that grow, as caches do: -n 0 lists all\n", cli.Count(n, "call path"))
	}
}

func diffCommand() *cobra.Command {
	q := &question{}
	fail := ""
	c := q.command(&cobra.Command{Use: "diff [flags] BEFORE AFTER", Short: "what changed from one build to another, per device",
		Long: `diff compares what the devices of two builds hold at the same uptime, by call
path, in bytes per device. devices is how many hold the path in each build. A
difference that may be random is not a change (docs/fleet-leaks.md).`,
		Example: "btfleet diff 1.4.1 1.4.2\nbtfleet diff --fail-over 1K 5ca1ab1e 0ddba115", Args: cobra.ExactArgs(2)}, 10,
		func(c *cobra.Command, args []string) error {
			limit, err := cli.ParseSize(fail)
			if fail != "" && err != nil {
				return cli.Usagef("--fail-over %v", err)
			}
			var builds [2]string
			for i, name := range args {
				if builds[i], err = q.find(c, name); err != nil {
					return err
				}
			}
			if builds[0] == builds[1] {
				return cli.Usagef("%s and %s are one build", cli.Printable(args[0]), cli.Printable(args[1]))
			}
			d, err := q.db.Diff(c.Context(), builds[0], builds[1], q.scope)
			if err != nil {
				return err
			}
			if q.json {
				err = writeJSON(c.OutOrStdout(), d)
			} else {
				err = q.writeDiff(c.OutOrStdout(), d)
			}
			if err == nil && fail != "" && d.Growth() > float64(limit) {
				err = cli.Shortf("paths grew by %s bytes per device, more than --fail-over %s", bytesOf(d.Growth()), fail)
			}
			return err
		})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&fail, "fail-over", "", "exit with 1 if the paths that changed grew by more than `SIZE` per device, such as 1K")
	cli.AddFlags(c, "Question", f)
	return c
}

func (q *question) writeDiff(w io.Writer, d *query.Diff) error {
	at := "at any uptime"
	if d.Hours > 0 {
		at = fmt.Sprintf("at an uptime of %s to %s", hours(d.Hours/2), hours(d.Hours))
	}
	fmt.Fprintf(w, "%s (%s) to %s (%s)\n%s: %s bytes per device, was %s\n", page.Short(d.BuildBefore), cli.Count(d.DevicesBefore, "device"), page.Short(d.BuildAfter),
		cli.Count(d.DevicesAfter, "device"), at, bytesOf(d.After), bytesOf(d.Before))
	if !d.Comparable {
		return cli.Shortf("the builds cannot be compared: call paths with more than half of the bytes occur in one of them only; add the ELF files of both (btfleet symbols add)")
	}
	if !d.ByName {
		fmt.Fprintf(w, "a build has no function names: matched by address (btfleet symbols add)\n")
	}
	changed, possibly := 0, 0
	t := &cli.Table{Head: []string{"evidence", "change", "growth", "before", "after", "devices", "call site"}, Right: []bool{false, false, true, true, true, true}}
	for _, r := range d.Rows {
		switch r.Evidence {
		case query.NoEvidence:
			continue
		case query.Possibly:
			possibly++
		default:
			changed++
		}
		t.Rows = append(t.Rows, []string{r.Evidence, r.Kind, signed(r.Delta()), bytesOf(r.Before), bytesOf(r.After),
			fmt.Sprintf("%s to %s", cli.Number(r.Had), cli.Number(r.Have)), page.Site(r.Stack)})
	}
	if len(t.Rows) > 0 {
		fmt.Fprintln(w)
		t.Rows = cut(q, t.Rows)
		if err := write(w, t); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	paths := cli.Count(int64(d.Paths), "call path")
	if changed == 0 {
		fmt.Fprintf(w, "no change of %s that is not random\n", paths)
	} else {
		fmt.Fprintf(w, "%s of %s changed\n", cli.Number(int64(changed)), paths)
	}
	if possibly > 0 {
		fmt.Fprintf(w, "%s possibly: more or fewer devices hold them, which may be random among that many call paths\n", cli.Number(int64(possibly)))
	}
	return nil
}
