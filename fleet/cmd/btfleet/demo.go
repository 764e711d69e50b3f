package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func demoCommand() *cobra.Command {
	to, fleet := storeFlag{}, simulate.Default()
	c := &cobra.Command{Use: "demo [flags]", Short: "write a simulated fleet into an empty store",
		Long: `demo writes five builds and seven days of June 2026, of which 1.4.3 leaks 200
bytes per hour on some devices. The same flags write the same dumps.`,
		Example: "btfleet demo --store sim\nbtfleet serve --store sim", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fleet.Check(); err != nil {
				return cli.Usagef("%w", err)
			}
			s, err := to.open(true)
			if err != nil {
				return err
			}
			if list, err := s.Snapshot(c.Context(), ""); err != nil || len(list[store.Dumps]) > 0 {
				return cmp.Or(err, cli.Usagef("--store %s: it has dumps, expected an empty store", to.where))
			}
			dumps, facts, err := fleet.Store(c.Context(), s)
			if err != nil {
				return cli.Failedf("%w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s of %s, %s\n", cli.Count(int64(dumps), "dump"), cli.Count(int64(fleet.Devices), "device"), cli.Count(int64(facts), "fact"))
			return nil
		}}
	to.add(c)
	addFlags(c, "Demo", func(f *pflag.FlagSet) {
		f.IntVar(&fleet.Devices, "devices", 2_000, "simulate `N` devices")
		f.IntVar(&fleet.Paths, "paths", 150, "`N` call paths")
		f.Float64Var(&fleet.Leak.Share, "leak-share", 0.05, "`FRACTION` of the devices of 1.4.3 that leak")
	})
	return c
}
