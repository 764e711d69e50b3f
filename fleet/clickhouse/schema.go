// Package clickhouse keeps the rows of a store in the tables of a ClickHouse server.
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

// table describes a table. A row with the key of another replaces it: a batch that is written
// again changes nothing.
type table struct {
	name    string
	order   string // key
	byDay   bool   // partitioned by day
	expires bool   // rows have a day
	version string // of rows with one key, that with the largest value of this column stays
}

// The rows of a device are in the order in which leaks reads them.
var tables = []table{
	{store.Paths, "build, path", false, true, "day"},
	{store.Facts, "build, device, path, boot, dump", true, true, ""},
	{store.Dumps, "build, device, boot, dump", true, true, ""},
	{store.Frames, "build, address, `index`, function, file, line, missing", false, false, ""},
	{store.JudgedPaths, "build, device, path", false, true, "judged_at"},
	{store.JudgedDevices, "build, device", false, true, "judged_at"},
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

// Schema returns the statements that create the tables, if they do not exist. days is the number of days for which rows are kept; 0 is no limit.
func Schema(days int) (list []string) {
	for _, t := range tables {
		var b strings.Builder
		fmt.Fprintf(&b, "create table if not exists %s (\n", t.name)
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
		fmt.Fprintf(&b, ") engine = ReplacingMergeTree(%s)\n", t.version)
		if t.byDay {
			b.WriteString("partition by day\n")
		}
		fmt.Fprintf(&b, "order by (%s)", t.order)
		if t.expires && days > 0 {
			fmt.Fprintf(&b, "\nttl day + interval %d day", days+1)
			if t.byDay {
				b.WriteString("\nsettings ttl_only_drop_parts = 1")
			}
		}
		list = append(list, b.String())
	}
	return list
}

// QuoteName returns a name in SQL.
func QuoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

// Quote returns a string in SQL.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
