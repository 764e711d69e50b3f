package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/symbols"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func symbolsCommand() *cobra.Command {
	var in rowsFlag
	var id string
	c := &cobra.Command{Use: "symbols add FILE...", Short: "name the functions of builds",
		Long: `symbols add puts ELF files with debug information into the store, and names the
functions of the builds' call paths; btfleet serve names what arrives later. The
build is that of the linker's note (-Wl,--build-id), or that of --build.`,
		Example: "btfleet symbols add --store fleet fw-1.4.2.elf", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "add" || len(args) < 2 || id != "" && len(args) > 2 {
				return cli.BadArgsf("expected add FILE..., one with --build")
			}
			files, tables, err := in.both()
			if err != nil {
				return err
			}
			db, err := in.openDB(c.Context(), files, tables)
			if err != nil {
				return err
			}
			defer db.Close()
			out := c.OutOrStdout()
			for _, file := range args[1:] {
				build, n, err := symbols.Add(c.Context(), files, db, file, id)
				if err != nil {
					return cli.Usagef("%w", err)
				}
				fmt.Fprintf(out, "%s  %s  %s\n", build, cli.Printable(file), cli.Printable(n.String()))
			}
			return nil
		}}
	in.add(c)
	addFlags(c, "Symbols", func(f *pflag.FlagSet) {
		f.StringVar(&id, "build", "", "build `ID` of a file without one, as its logs have it")
	})
	return c
}
