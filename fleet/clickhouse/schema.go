// Package clickhouse keeps the rows of a store in the tables of a ClickHouse server or cluster.
//
//	Schema → tables ←Put─ batches
//	          ↑ └→ package query
//	         Load: the files of a store
//
// The tables have the columns of package store, and day, the day of receipt.
package clickhouse

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Schema holds the options of the tables.
type Schema struct {
	Cluster    string // name in system.clusters; "" for a single server
	Replicated bool   // each shard of the cluster has replicas
	Days       int    // days for which rows are kept; 0 is no limit
}

// table describes a table. A row with the key of another replaces it: a batch that is written
// again changes nothing.
type table struct {
	name    string
	row     any    // of package store
	order   string // key
	shard   string // what a row's shard is computed from
	byDay   bool   // partitioned by day
	expires bool   // rows have a day
	version string // of rows with one key, that with the largest value of this column stays
}

// The rows of a device are in one shard, in the order in which leaks reads them.
var tables = []table{
	{store.Paths, store.Path{}, "build, path", "build, path", false, true, "day"},
	{store.Facts, store.Fact{}, "build, device, path, boot, dump", "device", true, true, ""},
	{store.Dumps, store.Dump{}, "build, device, boot, dump", "device", true, true, ""},
	{store.Frames, store.Frame{}, "build, address, `index`, function, file, line, missing", "build, address", false, false, ""},
	{store.JudgedPaths, store.Judged{}, "build, device, path", "device", false, true, "judged_at"},
	{store.JudgedDevices, store.JudgedDevice{}, "build, device", "device", false, true, "judged_at"},
}

// few are the columns with few different values.
var few = []string{"build", "fw", "why", "file", "missing"}

// column is a column of a table.
type column struct {
	name, kind string
	time       bool // in µs in package store
}

// columns returns the columns of a table, in the order of the fields of its rows.
func (t *table) columns() (list []column) {
	r := reflect.TypeOf(t.row)
	for i := range r.NumField() {
		f := r.Field(i)
		tag := f.Tag.Get("parquet")
		c := column{name: strings.Split(tag, ",")[0], time: strings.Contains(tag, "timestamp")}
		switch kind := f.Type.Kind(); {
		case c.time:
			c.kind = "DateTime64(6, 'UTC')"
		case kind == reflect.Slice:
			c.kind = "Array(String)"
		case kind == reflect.Map:
			c.kind = "Map(String, String)"
		case slices.Contains(few, c.name):
			c.kind = "LowCardinality(String)"
		default:
			c.kind = map[reflect.Kind]string{reflect.String: "String", reflect.Int64: "Int64", reflect.Int32: "Int32", reflect.Float64: "Float64", reflect.Bool: "Bool"}[kind]
		}
		list = append(list, c)
	}
	return list
}

// Statements returns the statements that create the tables, if they do not exist.
func (s Schema) Statements() (list []string) {
	for _, t := range tables {
		list = append(list, s.create(&t))
		if s.Cluster != "" {
			list = append(list, s.distributed(&t))
		}
		for _, c := range later[t.name] {
			for _, name := range s.names(t.name) {
				list = append(list, "alter table "+name+" add column if not exists "+c)
			}
		}
	}
	return list
}

// later are the columns that tables of earlier versions lack.
var later = map[string][]string{store.Dumps: {"heaps String codec(ZSTD(1))", "labels Map(String, String) codec(ZSTD(1))"}}

// names returns the tables that a table consists of, as in statements.
func (s Schema) names(table string) []string {
	if s.Cluster == "" {
		return []string{table}
	}
	on := " on cluster " + QuoteName(s.Cluster)
	return []string{table + local + on, table + on}
}

// local is the suffix of the table of one shard.
const local = "_local"

func (s Schema) create(t *table) string {
	var b strings.Builder
	name, on, engine := t.name, "", "ReplacingMergeTree"
	if s.Cluster != "" {
		name, on = t.name+local, " on cluster "+QuoteName(s.Cluster)
	}
	var arguments []string
	if s.Replicated {
		engine = "Replicated" + engine
		arguments = append(arguments, "'/clickhouse/tables/{shard}/{database}/{table}'", "'{replica}'")
	}
	if t.version != "" {
		arguments = append(arguments, t.version)
	}
	fmt.Fprintf(&b, "create table if not exists %s%s (\n", name, on)
	for _, c := range t.columns() {
		codec := "ZSTD(1)"
		if c.kind == "Int64" || c.time {
			codec = "Delta, ZSTD(1)"
		}
		fmt.Fprintf(&b, "  %s %s codec(%s),\n", QuoteName(c.name), c.kind, codec)
	}
	if t.expires {
		b.WriteString("  day Date\n")
	}
	fmt.Fprintf(&b, ") engine = %s(%s)\n", engine, strings.Join(arguments, ", "))
	if t.byDay {
		b.WriteString("partition by day\n")
	}
	fmt.Fprintf(&b, "order by (%s)", t.order)
	if t.expires && s.Days > 0 {
		fmt.Fprintf(&b, "\nttl day + interval %d day", s.Days+1)
		if t.byDay {
			b.WriteString("\nsettings ttl_only_drop_parts = 1")
		}
	}
	return b.String()
}

// distributed returns the statement for the table over all shards.
func (s Schema) distributed(t *table) string {
	return fmt.Sprintf("create table if not exists %s on cluster %s\nas %s\nengine = Distributed(%s, %s, %s, cityHash64(%s))",
		t.name, QuoteName(s.Cluster), t.name+local, QuoteName(s.Cluster), "currentDatabase()", t.name+local, t.shard)
}

// QuoteName returns a name in SQL.
func QuoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

// Quote returns a string in SQL.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
