package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func rolloutCommand() *cobra.Command {
	q := &question{}
	c := answer(q, &cobra.Command{Use: "rollout [flags] BEFORE AFTER", Short: "whether an update may go on: what leaks in the new build alone",
		Long: `rollout compares the leaks of two builds while devices are updated: which are
new, which are mended, on how many devices. "mended" is a leak of the old build
that no path of the new one resembles. It says stop, go, or unknown.`,
		Example: "btfleet rollout 1.4.2 1.4.3\nbtfleet rollout --fail-on new-leak 1.4.2 1.4.3", Args: cobra.ExactArgs(2)}, 10,
		func(ctx context.Context, args []string) (*query.Rollout, error) {
			if q.fail != "" && q.fail != "new-leak" {
				return nil, cli.Usagef("--fail-on %s: expected new-leak", q.fail)
			}
			builds, err := q.find(ctx, args...)
			if err != nil {
				return nil, err
			}
			r, err := q.db.Rollout(ctx, builds[0], builds[1], q.scope)
			if err == nil && q.fail != "" && r.Answer != "go" {
				q.falls = cli.Shortf("--fail-on new-leak: %s", map[string]string{"stop": "the new build has " + cli.Count(int64(len(r.New)), "leak") + " that the old one has not",
					"unknown": "no device with the new build could be examined"}[r.Answer])
			}
			return r, err
		}, q.writeRollout)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&q.fail, "fail-on", "", "exit with 1 on `new-leak`, or if no device could be examined")
	cli.AddFlags(c, "Query", f)
	return c
}

func (q *question) writeRollout(w io.Writer, r *query.Rollout) error {
	fmt.Fprintf(w, "%s: build %s on %s of %s (%s), %s examined\n", r.Answer, page.Short(r.BuildAfter), cli.Number(r.Devices), cli.Count(r.Of, "device"),
		page.Percent(r.Share), cli.Number(r.Examined))
	for _, s := range r.Stages {
		until := "now"
		if s.Until != nil {
			until = page.Date(*s.Until)
		}
		fmt.Fprintf(w, "%3d %%  %-7s  reached %s; until %s: %s of %s examined, %d new, %d mended\n", s.Percent, s.Answer, page.Date(s.Reached), until,
			cli.Number(s.Examined), cli.Count(s.Devices, "device"), len(s.New), len(s.Mended))
	}
	for _, group := range []struct {
		word string
		list []query.Leak
	}{{"new", r.New}, {"mended", r.Mended}, {"in both", r.Both}} {
		for _, l := range cut(q, group.list) {
			rate := "unknown rate"
			if l.Rate != nil {
				rate = page.Rate(*l.Rate)
			}
			fmt.Fprintf(w, "%-7s  %-8s  %s on %s of %s  %s\n", group.word, l.Word(), rate, cli.Number(l.Grew), cli.Count(l.Examined, "device"), page.Site(l.Stack))
		}
	}
	return nil
}
