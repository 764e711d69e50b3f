package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func simulateCommand() *cobra.Command {
	var to storeFlag
	d := simulate.Default()
	start := d.Start.Format(time.DateOnly)
	c := &cobra.Command{Use: "simulate [flags]", Short: "put a simulated fleet into a store",
		Long: `simulate makes the dumps of a fleet of devices, of which some leak, in an empty
store. The same flags make the same dumps.`,
		Example: "btfleet simulate --store sim --devices 10000\nbtfleet leaks --store sim --build 1.4.3", Args: cobra.NoArgs}
	to.add(c)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVar(&d.Devices, "devices", d.Devices, "`N` devices")
	f.IntVar(&d.Builds, "builds", d.Builds, "they run `N` builds, versions 1.4.0, 1.4.1, …")
	f.IntVar(&d.Days, "days", d.Days, "`N` days of dumps")
	f.IntVar(&d.PerDay, "per-day", d.PerDay, "`N` dumps per day")
	f.IntVar(&d.Paths, "paths", d.Paths, "`N` call paths")
	f.Uint64Var(&d.Seed, "seed", d.Seed, "seed `N` of the random numbers")
	f.Float64Var(&d.Loss, "loss", d.Loss, "`FRACTION` of the lines that is lost")
	f.Float64Var(&d.Reboots, "reboots", d.Reboots, "mean `N` of reboots per device and day")
	f.DurationVar(&d.Skew, "skew", d.Skew, "the clocks of devices are wrong by up to `TIME`")
	f.StringVar(&start, "start", start, "first `DAY`")
	cli.AddFlags(c, "Fleet", f)
	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVar(&d.Leak.Build, "leak-build", d.Leak.Build, "build `N` leaks, from 0; -1 for none")
	f.IntVar(&d.Leak.Path, "leak-path", d.Leak.Path, "`N` of the path that leaks")
	f.Float64Var(&d.Leak.Share, "leak-share", d.Leak.Share, "`FRACTION` of its devices that leak")
	f.Float64Var(&d.Leak.Rate, "leak-rate", d.Leak.Rate, "`N` bytes per hour")
	cli.AddFlags(c, "Leak", f)
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if d.Start, err = time.Parse(time.DateOnly, start); err != nil {
			return cli.Usagef("--start %q: expected a day such as 2026-06-01", start)
		}
		if err := d.Check(); err != nil {
			return cli.Usagef("%w", err)
		}
		s, err := to.open(c.Context(), true)
		if err != nil {
			return err
		}
		if list, err := s.Snapshot(c.Context(), ""); err != nil || len(list[store.Dumps]) > 0 {
			return cmp.Or(err, cli.Usagef("--store %s: it has dumps, expected an empty store", to.where))
		}
		dumps, facts, err := d.Store(c.Context(), s)
		if err != nil {
			return cli.Failedf("%w", err)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s of %s, %s\n", cli.Count(int64(dumps), "dump"), cli.Count(int64(d.Devices), "device"), cli.Count(int64(facts), "fact"))
		return nil
	}
	return c
}
