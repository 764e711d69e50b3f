package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func buildsCommand() *cobra.Command {
	q := &question{}
	return answer(q, &cobra.Command{Use: "builds [flags]", Short: "the builds, with their devices and what they hold",
		Example: "btfleet builds --since 30d", Args: cobra.NoArgs}, 0,
		func(ctx context.Context, _ []string) ([]query.Build, error) { return q.db.Builds(ctx, q.scope) },
		func(w io.Writer, list []query.Build) error {
			q.empty(len(list))
			var rows [][]string
			for _, b := range list {
				rows = append(rows, []string{page.Short(b.Build), firmware(b.Firmware, ""), cli.Number(b.Devices), cli.Number(b.Dumps), page.Bytes(b.Bytes), page.Bytes(b.HeapFree), page.Date(b.Last)})
			}
			return write(w, []string{"build", "firmware", ">devices", ">dumps", ">median bytes", ">free", "last dump (UTC)"}, rows)
		})
}

// firmware returns the version of a build, or the beginning of its ID if the version is not known.
func firmware(version, build string) string {
	if version == "" {
		return page.Short(build)
	}
	return cli.Fit(cli.Printable(version), 24)
}

func topCommand() *cobra.Command {
	q := &question{}
	c := answer(q, &cobra.Command{Use: "top --build BUILD [flags]", Short: "which call paths of a build hold how much",
		Long: `top lists the call paths of a build by the mean of what its devices hold with
them, in their last dumps. Median and p95 are of the devices that hold it.`,
		Example: "btfleet top --build 1.4.2", Args: cobra.NoArgs}, 20,
		func(ctx context.Context, _ []string) ([]query.Holder, error) { return q.db.Top(ctx, q.scope, q.rows) },
		func(w io.Writer, list []query.Holder) error {
			var rows [][]string
			for _, r := range list {
				rows = append(rows, []string{page.Bytes(r.Mean), fmt.Sprintf("%.1f", r.Blocks), page.Bytes(r.Median), page.Bytes(r.P95), cli.Number(r.Devices), page.Site(r.Stack)})
			}
			return write(w, []string{">bytes/device", ">blocks", ">median", ">p95", ">devices", "call site"}, rows)
		})
	return q.addBuild(c, true, "")
}
