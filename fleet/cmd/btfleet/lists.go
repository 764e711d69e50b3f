package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func buildsCommand() *cobra.Command {
	q := &question{}
	return q.command(&cobra.Command{Use: "builds [flags]", Short: "the builds, with their devices and what they hold",
		Example: "btfleet builds --since 30d", Args: cobra.NoArgs}, 0, func(c *cobra.Command, _ []string) error {
		list, err := q.db.Builds(c.Context(), q.scope)
		if err != nil {
			return err
		}
		if q.json {
			return writeJSON(c.OutOrStdout(), list)
		}
		q.empty(c, len(list))
		t := &cli.Table{Head: []string{"build", "firmware", "devices", "dumps", "median bytes", "free", "last dump (UTC)"},
			Right: []bool{false, false, true, true, true, true}}
		for _, b := range list {
			t.Rows = append(t.Rows, []string{page.Short(b.Build), cli.Printable(b.Firmware), cli.Number(b.Devices), cli.Number(b.Dumps), bytesOf(b.Bytes), bytesOf(b.HeapFree), when(b.Last)})
		}
		return write(c.OutOrStdout(), t)
	})
}

func devicesCommand() *cobra.Command {
	q := &question{}
	build := ""
	c := q.command(&cobra.Command{Use: "devices [flags]", Short: "the devices, those with the least free memory first",
		Example: "btfleet devices --build 1.4.2 -n 20", Args: cobra.NoArgs}, 20, func(c *cobra.Command, _ []string) error {
		if build != "" {
			if err := q.one(c, build); err != nil {
				return err
			}
		}
		list, err := q.db.Devices(c.Context(), q.scope, q.rows)
		if err != nil {
			return err
		}
		if q.json {
			return writeJSON(c.OutOrStdout(), list)
		}
		q.empty(c, len(list))
		t := &cli.Table{Head: []string{"device", "firmware", "boots", "dumps", "bytes", "free", "last dump (UTC)"},
			Right: []bool{false, false, true, true, true, true}}
		for _, d := range list {
			t.Rows = append(t.Rows, []string{cli.Printable(d.Device), firmware(d.Firmware, d.Build), cli.Number(d.Boots), cli.Number(d.Dumps),
				cli.Number(d.Bytes), bytesOf(float64(d.HeapFree)), when(d.Last)})
		}
		return write(c.OutOrStdout(), t)
	})
	addBuild(c, &build, "only devices that ran `BUILD`: an ID, its beginning, or a version")
	return c
}

// firmware returns the version of a build, or the beginning of its ID if the version is not known.
func firmware(version, build string) string {
	if version == "" {
		return page.Short(build)
	}
	return cli.Printable(version)
}

// addBuild adds the flag --build.
func addBuild(c *cobra.Command, build *string, usage string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(build, "build", "", usage)
	cli.AddFlags(c, "Question", f)
}

const buildUsage = "the `BUILD`: an ID, its beginning, or a version"

func topCommand() *cobra.Command {
	q := &question{}
	build := ""
	c := q.command(&cobra.Command{Use: "top --build BUILD [flags]", Short: "which call paths of a build hold how much",
		Long: `top lists the call paths of a build by the mean of what its devices hold with
them, in their last dumps. Median and p95 are of the devices that hold it.`,
		Example: "btfleet top --build 1.4.2", Args: cobra.NoArgs}, 20, func(c *cobra.Command, _ []string) error {
		if err := q.one(c, build); err != nil {
			return err
		}
		list, err := q.db.Top(c.Context(), q.scope, q.rows)
		if err != nil {
			return err
		}
		if q.json {
			return writeJSON(c.OutOrStdout(), list)
		}
		t := &cli.Table{Head: []string{"bytes/device", "blocks", "median", "p95", "devices", "call site"}, Right: []bool{true, true, true, true, true}}
		for _, r := range list {
			t.Rows = append(t.Rows, []string{bytesOf(r.Mean), fmt.Sprintf("%.1f", r.Blocks), bytesOf(r.Median), bytesOf(r.P95), cli.Number(r.Devices), page.Site(r.Stack)})
		}
		return write(c.OutOrStdout(), t)
	})
	addBuild(c, &build, buildUsage)
	return c
}

