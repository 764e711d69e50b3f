package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// clickhouse runs statements in ClickHouse, and returns the rows of the last statement.
func clickhouse(t *testing.T, statements []string) [][]any {
	t.Helper()
	in, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("node", "testdata/clickhouse.js")
	c.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var results [][][]any
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v in %.500s", err, out)
	}
	return results[len(results)-1]
}

// ClickHouse gives the same answers from the same SQL and the same files of the store. Only
// sql/clickhouse.sql and sql/*.clickhouse.sql are specific to ClickHouse.
func TestClickHouse(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "node")
	if exec.Command("node", "-e", "require('chdb')").Run() != nil {
		t.Skip("chdb of npm is not installed, or not in NODE_PATH")
	}
	f := simulate.Default()
	f.Devices, f.Paths, f.Reboots = 500, 60, 0.1
	d := simulated(t, &f)
	builds := []string{f.BuildID(2), f.BuildID(3)}

	views := func(builds []string) (list []string) {
		list = append(list, "set prefer_column_name_to_alias = 1", "set join_use_nulls = 1", "set use_hive_partitioning = 0", "create database if not exists q", "use q")
		list = append(list, strings.Split(text("clickhouse"), ";\n")...)
		snapshot, err := d.store.Snapshot(t.Context(), "", builds...)
		if err != nil {
			t.Fatal(err)
		}
		for name, files := range map[string][]string{"dumps": snapshot.Dumps, "facts": snapshot.Facts, "paths": snapshot.Paths} {
			var from []string
			for _, n := range files {
				from = append(from, "select * from file("+quote(filepath.Join(d.dir, filepath.FromSlash(n)))+", Parquet)")
			}
			list = append(list, "create view "+name+" as "+strings.Join(from, " union all "))
		}
		return append(list, "create table frames (build String, address String, `index` Int32, function String, file String, line Int32, missing String) engine = Memory")
	}
	table := func(list []string, names ...string) []string {
		for _, n := range names {
			q := text(n)
			if n == "addresses" {
				q = text("addresses.clickhouse")
			}
			list = append(list, "create table "+n+" engine = Memory as "+q)
		}
		return list
	}
	bound := strings.NewReplacer("'BEFORE'", quote(builds[0]), "'AFTER'", quote(builds[1]))
	for _, c := range []struct {
		name   string
		builds []string
		tables []string
		rows   int // least number
	}{
		{"moments", builds[1:], []string{"numbered"}, 500},
		{"series", builds[1:], []string{"numbered"}, 3000},
		{"moving", builds[1:], nil, 1},
		{"diff", builds, []string{"steady", "compared", "wanted", "addresses", "keys"}, 60},
		{"top", builds[1:], []string{"steady"}, 60},
		{"builds", builds, []string{"steady"}, 2},
		{"devices", builds, nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := views(c.builds)
			var want *Result
			err := d.with(t.Context(), Scope{Builds: c.builds}, allTables, func(s *session) (err error) {
				for _, n := range c.tables {
					if n == "wanted" {
						ch = append(ch, "create table wanted engine = Memory as select distinct path from paths")
						err = s.exec(t.Context(), "create or replace temp table wanted as select distinct path from paths")
					} else {
						ch = table(ch, n)
						err = s.tables(t.Context(), n)
					}
					if err != nil {
						return err
					}
				}
				want, err = s.any(t.Context(), bound.Replace(text(c.name)), 1e6)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got := clickhouse(t, append(ch, bound.Replace(text(c.name))))
			if len(got) != len(want.Rows) || len(got) < c.rows {
				t.Fatalf("%d rows in ClickHouse, %d in DuckDB, want %d or more", len(got), len(want.Rows), c.rows)
			}
			for i := range got {
				inOrder(got[i])
				inOrder(want.Rows[i])
				for j := range got[i] {
					if !same(got[i][j], want.Rows[i][j]) {
						t.Fatalf("row %d, %s: %v in ClickHouse, %v in DuckDB", i, want.Columns[j], got[i][j], want.Rows[i][j])
					}
				}
			}
		})
	}
}

// inOrder replaces the lists of a row, which belong together and have no order, by text.
func inOrder(row []any) {
	var lists [][]any
	for _, v := range row {
		if list, ok := v.([]any); ok {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		return
	}
	elements := make([]string, len(lists[0]))
	for i := range elements {
		for _, list := range lists {
			elements[i] += fmt.Sprintf("%.0f ", number(list[i]))
		}
	}
	slices.Sort(elements)
	for i, v := range row {
		if _, ok := v.([]any); ok {
			row[i] = "elements: " + strings.Join(elements, ", ")
		}
	}
}

// same compares a value of ClickHouse's JSON with one of DuckDB.
func same(a, b any) bool {
	x, y := number(a), number(b)
	if math.IsNaN(x) || math.IsNaN(y) {
		return cell(a) == cell(b)
	}
	return math.Abs(x-y) <= 1e-9*(1+math.Abs(y))
}

// number returns a value as a number, or NaN. In JSON, large integers are strings.
func number(v any) float64 {
	var f float64
	if n, err := fmt.Sscanf(cell(v), "%g", &f); n != 1 || err != nil || strings.ContainsAny(cell(v), ":abcdfx") {
		return math.NaN()
	}
	return f
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case interface{ UnixMicro() int64 }:
		return fmt.Sprint(v.(fmt.Stringer).String()[:19])
	case string:
		if len(v) > 19 && v[10] == ' ' && v[13] == ':' {
			return v[:19]
		}
		return v
	}
	return fmt.Sprint(v)
}
