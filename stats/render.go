package stats

import (
	"bytes"
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
