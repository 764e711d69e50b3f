package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/push"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func pushCommand() *cobra.Command {
	q := &question{}
	var to push.Target
	var token, service string
	c := &cobra.Command{Use: "push [flags] URL", Short: "send the heap of a build to Pyroscope or Parca",
		Long: `push sends what the devices of a build hold, as means per device, with the
labels service_name, build, fw and devices. Single devices are not sent.`,
		Example: "btfleet push --build 5ca1ab1e --to pyroscope http://127.0.0.1:4040", Args: cobra.ExactArgs(1)}
	answer(q, c, -1, func(ctx context.Context, args []string) ([]query.Holder, error) {
		if !isHTTP(args[0]) {
			return nil, cli.Usagef("%s: expected a URL such as http://127.0.0.1:4040", args[0])
		}
		if !slices.Contains(push.Kinds(), to.Kind) {
			return nil, cli.Usagef("--to %s: expected %s", to.Kind, strings.Join(push.Kinds(), " or "))
		}
		to.URL, to.Token = args[0], os.Getenv(token)
		return q.db.Top(ctx, q.scope, 0)
	}, func(w io.Writer, holders []query.Holder) error {
		list, err := q.db.Builds(c.Context(), q.scope)
		if err != nil || len(list) == 0 {
			return err
		}
		labels := map[string]string{"service_name": service, "build": list[0].Build, "fw": list[0].Firmware, "devices": strconv.FormatInt(list[0].Devices, 10)}
		if err := to.Send(c.Context(), push.Profile(holders, time.Now()), labels); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s of %s sent\n", cli.Count(len(holders), "call path"), cli.Count(list[0].Devices, "device"))
		return nil
	})
	q.addBuild(c, true, "")
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&to.Kind, "to", "pyroscope", "`KIND` of server: "+strings.Join(push.Kinds(), ", "))
	f.StringVar(&service, "service", "firmware", "label service_name: `NAME`")
	f.StringVar(&token, "token-from", "BTFLEET_PUSH_TOKEN", "environment variable `NAME` with a bearer token")
	cli.AddFlags(c, "Push", f)
	return c
}
