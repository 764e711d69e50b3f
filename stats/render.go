package stats

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
)

// width is the maximum width of rendered text, in columns.
const width = 80

// gapWidth is the number of spaces between columns.
const gapWidth = 2

// WriteText renders sections for a terminal.
func WriteText(w io.Writer, sections []Section) error {
	var out bytes.Buffer
	for i, s := range sections {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "%s\n%s\n", s.Title, strings.Repeat("=", utf8.RuneCountInString(s.Title)))
		for _, t := range s.Tables {
			out.WriteString("\n")
			if t.Title != "" {
				out.WriteString(t.Title + "\n\n")
			}
			if err := t.text(&out); err != nil {
				return err
			}
		}
		if len(s.Notes)+len(s.Code) > 0 {
			out.WriteString("\n")
		}
		for _, n := range s.Notes {
			out.WriteString(strings.Join(wrap(n, width-2), "\n  ") + "\n")
		}
		for _, c := range s.Code {
			out.WriteString("    " + c + "\n")
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (t *Table) text(out *bytes.Buffer) error {
	var table bytes.Buffer
	aligns := t.aligns()
	tb := newTable(&table, t.Head, aligns)
	room := t.room()
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = text(cell)
			if i == len(row)-1 {
				cells[i] = fold(cells[i], room)
			}
		}
		if err := tb.Append(cells); err != nil {
			return err
		}
	}
	if err := tb.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		line = strings.TrimRight(line, " \n")
		if n := utf8.RuneCountInString(line); n > width && strings.Trim(line, "-") == "" {
			line = line[:width]
		}
		out.WriteString(line + "\n")
	}
	return nil
}

// newTable returns a table that is rendered to w, in the style of internal/table. Cells may
// have several lines. Trailing spaces are kept.
func newTable(w io.Writer, head []string, aligns []tw.Align) *tablewriter.Table {
	pad := tw.CellPadding{Global: tw.Padding{Right: strings.Repeat(" ", gapWidth), Overwrite: true}}
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

// aligns right-aligns columns of numbers.
func (t *Table) aligns() []tw.Align {
	aligns := make([]tw.Align, len(t.Head))
	for i := range aligns {
		aligns[i] = tw.AlignLeft
		if slices.ContainsFunc(t.Rows, func(row []any) bool { return numeric(row[i]) }) {
			aligns[i] = tw.AlignRight
		}
	}
	return aligns
}

// room returns the width available for the last column.
func (t *Table) room() int {
	left := width
	for i, head := range t.Head[:len(t.Head)-1] {
		widest := utf8.RuneCountInString(head)
		for _, row := range t.Rows {
			widest = max(widest, utf8.RuneCountInString(text(row[i])))
		}
		left -= widest + gapWidth
	}
	return max(left, 20)
}

// fold breaks each line of a cell between words.
func fold(cell string, room int) string {
	var lines []string
	for line := range strings.SplitSeq(cell, "\n") {
		lines = append(lines, wrap(line, room)...)
	}
	return strings.Join(lines, "\n")
}

// wrap breaks text between words into lines of at most n characters. A longer word is
// not broken.
func wrap(text string, n int) []string {
	var lines []string
	line, long := "", 0
	for word := range strings.SplitSeq(text, " ") {
		w := utf8.RuneCountInString(word)
		if long > 0 && long+1+w > n {
			lines = append(lines, line)
			line, long = "", 0
		}
		if long > 0 {
			line += " "
			long++
		}
		line += word
		long += w
	}
	return append(lines, line)
}

// WriteMarkdown renders sections as GitHub's markdown.
func WriteMarkdown(w io.Writer, sections []Section) error {
	var out bytes.Buffer
	escape := strings.NewReplacer("|", "\\|", "\n", "<br>", "<", "&lt;").Replace
	for i, s := range sections {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "## %s\n", s.Title)
		for _, t := range s.Tables {
			out.WriteString("\n")
			if t.Title != "" {
				fmt.Fprintf(&out, "**%s**\n\n", t.Title)
			}
			t = t.withoutBars()
			rule := ""
			for _, a := range t.aligns() {
				rule += map[tw.Align]string{tw.AlignLeft: " --- |", tw.AlignRight: " ---: |"}[a]
			}
			fmt.Fprintf(&out, "| %s |\n|%s\n", strings.Join(t.Head, " | "), rule)
			for _, row := range t.Rows {
				out.WriteString("|")
				for _, cell := range row {
					out.WriteString(" " + escape(text(cell)) + " |")
				}
				out.WriteString("\n")
			}
		}
		for _, n := range s.Notes {
			out.WriteString("\n" + n + "\n")
		}
		if len(s.Code) > 0 {
			fmt.Fprintf(&out, "\n```\n%s\n```\n", strings.Join(s.Code, "\n"))
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// withoutBars returns the table without its last column if that contains bars.
func (t Table) withoutBars() Table {
	last := len(t.Head) - 1
	if len(t.Rows) == 0 {
		return t
	}
	if _, ok := t.Rows[0][last].(bar); !ok {
		return t
	}
	t.Head = t.Head[:last]
	rows := make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = row[:last]
	}
	t.Rows = rows
	return t
}

// WriteCSV renders sections as one table with a line per value: section, table, row,
// column, value. The first cell of a row names it. Shares are fractions of 1.
func WriteCSV(w io.Writer, sections []Section) error {
	out := csv.NewWriter(w)
	line := func(cells ...string) error { return out.Write(cells) }
	err := line("section", "table", "row", "column", "value")
	for _, s := range sections {
		for _, t := range s.Tables {
			t = t.withoutBars()
			for _, row := range t.Rows {
				for i, cell := range row[1:] {
					if err == nil {
						err = line(s.ID, t.ID, raw(row[0]), t.Head[i+1], raw(cell))
					}
				}
			}
		}
		for i, c := range s.Code {
			if err == nil {
				err = line(s.ID, "recommend", fmt.Sprint(i+1), "cmake", c)
			}
		}
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}
