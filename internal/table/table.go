// Package table writes the tables of all commands in one style: no borders, a line
// below the headings, numbers to the right.
package table

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is a table of text. Each column has a heading.
type Table struct {
	Head  []string
	Right []bool // by column: aligned to the right; what is missing is not
	Rows  [][]string
	// Width is the columns of text that a line may take, 0 for any: the last column
	// is cut to it, with an ellipsis.
	Width int
}

// gap is the spaces between columns.
const gap = 2

// minLast is the least that is left of the last column.
const minLast = 20

// Write writes the table.
func (t *Table) Write(w io.Writer) error {
	aligns := make([]tw.Align, len(t.Head))
	widths := make([]int, len(t.Head))
	for i, h := range t.Head {
		aligns[i] = tw.AlignLeft
		if i < len(t.Right) && t.Right[i] {
			aligns[i] = tw.AlignRight
		}
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, r := range t.Rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	last := 0
	if t.Width > 0 {
		last = t.Width
		for _, n := range widths[:len(widths)-1] {
			last -= n + gap
		}
		last = max(last, minLast)
	}
	var out bytes.Buffer
	tb := New(&out, t.Head, aligns)
	for _, r := range t.Rows {
		cells := append([]string(nil), r...)
		if n := len(cells) - 1; last > 0 && n == len(t.Head)-1 {
			cells[n] = Fit(cells[n], last)
		}
		if err := tb.Append(cells); err != nil {
			return err
		}
	}
	if err := tb.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, " \n")
		if t.Width > 0 && strings.Trim(line, "-") == "" { // the line below the headings
			line = line[:min(len(line), t.Width)]
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Fit returns s cut to n columns of text: of the middle, what is least telling,
// becomes an ellipsis.
func Fit(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 4 {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// New returns a table in the style of all commands, to which rows are appended and
// which is then rendered to w. Trailing spaces are left in.
func New(w io.Writer, head []string, aligns []tw.Align) *tablewriter.Table {
	pad := tw.CellPadding{Global: tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}}
	align := tw.CellAlignment{PerColumn: aligns}
	plain := tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off}
	tb := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleASCII),
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.On},
			},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header:   tw.CellConfig{Formatting: plain, Padding: pad, Alignment: align},
			Row:      tw.CellConfig{Formatting: plain, Padding: pad, Alignment: align},
			Behavior: tw.Behavior{TrimSpace: tw.Off},
		}))
	tb.Header(head)
	return tb
}
