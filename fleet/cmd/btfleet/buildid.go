package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/fleet/symbols"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func buildIDCommand() *cobra.Command {
	return &cobra.Command{Use: "build-id FILE...", Short: "print the build IDs of firmware",
		Long: `build-id prints the build ID of ELF files: that of the linker (-Wl,--build-id),
or else the SHA-1 of the loaded segments (docs/fleet.md). lwsbt_head_device
writes the former into ~h#boot; give the latter by --build or ?build=.`,
		Example: "btfleet build-id fw.elf", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				id, err := symbols.BuildID(name)
				if err != nil {
					return cli.Usagef("%w", err)
				}
				if len(args) > 1 {
					fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", id, cli.Printable(name))
				} else {
					fmt.Fprintln(c.OutOrStdout(), id)
				}
			}
			return nil
		}}
}
