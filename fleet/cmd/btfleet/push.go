package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
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
	var from rowsFlag
	var to push.Target
	var build, token, service string
	c := &cobra.Command{Use: "push [flags] URL", Short: "send the heap of a build to Pyroscope or Parca",
		Long: `push sends what the devices of a build hold, as means per device, with the
labels service_name, build, fw and devices. Single devices are not sent.`,
		Example: "btfleet push --build 5ca1ab1e --to pyroscope http://127.0.0.1:4040", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if build == "" {
				return cli.BadArgsf("--build is needed (btfleet builds)")
			}
			db, err := from.db(c.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			if build, err = db.Find(c.Context(), build); errors.Is(err, query.ErrBuild) {
				return cli.Usagef("--build: %s", cli.Printable(err.Error()))
			} else if err != nil {
				return failure(err)
			}
			o := query.Scope{Builds: []string{build}}
			list, err := db.Builds(c.Context(), o)
			if err != nil {
				return cli.Failedf("%v", err)
			}
			holders, err := db.Top(c.Context(), o, 0)
			if errors.Is(err, query.ErrNoDump) || err == nil && len(list) == 0 {
				return cli.Usagef("--build %s: no dump of it", build)
			}
			if err != nil {
				return cli.Failedf("%v", err)
			}
			if u, err := url.Parse(args[0]); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return cli.Usagef("%s: expected a URL such as http://127.0.0.1:4040", cli.Printable(args[0]))
			}
			to.URL, to.Token = args[0], os.Getenv(token)
			labels := map[string]string{"service_name": service, "build": build, "fw": list[0].Firmware, "devices": strconv.FormatInt(list[0].Devices, 10)}
			if err := to.Send(c.Context(), push.Profile(holders, time.Now()), labels); err != nil {
				return cli.Failedf("%v", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s of %s sent\n", cli.Count(len(holders), "call path"), cli.Count(list[0].Devices, "device"))
			return nil
		}}
	from.add(c)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&build, "build", "", buildUsage)
	f.StringVar(&to.Kind, "to", "pyroscope", "`KIND` of server: "+strings.Join(push.Kinds(), ", "))
	f.StringVar(&service, "service", "firmware", "label service_name: `NAME`")
	f.StringVar(&token, "token-from", "BTFLEET_PUSH_TOKEN", "environment variable `NAME` with a bearer token")
	cli.AddFlags(c, "Push", f)
	return c
}
