package stats

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/internal/cli"
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
		paragraph(&out, s.Lead)
		for _, c := range s.Code {
			out.WriteString("    " + c + "\n")
		}
		for _, t := range s.Tables {
			out.WriteString("\n")
			if t.Title != "" {
				out.WriteString(t.Title + "\n\n")
			}
			if err := t.text(&out); err != nil {
				return err
			}
		}
		paragraph(&out, s.Notes)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// paragraph writes sentences after an empty line, each in lines of its own.
func paragraph(out *bytes.Buffer, sentences []string) {
	for i, n := range sentences {
		if i == 0 {
			out.WriteString("\n")
		}
		out.WriteString(strings.Join(cli.Wrap(n, width-2), "\n  ") + "\n")
	}
}

// text writes the table. The last column is wrapped to the width.
func (t *Table) text(out io.Writer) error {
	rendered := cli.Table{Head: t.Head, Right: t.numeric()}
	last := len(t.Head) - 1
	room := t.room()
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = text(cell)
		}
		for _, line := range cli.Wrap(cells[last], room) {
			cells[last] = line
			rendered.Rows = append(rendered.Rows, cells)
			cells = make([]string, len(row)) // below the first line, the other columns are empty
		}
	}
	return rendered.Write(out)
}

// numeric reports which columns hold numbers; they are aligned to the right.
func (t *Table) numeric() []bool {
	right := make([]bool, len(t.Head))
	for i := range right {
		right[i] = slices.ContainsFunc(t.Rows, func(row []any) bool { return numeric(row[i]) })
	}
	return right
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

// WriteMarkdown renders sections as GitHub's markdown.
func WriteMarkdown(w io.Writer, sections []Section) error {
	var out bytes.Buffer
	escape := strings.NewReplacer("|", "\\|", "\n", "<br>", "<", "&lt;").Replace
	for i, s := range sections {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "## %s\n", s.Title)
		for _, n := range s.Lead {
			out.WriteString("\n" + n + "\n")
		}
		if len(s.Code) > 0 {
			fmt.Fprintf(&out, "\n```\n%s\n```\n", strings.Join(s.Code, "\n"))
		}
		for _, t := range s.Tables {
			out.WriteString("\n")
			if t.Title != "" {
				fmt.Fprintf(&out, "**%s**\n\n", t.Title)
			}
			t = t.withoutBars()
			rule := ""
			for _, right := range t.numeric() {
				rule += map[bool]string{false: " --- |", true: " ---: |"}[right]
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
