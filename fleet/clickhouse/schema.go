// Package clickhouse keeps the rows of a store in the tables of a ClickHouse server.
//
//	Schema → tables ←Put─ batches
//	          ↑ └→ package query
//	         Load: the files of a store
//
// The tables have the columns of package store, and day, the day of receipt.
package clickhouse

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed schema.sql
var schema string

// expiry matches the lines of the schema that let rows expire.
var expiry = regexp.MustCompile(`\n(ttl|settings) [^;\n]*`)

// Schema returns the statements that create the tables, if they do not exist. days is the number of days for which rows are kept; 0 is no limit.
func Schema(days int) []string {
	text := strings.ReplaceAll(schema, "{days}", fmt.Sprint(days+1))
	if days == 0 {
		text = expiry.ReplaceAllString(text, "")
	}
	return strings.Split(strings.TrimSuffix(text, ";\n"), ";\n\n")
}

// QuoteName returns a name in SQL.
func QuoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

// Quote returns a string in SQL.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
