package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/symbols"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// symbolStore has the ELF files of a store, and the call paths of a database.
type symbolStore struct {
	elfFiles
	*query.DB
}

type elfFiles interface {
	PutELF(ctx context.Context, build string, data []byte) error
	ELF(ctx context.Context, build string) ([]byte, error)
}

func symbolsCommand() *cobra.Command {
	var in rowsFlag
	c := &cobra.Command{Use: "symbols {add FILE... | update}", Short: "name the functions of builds",
		Long: `symbols add puts ELF files with debug information into the store, by their build
IDs, and names the functions of the builds' call paths. symbols update names
what has arrived since; btfleet serve does so every minute. It asks the servers
of DEBUGINFOD_URLS for builds without a file.`,
		Example: "btfleet symbols add --store fleet fw-1.4.2.elf", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case args[0] == "add" && len(args) > 1, args[0] == "update" && len(args) == 1:
			default:
				return cli.BadArgsf("expected add FILE..., or update")
			}
			t, err := in.tables()
			if err != nil {
				return err
			}
			files, err := in.open(c.Context(), args[0] == "add")
			if err != nil {
				return err
			}
			db, err := in.openDB(c.Context(), files, t)
			if err != nil {
				return err
			}
			defer db.Close()
			s := symbolStore{files, db}
			out := c.OutOrStdout()
			for _, file := range args[1:] {
				build, n, err := symbols.Add(c.Context(), s, file)
				if err != nil {
					return cli.Usagef("%w", err)
				}
				fmt.Fprintf(out, "%s  %s  %s\n", build, cli.Printable(file), cli.Printable(n.String()))
			}
			if args[0] == "update" {
				n, err := symbols.Update(c.Context(), s, symbols.NewDebuginfod(os.Getenv("DEBUGINFOD_URLS")))
				if err != nil {
					return cli.Failedf("%w", err)
				}
				fmt.Fprintln(out, cli.Printable(n.String()))
			}
			return nil
		}}
	in.add(c)
	return c
}
