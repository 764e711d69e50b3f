package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func htmlCommand() *cobra.Command {
	q := &question{}
	output := ""
	c := &cobra.Command{Use: "html [flags] BUILD [BUILD]", Short: "the flame graph of a build, or of two, as a page",
		Long: `html writes the page of btheap html: what the devices of a build hold, as means
per device. With two builds, the page shows either of them, or the difference.`,
		Example: "btfleet html -o heap.html 1.4.2\nbtfleet html -o diff.html 1.4.1 1.4.2", Args: cobra.RangeArgs(1, 2)}
	answer(q, c, -1, func(ctx context.Context, args []string) ([]string, error) { return q.find(ctx, args...) },
		func(w io.Writer, builds []string) error {
			return cli.WriteOutput(output, nil, w, func(w io.Writer) error {
				return page.Write(c.Context(), q.db, w, q.scope, "", builds...)
			})
		})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&output, "output", "o", "heap.html", "write to `FILE`; '-' is standard output")
	cli.AddFlags(c, "Output", f)
	return c
}