func deviceCommand() *cobra.Command {
	q := &question{}
	return q.command(&cobra.Command{Use: "device [flags] DEVICE", Short: "the dumps of a device, and what grew",
		Example: "btfleet device sensor-7 --since 7d", Args: cobra.ExactArgs(1)}, 10, func(c *cobra.Command, args []string) error {
		l, err := q.db.Timeline(c.Context(), args[0], q.scope)
		if err != nil {
			return err
		}
		w := c.OutOrStdout()
		if q.json {
			return writeJSON(w, l)
		}
		t := &cli.Table{Head: []string{"received (UTC)", "firmware", "uptime", "bytes", "blocks", "free", "lost", "why"},
			Right: []bool{false, false, true, true, true, true, true}}
		for _, d := range l.Dumps {
			up, lost := "-", fmt.Sprintf("%.1f %%", 100*d.Lost)
			if d.Uptime >= 0 {
				minutes := d.Uptime / 60e6
				up = fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
			}
			if !d.Complete && d.Lost == 0 {
				lost = "some"
			}
			t.Rows = append(t.Rows, []string{when(d.Received), firmware(d.Firmware, d.Build), up, cli.Number(d.Bytes), cli.Number(d.Blocks), bytesOf(float64(d.HeapFree)), lost, cli.Printable(d.Why)})
		}
		if err := write(w, t); err != nil {
			return err
		}
		fmt.Fprintf(w, "\nFrom the first whole dump of its last build to the last:\n")
		t = &cli.Table{Head: []string{"bytes", "before", "after", "call site"}, Right: []bool{true, true, true}}
		for _, p := range cut(q, l.Paths) {
			t.Rows = append(t.Rows, []string{signed(p.After - p.Before), bytesOf(p.Before), bytesOf(p.After), page.Site(p.Stack)})
		}
		return write(w, t)
	})
}

func queryCommand() *cobra.Command {
	q := &question{}
	return q.command(&cobra.Command{Use: "query [flags] SQL", Short: "the answer to a question in SQL",
		Long: `query runs one SELECT in the SQL of DuckDB, with --clickhouse in that of
ClickHouse. It cannot change anything. The tables, in which -1 is "not known":

  dumps   a row for each dump: build, fw, device, boot, dump, time, uptime_us,
          received, bytes, count (blocks), complete, lost (fraction), why,
          heap_size, heap_free, heap_largest, heap_minimum, upload
  facts   what a call path holds in a dump: build, device, path, boot, dump,
          time, count, bytes, complete, lost
  paths   the addresses of a call path: build, path, addresses
  frames  the functions at an address: build, address, index, function, file,
          line, missing`,
		Example: `btfleet query 'select fw, max(bytes) from dumps group by fw'`, Args: cobra.ExactArgs(1)}, 1000, func(c *cobra.Command, args []string) error {
		limit := q.rows
		if limit == 0 {
			limit = 1 << 31
		}
		r, err := q.db.Query(c.Context(), args[0], q.scope, limit)
		if err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n\nLINE") // of the query that contains it
			return cli.Usagef("%s", cli.Printable(reason))
		}
		if q.json {
			return writeJSON(c.OutOrStdout(), r)
		}
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
					cells[i] = v.UTC().Format("2006-01-02 15:04:05")
				case int64, int32, uint64, float64:
					t.Right[i] = true
					cells[i] = fmt.Sprint(v)
				default:
					cells[i] = cli.Printable(fmt.Sprint(v))
				}
			}
			t.Rows = append(t.Rows, cells)
		}
		if err := t.Write(c.OutOrStdout()); err != nil {
			return err
		}
		if r.More {
			fmt.Fprintf(c.ErrOrStderr(), "btfleet: more rows: -n 0 lists all\n")
		}
		return nil
	})
}
