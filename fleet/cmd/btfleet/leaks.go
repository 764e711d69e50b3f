package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func leaksCommand() *cobra.Command {
	q := &question{}
	c := answer(q, &cobra.Command{Use: "leaks --build BUILD [flags]", Short: "what leaks in a build, how fast, and on how many devices",
		Long: `leaks ranks the call paths of a build by the evidence that they leak, over all
devices, and calls them leak, probably, grows or slowing (docs/fleet-leaks.md).
A leak that is too slow to be seen on one device is seen on many.`,
		Example: "btfleet leaks --build 1.4.2\nbtfleet leaks --build 5ca1ab1e --since 14d --fail-over 64/h", Args: cobra.NoArgs}, 10,
		func(ctx context.Context, _ []string) (*query.Leaks, error) {
			l, err := q.db.Leaks(ctx, q.scope)
			if err != nil || q.fail == "" {
				return l, err
			}
			if l.Moving || l.Examined == 0 {
				q.falls = cli.Shortf("--fail-over %s: nothing was examined", q.fail)
			}
			for _, r := range l.Rows {
				if r.Verdict.Sure() && r.Rate == nil {
					q.falls = cli.Shortf("--fail-over %s: the rate of a leak is not known", q.fail)
					break
				}
				if r.Verdict.Sure() && *r.Rate > float64(q.limit) {
					q.falls = cli.Shortf("a path grows by %s bytes per hour, more than --fail-over %s", page.Bytes(*r.Rate), q.fail)
					break
				}
			}
			return l, nil
		}, q.writeLeaks)
	q.addBuild(c, true, "")
	return q.addFailOver(c, "exit with 1 if a leak, or a probable one, grows by more than `RATE` on the devices that leak: 64/h, 1K/h", parseRate)
}

// parseRate parses a number of bytes per hour, such as 1K/h.
func parseRate(s string) (uint64, error) {
	n, ok := strings.CutSuffix(s, "/h")
	size, err := cli.ParseSize(n)
	if !ok || err != nil {
		return 0, errors.New("expected bytes per hour, such as 64/h or 1K/h")
	}
	return size, nil
}

// listedGrows is the number of paths with the word grows that are listed.
const listedGrows = 3

func (q *question) writeLeaks(w io.Writer, l *query.Leaks) error {
	count := map[query.Verdict]int64{}
	for _, r := range l.Rows {
		count[r.Verdict]++
	}
	found := "no leak found"
	switch {
	case count[query.Leaking] > 0 && count[query.Probably] > 0:
		found = fmt.Sprintf("%s, %d probable", cli.Count(count[query.Leaking], "leak"), count[query.Probably])
	case count[query.Leaking] > 0:
		found = cli.Count(count[query.Leaking], "leak")
	case count[query.Probably] > 0:
		found = cli.Count(count[query.Probably], "probable leak")
	}
	grows := 0
	listed := slices.DeleteFunc(slices.Clone(cut(q, l.Rows)), func(r query.Leak) bool {
		if r.Verdict == query.Grows {
			grows++
		}
		return r.Verdict == query.Grows && grows > listedGrows && q.rows > 0
	})
	return texts.ExecuteTemplate(w, "leaks.txt", struct {
		*query.Leaks
		Found      string
		Unexamined int64
		Listed     []query.Leak
		Folded     int
	}{l, found, l.Devices - l.Examined, listed, len(cut(q, l.Rows)) - len(listed)})
}

func diffCommand() *cobra.Command {
	q := &question{}
	c := answer(q, &cobra.Command{Use: "diff [flags] BEFORE AFTER", Short: "what changed from one build to another, per device",
		Long: `diff compares what the devices of two builds hold at the same uptime, by call
path, in bytes per device. The column devices has the numbers of those that hold
the path. A difference that may be random is not a change (docs/fleet-leaks.md).`,
		Example: "btfleet diff 1.4.1 1.4.2\nbtfleet diff --fail-over 1K 5ca1ab1e 0ddba115", Args: cobra.ExactArgs(2)}, 10,
		func(ctx context.Context, args []string) (*query.Diff, error) {
			builds, err := q.find(ctx, args...)
			if err != nil {
				return nil, err
			}
			d, err := q.db.Diff(ctx, builds[0], builds[1], q.scope)
			switch {
			case err != nil:
			case !d.Comparable:
				q.falls = cli.Shortf("the builds cannot be compared: call paths with more than half of the bytes occur in one of them only; add the ELF files of both (btfleet symbols add)")
			case q.fail != "" && d.Growth() > float64(q.limit):
				q.falls = cli.Shortf("paths grew by %s bytes per device, more than --fail-over %s", page.Bytes(d.Growth()), q.fail)
			}
			return d, err
		}, q.writeDiff)
	return q.addFailOver(c, "exit with 1 if the paths that changed grew by more than `SIZE` per device, such as 1K", cli.ParseSize)
}

func (q *question) writeDiff(w io.Writer, d *query.Diff) error {
	changed, possibly := 0, 0
	var rows [][]string
	for _, r := range d.Rows {
		switch r.Evidence {
		case query.NoEvidence:
			continue
		case query.Possibly:
			possibly++
		default:
			changed++
		}
		rows = append(rows, []string{r.Evidence, r.Kind, page.Signed(r.Delta()), page.Bytes(r.Before), page.Bytes(r.After),
			fmt.Sprintf("%s to %s", cli.Number(r.Had), cli.Number(r.Have)), page.Site(r.Stack)})
	}
	var table strings.Builder
	if len(rows) > 0 {
		if err := writeTable(&table, cli.Width(w), []string{"evidence", "change", ">growth", ">before", ">after", ">devices", "call site"}, cut(q, rows)); err != nil {
			return err
		}
	}
	return texts.ExecuteTemplate(w, "diff.txt", struct {
		*query.Diff
		Table             string
		Changed, Possibly int
	}{d, table.String(), changed, possibly})
}
