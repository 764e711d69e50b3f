package query

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

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
	if len(list) < 4 {
		t.Fatalf("%d panels", len(list))
	}
	return list
}

// The query of each panel of the Grafana dashboard returns rows, in DuckDB and in ClickHouse.
func TestDashboard(t *testing.T) {
	f := defaultFleet()
	f.Devices, f.Paths = 100, 20
	d := simulated(t, &f)
	for title, q := range dashboard(t) {
		q = strings.NewReplacer("quantile(0.05)(heap_free)", "quantile_cont(heap_free, 0.05)", " final ", " ").Replace(q)
		res, err := asked(t, d, q)
		if err != nil || len(res) == 0 {
			t.Errorf("%s: %v %v", title, res, err)
		}
	}
}

func TestDashboardClickHouse(t *testing.T) {
	cmdtest.Long(t)
	f := defaultFleet()
	f.Devices, f.Paths = 100, 20
	ch := tables(t)
	for range 2 { // rows that are written again do not count twice
		if _, _, err := f.Store(t.Context(), ch); err != nil {
			t.Fatal(err)
		}
	}
	d := OpenClickHouse(ch)
	builds, err := d.Builds(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for title, q := range dashboard(t) {
		if r, err := ch.Query(t.Context(), q); err != nil { // as Grafana asks
			t.Errorf("%s: %v", title, err)
		} else {
			r.Close()
		}
		q = strings.ReplaceAll(q, " final ", " ") // the tables of a session are final
		res, err := asked(t, d, q)
		if err != nil || len(res) == 0 {
			t.Errorf("%s: %v %v", title, res, err)
		}
		if title != "Builds" || err != nil {
			continue
		}
		for i, b := range builds {
			if got, want := fmt.Sprint(res[i][0], " ", res[i][2], " ", res[i][3]), fmt.Sprint(b.Build, " ", b.Devices, " ", b.Dumps); got != want {
				t.Errorf("%s: %s, want %s as btfleet builds has", title, got, want)
			}
		}
	}
}
