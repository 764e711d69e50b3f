// Package table writes the tables of all commands in one style: no borders, a line
// below the headings, numbers to the right.
package table

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a table of text. Each column has a heading.
type Table struct {
	Head  []string
	Right []bool // by column: whether it is aligned to the right; false for missing elements
	Rows  [][]string
	// Each, if not nil, is used instead of Rows, for tables too large to hold: Write
	// calls it twice.
	Each iter.Seq[[]string]
	// Width is the maximum width of a line in characters, 0 for no limit. The last column
	// is cut to fit, with an ellipsis, but not below minLast characters.
	Width int
}

// gap is the spaces between columns.
const gap = 2

// minLast is the smallest width of the last column.
const minLast = 20

// Write writes the table.
func (t *Table) Write(w io.Writer) error {
	each := t.Each
	if each == nil {
		each = slices.Values(t.Rows)
	}
	widths := make([]int, len(t.Head))
	for i, h := range t.Head {
		widths[i] = utf8.RuneCountInString(h)
	}
	for r := range each {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	last := 0 // width of the last column, 0 for any
	if t.Width > 0 {
		last = t.Width
		for _, n := range widths[:len(widths)-1] {
			last -= n + gap
		}
		last = max(last, minLast)
		widths[len(widths)-1] = min(widths[len(widths)-1], max(last, utf8.RuneCountInString(t.Head[len(t.Head)-1])))
	}
	line := t.appendRow(nil, t.Head, widths)
	total := 0
	for _, n := range widths {
		total += n + gap
	}
	if t.Width > 0 {
		total = min(total, t.Width)
	}
	rule := strings.Repeat("-", total) + "\n" // below the headings, if there is a row
	for r := range each {
		line = append(line, rule...)
		rule = ""
		if n := len(r) - 1; last > 0 && n == len(t.Head)-1 {
			r = slices.Clone(r)
			r[n] = Fit(r[n], last)
		}
		line = t.appendRow(line, r, widths)
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	_, err := w.Write(line)
	return err
}

// appendRow appends a line of cells, which are as wide as these widths.
func (t *Table) appendRow(line []byte, cells []string, widths []int) []byte {
	for i, c := range cells {
		width := -widths[i]
		if i < len(t.Right) && t.Right[i] {
			width = widths[i]
		}
		line = fmt.Appendf(line, "%*s%*s", width, c, gap, "")
	}
	return append(bytes.TrimRight(line, " "), '\n')
}

// Fit returns s cut to n columns of text. In "function file:line" it drops directories
// first, and then the middle of the function; in other text it drops the middle.
func Fit(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	i := strings.LastIndexByte(s, ' ')
	name, place := s[:max(i, 0)], s[i+1:]
	if i < 0 || !isPlace.MatchString(place) {
		return middle(s, n)
	}
	place = place[strings.LastIndexAny(place, `/\`)+1:]
	width := utf8.RuneCountInString(place)
	if width > n/2 {
		width = min(width, max(n/2, n-1-utf8.RuneCountInString(name)))
		place = middle(place, width)
	}
	return middle(name, n-1-width) + " " + place
}

// isPlace matches a file and a line.
var isPlace = regexp.MustCompile(`^\S+:[0-9]+$`)

// middle returns s cut to n columns, with an ellipsis for its middle.
func middle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 4 {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
