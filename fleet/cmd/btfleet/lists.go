package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/duckdb/duckdb-go/v2"
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

func devicesCommand() *cobra.Command {
	q := &question{}
	c := answer(q, &cobra.Command{Use: "devices [flags]", Short: "the devices, those with the least free memory first",
		Example: "btfleet devices --build 1.4.2 -n 20", Args: cobra.NoArgs}, 20,
		func(ctx context.Context, _ []string) ([]query.Device, error) {
			return q.db.Devices(ctx, q.scope, q.rows)
		},
		func(w io.Writer, list []query.Device) error {
			q.empty(len(list))
			var rows [][]string
			for _, d := range list {
				rows = append(rows, []string{cli.Printable(d.Device), firmware(d.Firmware, d.Build), cli.Number(d.Boots), cli.Number(d.Dumps), page.Bytes(d.Bytes), page.Bytes(d.HeapFree), page.Date(d.Last)})
			}
			return write(w, []string{"device", "firmware", ">boots", ">dumps", ">bytes", ">free", "last dump (UTC)"}, rows)
		})
	return q.addBuild(c, false, "only devices that ran a build: ")
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

func deviceCommand() *cobra.Command {
	q := &question{}
	return answer(q, &cobra.Command{Use: "device [flags] DEVICE", Short: "the dumps of a device, and what grew",
		Example: "btfleet device sensor-7 --since 7d", Args: cobra.ExactArgs(1)}, 10,
		func(ctx context.Context, args []string) (*query.Timeline, error) {
			return q.db.Timeline(ctx, args[0], q.scope)
		},
		func(w io.Writer, l *query.Timeline) error {
			var rows [][]string
			for _, d := range l.Dumps {
				lost := page.Percent(d.Lost)
				if !d.Complete && d.Lost == 0 {
					lost = "some"
				}
				rows = append(rows, []string{page.Date(d.Received), firmware(d.Firmware, d.Build), page.Hours(float64(d.Uptime) / 3600e6), page.Bytes(d.Bytes), cli.Number(d.Blocks), page.Bytes(d.HeapFree), lost, cli.Printable(d.Why)})
			}
			if err := write(w, []string{"received (UTC)", "firmware", ">uptime", ">bytes", ">blocks", ">free", ">lost", "why"}, rows); err != nil {
				return err
			}
			fmt.Fprintf(w, "\nFrom the first whole dump of its last build to the last:\n")
			rows = nil
			for _, p := range cut(q, l.Paths) {
				rows = append(rows, []string{page.Signed(p.After - p.Before), page.Bytes(p.Before), page.Bytes(p.After), page.Site(p.Stack)})
			}
			return write(w, []string{">bytes", ">before", ">after", "call site"}, rows)
		})
}

func queryCommand() *cobra.Command {
	q := &question{}
	return answer(q, &cobra.Command{Use: "query [flags] SQL", Short: "the answer to a question in SQL",
		Long: `query runs one SELECT in the SQL of DuckDB, with --clickhouse in that of
ClickHouse. It cannot change anything. The tables, in which -1 is "not known":

  dumps   a row for each dump: build, fw, device, boot, dump, time, uptime_us,
          received, bytes, count (blocks), complete, lost (fraction), why,
          heap_size, heap_free, heap_largest, heap_minimum, heaps (JSON), labels
          (map), upload
  facts   what a call path holds in a dump: build, device, path, boot, dump,
          time, count, bytes, complete, lost
  paths   the addresses of a call path: build, path, addresses
  frames  the functions at an address: build, address, index, function, file,
          line, missing`,
		Example: `btfleet query 'select fw, max(bytes) from dumps group by fw'`, Args: cobra.ExactArgs(1)}, 1000,
		func(ctx context.Context, args []string) (*query.Result, error) {
			limit := q.rows
			if limit == 0 {
				limit = 1 << 31
			}
			r, err := q.db.Query(ctx, args[0], q.scope, limit)
			var sql *duckdb.Error
			if errors.As(err, new(*net.OpError)) || errors.As(err, &sql) && sql.Type == duckdb.ErrorTypeIO {
				return nil, err // not of the SQL
			} else if err != nil {
				return nil, cli.Usagef("%s", oneLine(err))
			}
			return r, nil
		},
		func(w io.Writer, r *query.Result) error {
			t := &cli.Table{Right: make([]bool, len(r.Columns))}
			for _, name := range r.Columns {
				t.Head = append(t.Head, cli.Printable(name))
			}
			for _, row := range r.Rows {
				cells := make([]string, len(row))
				for i, v := range row {
					switch v := v.(type) {
					case nil:
						cells[i] = "-"
					case time.Time:
						cells[i] = v.UTC().Format(time.DateTime)
					case int64, int32, uint64, float64:
						t.Right[i] = true
						cells[i] = fmt.Sprint(v)
					default:
						cells[i] = cli.Printable(fmt.Sprint(v))
					}
				}
				t.Rows = append(t.Rows, cells)
			}
			if err := t.Write(w); err != nil {
				return err
			}
			if r.More {
				fmt.Fprintf(q.notes, "btfleet: more rows: -n 0 lists all\n")
			}
			return nil
		})
}
