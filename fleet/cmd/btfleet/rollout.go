package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	addFlags(c, "Query", func(f *pflag.FlagSet) {
		f.StringVar(&q.fail, "fail-on", "", "exit with 1 on `new-leak`, or if no device could be examined")
	})
	return c
}

func (q *question) writeRollout(w io.Writer, r *query.Rollout) error {
	return texts.ExecuteTemplate(w, "rollout.txt", struct {
		*query.Rollout
		NewListed, MendedListed, BothListed []query.Leak
	}{r, cut(q, r.New), cut(q, r.Mended), cut(q, r.Both)})
}
