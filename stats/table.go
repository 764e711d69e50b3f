package stats

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Section is a part of a report in printable form.
type Section struct {
	Title  string
	Lead   []string // sentences before the tables
	Code   []string // lines to copy, after Lead
	Tables []Table
	Notes  []string // sentences after the tables
}

// Table is rows of cells: strings, whole numbers, or the types below. The first
// column names the row.
type Table struct {
	Title string // "" if the title of the section suffices
	Head  []string
	Rows  [][]any
}

type (
	percent float64 // a share of 1
	decimal float64 // one digit after the point
)

// text formats a cell for people.
func text(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case string:
		return v
	case int:
		return printable.Number(v)
	case int64:
		return printable.Number(v)
	case uint64:
		return printable.Number(v)
	case percent:
		return fmt.Sprintf("%.1f%%", 100*float64(v))
	case decimal:
		whole, tenths, _ := strings.Cut(fmt.Sprintf("%.1f", float64(v)), ".")
		n, _ := strconv.ParseInt(whole, 10, 64)
		return printable.Number(n) + "." + tenths
	}
	panic(fmt.Sprintf("stats: a cell of type %T", cell))
}

// numeric reports whether a cell is right-aligned.
func numeric(cell any) bool {
	switch cell.(type) {
	case int, int64, uint64, percent, decimal:
		return true
	}
	return false
}

func count(n uint64) string { return printable.Number(n) }
