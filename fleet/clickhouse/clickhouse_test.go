package clickhouse_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Each table of a schema is created in the order of its questions, and with its limit.
func TestSchema(t *testing.T) {
	list := clickhouse.Schema(90)
	if len(list) != 6 {
		t.Fatalf("%d statements, want one for each of six tables", len(list))
	}
	for _, want := range []string{
		"create table if not exists facts (\n",
		"  device String codec(ZSTD(1)),\n  path Int64 codec(Delta, ZSTD(1)),\n",
		"  time DateTime64(6, 'UTC') codec(Delta, ZSTD(1)),\n",
		") engine = ReplacingMergeTree()\npartition by day\norder by (build, device, path, boot, dump)\n",
		"ttl day + interval 91 day", // 90 whole days, as --keep-days of a store
	} {
		if !strings.Contains(list[1], want) {
			t.Errorf("no %q in\n%s", want, list[1])
		}
	}
	if all := strings.Join(clickhouse.Schema(0), "\n"); strings.Contains(all, "ttl") {
		t.Error(all)
	}
}

// The schema has the tables and columns of package store, in their order: rows are inserted by position.
func TestSchemaIsTheStore(t *testing.T) {
	kinds := map[reflect.Kind][]string{reflect.String: {"String", "LowCardinality(String)"}, reflect.Int64: {"Int64"}, reflect.Int32: {"Int32"}, reflect.Float64: {"Float64"},
		reflect.Bool: {"Bool"}, reflect.Slice: {"Array(String)"}, reflect.Map: {"Map(String, String)"}}
	table := regexp.MustCompile(`create table if not exists (\w+) \(`)
	column := regexp.MustCompile("(?m)^  `?(\\w+)`? (.*?)(?: codec.*)?,?$")
	found := map[string]bool{}
	for _, statement := range clickhouse.Schema(0) {
		name := table.FindStringSubmatch(statement)[1]
		found[name] = true
		want := store.Columns(name)
		for i, m := range column.FindAllStringSubmatch(statement, -1) {
			switch {
			case i == len(want):
				if m[1] != "day" || m[2] != "Date" {
					t.Errorf("%s: %q after all columns", name, m[0])
				}
			case i > len(want) || m[1] != want[i].Name || want[i].Time != strings.HasPrefix(m[2], "DateTime64(6") || !want[i].Time && !slices.Contains(kinds[want[i].Kind], m[2]):
				t.Errorf("%s, column %d: %q, want %+v", name, i, m[0], want)
			}
		}
		if n := len(column.FindAllString(statement, -1)); n < len(want) {
			t.Errorf("%s: %d columns, want %d", name, n, len(want))
		}
	}
	if len(found) != len(store.Tables) {
		t.Errorf("tables %v, want %q", found, store.Tables)
	}
}

// Rows that are older than the limit of the schema are deleted at the next merge, others stay.
func TestExpiry(t *testing.T) {
	cmdtest.Long(t)
	s, err := clickhouse.Open(fleettest.ClickHouse(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(q string) {
		t.Helper()
		r, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	const days = 30
	for _, q := range clickhouse.Schema(days) {
		run(q)
	}
	for age := range days + 5 {
		name := fmt.Sprintf("age%02d", age)
		b := &store.Batch{Name: name, Day: time.Now().AddDate(0, 0, -age), Dumps: []store.Dump{{Build: "b", Device: name}}, Facts: []store.Fact{{Build: "b", Device: name}},
			Paths: []store.Path{{Build: "b", Path: int64(age)}}}
		if err := s.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for table, column := range map[string]string{store.Dumps: "device", store.Facts: "device", store.Paths: "concat('age', leftPad(toString(path), 2, '0'))"} {
		run("optimize table " + table + " final")
		r, err := s.Query(t.Context(), "select count(), max("+column+") from "+table)
		if err != nil {
			t.Fatal(err)
		}
		var n uint64
		var oldest string
		if !r.Next() || r.Scan(&n, &oldest) != nil {
			t.Fatal(r.Err())
		}
		r.Close()
		if n != days+1 || oldest != fmt.Sprint("age", days) { // as many whole days, and today
			t.Errorf("%s: %d rows, the oldest %s; want %d days", table, n, oldest, days)
		}
	}
}

// ClickHouse reads the files of a store by the statements of store.md.
func TestLoadRuns(t *testing.T) {
	cmdtest.Long(t)
	dir := t.TempDir()
	files, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"first", "second", "third"} {
		at := time.Date(2026, 6, 1+i/2, 12, 0, 0, 123456000, time.UTC)
		b := &store.Batch{Name: name, Day: at, Dumps: []store.Dump{{Build: "a/b", Device: name, Upload: name, Received: at.UnixMicro(), Complete: true}},
			Facts: []store.Fact{{Build: "a/b", Device: name, Path: 7, Count: 3, Bytes: 48}}, Paths: []store.Path{{Build: "a/b", Path: 7, Addresses: []string{"0x1", "0x2"}}}}
		if err := files.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.PutFrames(t.Context(), time.Now(), []store.Frame{{Build: "a/b", Address: "0x1", Function: "f"}}); err != nil {
		t.Fatal(err)
	}
	s, err := clickhouse.Open(fleettest.ClickHouse(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	doc, err := os.ReadFile("../docs/store.md")
	if err != nil {
		t.Fatal(err)
	}
	_, load, _ := strings.Cut(string(doc), "```sql\n")
	load, _, ok := strings.Cut(strings.ReplaceAll(load, "file('fleet/", "file('"+dir+"/"), ";\n```")
	if !ok || !strings.Contains(load, dir) {
		t.Fatalf("no statements in store.md: %q", load)
	}
	for _, q := range append(clickhouse.Schema(0), strings.Split(load, ";\n")...) {
		r, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	r, err := s.Query(t.Context(), `select toString(groupArray((device, toUnixTimestamp64Micro(received), complete, day))), (select toString(groupArray((device, path, count, bytes, day))) from (select * from facts order by device)),
(select toString(groupUniqArray(addresses)) from paths) from (select * from dumps order by device)`)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var dumps, facts, paths string
	if !r.Next() || r.Scan(&dumps, &facts, &paths) != nil {
		t.Fatal(r.Err())
	}
	if want := "[('first',1780315200123456,true,'2026-06-01'),('second',1780315200123456,true,'2026-06-01'),('third',1780401600123456,true,'2026-06-02')]"; dumps != want {
		t.Errorf("%s, want %s", dumps, want)
	}
	if want := "[('first',7,3,48,'2026-06-01'),('second',7,3,48,'2026-06-01'),('third',7,3,48,'2026-06-02')]"; facts != want {
		t.Errorf("%s, want %s", facts, want)
	}
	if want := "[['0x1','0x2']]"; paths != want {
		t.Errorf("%s, want %s", paths, want)
	}
}
