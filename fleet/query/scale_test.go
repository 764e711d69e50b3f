//go:build unix

package query

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// TestScale measures both engines on fleets of two builds and 165 call paths, with a dump a day for seven days: processor seconds
// of a question, and in ClickHouse, of which system.events tells them, also the rows that it reads. SIZES has the numbers of devices, FLEETS a
// directory that keeps the fleets. The table is in FIGURES.md.
func TestScale(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("it takes minutes: LWSBT_FULL is not all")
	}
	var table strings.Builder
	table.WriteString("| devices | facts | engine | judge | leaks | top | diff | peak MB | rows read by leaks, top, diff |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, size := range strings.Split(cmp.Or(os.Getenv("SIZES"), "1000,10000,100000"), ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		f := defaultFleet()
		f.Devices, f.Builds, f.Paths, f.Leak.Build = n, 2, 165, 0
		dir := cmp.Or(os.Getenv("FLEETS"), t.TempDir()) + "/" + size
		s, err := store.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := s.Snapshot(t.Context(), ""); err != nil || len(list[store.Dumps]) == 0 {
			if _, _, err := f.Store(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		scale(t, &table, &f, open(t, s), nil)
		ch := tables(t)
		for _, name := range []string{store.Paths, store.Facts, store.Dumps} {
			number(t, ch, "insert into "+name+" select *, toDate(extract(_path, 'day=(.{10})')) from file('"+dir+"/"+name+"/*/*.parquet') settings use_hive_partitioning = 0")
		}
		scale(t, &table, &f, OpenClickHouse(ch), ch)
	}
	t.Log("\n" + table.String())
	figures.CheckWithin(t, "../FIGURES.md", "scale", table.String(), 2)
}

// number returns the number that ClickHouse answers.
func number(t *testing.T, ch *clickhouse.Store, q string) (n float64) {
	t.Helper()
	r, err := ch.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Next() {
		if err := r.Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// scale adds a line for an engine: DuckDB if ch is nil.
func scale(t *testing.T, table *strings.Builder, f *fleet, d *DB, ch *clickhouse.Store) {
	t.Helper()
	ctx, one := t.Context(), Scope{Builds: []string{f.BuildID(0)}}
	event := func(name string) float64 {
		if ch == nil {
			return 0
		}
		return number(t, ch, "select toFloat64(sum(value)) from system.events where event = '"+name+"'")
	}
	var cells, read []string
	for i, ask := range []func() error{
		func() error { return d.Judge(ctx, f.BuildID(0)) },
		func() error {
			l, err := d.Leaks(ctx, one)
			if err == nil && (l.Devices != int64(f.Devices/2) || len(l.Rows) == 0 || l.Rows[0].Path != f.PathID(0)) {
				err = fmt.Errorf("%d devices, %d rows: expected the planted leak first", l.Devices, len(l.Rows))
			}
			return err
		},
		func() error { _, err := d.Top(ctx, one, 20); return err },
		func() error { _, err := d.Diff(ctx, f.BuildID(0), f.BuildID(1), Scope{}); return err },
	} {
		here, there, rows := processor(), event("OSCPUVirtualTimeMicroseconds"), event("SelectedRows")
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		cell := fmt.Sprintf("%.2f", processor()-here)
		if ch != nil {
			cell += fmt.Sprintf(" + %.2f", (event("OSCPUVirtualTimeMicroseconds")-there)/1e6)
			if rows = event("SelectedRows") - rows; i > 0 {
				read = append(read, fmt.Sprintf("%.0f", rows))
			}
		}
		cells = append(cells, cell)
	}
	engine, facts, err := "DuckDB", int64(0), error(nil)
	if ch != nil {
		engine = "btfleet + ClickHouse"
	}
	n, err := asked(t, d, "select count(*) as n from facts")
	if err == nil {
		facts, _ = strconv.ParseInt(fmt.Sprint(n[0][0]), 10, 64)
	}
	fmt.Fprintf(table, "\n| %d | %d | %s | %s | %.0f | %s |", f.Devices, facts, engine, strings.Join(cells, " | "), peak(), strings.Join(read, ", "))
}
