package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// rowsFlag is the flags of commands whose rows are in the Parquet files of a store, or in ClickHouse.
type rowsFlag struct {
	storeFlag
	clickhouse string // URL; "" for Parquet files
	threads    cli.Natural
	memory     cli.Size
}

func (f *rowsFlag) add(c *cobra.Command) {
	f.storeFlag.add(c)
	addFlags(c, "Store", func(flags *pflag.FlagSet) {
		flags.StringVar(&f.clickhouse, "clickhouse", "", "use the tables at `URL`, http://HOST:8123/DATABASE, not Parquet files (docs/store.md)")
		f.threads, f.memory = cli.Natural(query.DefaultEngine.Threads), cli.Size(query.DefaultEngine.Memory)
		flags.Var(&f.threads, "threads", "DuckDB uses up to `N` processors")
		flags.Var(&f.memory, "memory", "DuckDB uses up to `SIZE` of memory, and then temporary files")
		flags.Lookup("memory").DefValue = "1.5G"
	})
}

// tables returns the tables of ClickHouse, nil for Parquet files.
func (f *rowsFlag) tables() (*clickhouse.Store, error) {
	if f.clickhouse == "" {
		return nil, nil
	}
	s, err := clickhouse.Open(f.clickhouse)
	if err != nil {
		return nil, cli.Usagef("--clickhouse: %w", err)
	}
	return s, nil
}

// both returns the directory of the store, which is created, and the tables of ClickHouse, nil for Parquet files.
func (f *rowsFlag) both() (files *store.Store, tables *clickhouse.Store, err error) {
	if tables, err = f.tables(); err == nil {
		files, err = f.open(true)
	}
	return files, tables, err
}

// db opens the rows for questions.
func (f *rowsFlag) db(ctx context.Context) (*query.DB, error) {
	tables, err := f.tables()
	var files *store.Store
	if err == nil && tables == nil {
		files, err = f.open(false)
	}
	if err != nil {
		return nil, err
	}
	return f.openDB(ctx, files, tables)
}

// openDB opens the rows of a store, or those of tables that are not nil.
func (f *rowsFlag) openDB(ctx context.Context, s *store.Store, tables *clickhouse.Store) (*query.DB, error) {
	if tables != nil {
		return query.OpenClickHouse(tables), nil
	}
	if f.threads < 1 || f.memory < 64<<20 {
		return nil, cli.Usagef("--threads and --memory: expected at least 1, and 64M")
	}
	db, err := query.Engine{Threads: int(f.threads), Memory: int64(f.memory)}.Open(ctx, s)
	if err != nil {
		return nil, cli.Failedf("%w", err)
	}
	return db, nil
}

func clickhouseCommand() *cobra.Command {
	var days cli.Natural
	c := &cobra.Command{Use: "clickhouse schema [flags]", Short: "the tables for a large fleet, as SQL",
		Long: `clickhouse schema prints the statements that create the tables of a ClickHouse
server; they change nothing that exists. Other commands use them with
--clickhouse.`,
		Example: "btfleet clickhouse schema --keep-days 90 | clickhouse-client -d fleet", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "schema" {
				return cli.BadArgsf("expected schema")
			}
			_, err := fmt.Fprint(c.OutOrStdout(), strings.Join(append(clickhouse.Schema(int(days)), ""), ";\n"))
			return err
		}}
	addFlags(c, "Schema", func(f *pflag.FlagSet) { addDays(f, &days) })
	return c
}
