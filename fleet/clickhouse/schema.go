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
	order   string // key
	shard   string // what a row's shard is computed from
	byDay   bool   // partitioned by day
	expires bool   // rows have a day
	version string // of rows with one key, that with the largest value of this column stays
}

// The rows of a device are in one shard, in the order in which leaks reads them.
var tables = []table{
	{store.Paths, "build, path", "build, path", false, true, "day"},
	{store.Facts, "build, device, path, boot, dump", "device", true, true, ""},
	{store.Dumps, "build, device, boot, dump", "device", true, true, ""},
	{store.Frames, "build, address, `index`, function, file, line, missing", "build, address", false, false, ""},
	{store.JudgedPaths, "build, device, path", "device", false, true, "judged_at"},
	{store.JudgedDevices, "build, device", "device", false, true, "judged_at"},
}

// few are the columns with few different values.
var few = []string{"build", "fw", "why", "file", "missing"}

// kinds are the types of the columns.
var kinds = map[reflect.Kind]string{reflect.String: "String", reflect.Int64: "Int64", reflect.Int32: "Int32", reflect.Float64: "Float64", reflect.Bool: "Bool",
	reflect.Slice: "Array(String)", reflect.Map: "Map(String, String)"}

// kind returns the type of a column.
func kind(c store.Column) string {
	switch {
	case c.Time:
		return "DateTime64(6, 'UTC')"
	case slices.Contains(few, c.Name):
		return "LowCardinality(String)"
	}
	return kinds[c.Kind]
}

// Statements returns the statements that create the tables, if they do not exist.
func (s Schema) Statements() (list []string) {
	for _, t := range tables {
		list = append(list, s.create(&t))
		if s.Cluster != "" {
			list = append(list, s.distributed(&t))
		}
	}
	return list
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
	for _, c := range store.Columns(t.name) {
		codec := "ZSTD(1)"
		if c.Kind == reflect.Int64 {
			codec = "Delta, ZSTD(1)"
		}
		fmt.Fprintf(&b, "  %s %s codec(%s),\n", QuoteName(c.Name), kind(c), codec)
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
