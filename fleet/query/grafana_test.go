package query

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// dashboard returns the queries of the panels of fleet/docs/fleet-grafana.json, by title.
func dashboard(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/fleet-grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ RawSql string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			list[p.Title] = strings.ReplaceAll(q.RawSql, "$__timeFilter(received)", "received > '2020-01-01 00:00:00'")
		}
	}
	if len(list) < 5 {
		t.Fatalf("%d panels", len(list))
	}
	return list
}

// The query of each panel of the Grafana dashboard returns rows, in DuckDB and in ClickHouse.
func TestDashboard(t *testing.T) {
	f := simulate.Default()
	f.Devices, f.Paths = 100, 20
	d := simulated(t, &f)
	for title, q := range dashboard(t) {
		q = strings.ReplaceAll(q, "quantile(0.05)(heap_free)", "quantile_cont(heap_free, 0.05)")
		res, err := d.Query(t.Context(), q, Scope{}, 1000)
		if err != nil || len(res.Rows) == 0 {
			t.Errorf("%s: %v %v", title, res, err)
		}
	}
}

func TestDashboardClickHouse(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "node")
	if exec.Command("node", "-e", "require('chdb')").Run() != nil {
		t.Skip("chdb of npm is not installed, or not in NODE_PATH")
	}
	f := simulate.Default()
	f.Devices, f.Paths = 100, 20
	d := simulated(t, &f)
	// The views of the files that fleet/docs/fleet-grafana.json expects.
	statements := []string{"set use_hive_partitioning = 0", "create database if not exists fleet", "use fleet"}
	for _, table := range []string{"dumps", "facts"} {
		statements = append(statements, "create view "+table+" as select * from file("+quote(filepath.Join(d.dir, table, "*", "*", "*.parquet"))+", Parquet)")
	}
	for title, q := range dashboard(t) {
		begin := time.Now()
		if rows := clickhouse(t, append(statements, q)); len(rows) == 0 {
			t.Errorf("%s: no row", title)
		}
		t.Log(title, time.Since(begin))
	}
}
