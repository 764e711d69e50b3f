package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/interop"
)

// cellText returns the text of a cell.
func cellText(c *interop.MatrixCell, stale bool) string {
	switch {
	case c == nil:
		return "?"
	case stale:
		return "old"
	case c.Fails() > 0:
		return strconv.Itoa(c.Fails())
	case c.Low > 0:
		return "~"
	}
	return "ok"
}

// column holds decoders with equal cells in all rows.
type column struct {
	names []string
	texts []string // of the cells, by row
}

// Matrix writes the matrix, with a row for each encoder and a column for each decoder. Decoders
// with equal results share a column. It returns the number of cells without a recording or
// with a stale one.
func Matrix(w io.Writer, encoders []interop.MatrixEncoder, decoders []*interop.MatrixDecoder, colour bool) (gaps int, err error) {
	var columns []column
	for _, d := range decoders {
		c := column{names: []string{d.Name}}
		for i := range encoders {
			cell, stale := d.Cell(&encoders[i])
			c.texts = append(c.texts, cellText(cell, stale))
			if cell == nil || stale {
				gaps++
			}
		}
		same := slices.IndexFunc(columns, func(o column) bool { return slices.Equal(o.texts, c.texts) })
		if same >= 0 {
			columns[same].names = append(columns[same].names, d.Name)
		} else {
			columns = append(columns, c)
		}
	}
	out := &stickyWriter{w: w}
	header := []string{"encoder", "blobs"}
	for i := range columns {
		header = append(header, letter(i))
	}
	t := newTable(1, header...)
	for n := range encoders {
		e := &encoders[n]
		row := []string{e.Name, strconv.Itoa(len(e.Blobs))}
		for _, c := range columns {
			text := c.texts[n]
			switch {
			case text == "ok":
				text = paint(text, green, colour)
			case text != "~":
				text = paint(text, red, colour)
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, row)
	}
	if err := t.Write(out); err != nil {
		return gaps, err
	}
	fmt.Fprintln(out, "\nok: all blobs read as encoded; ~: of values over 31 bits, only the low 31 bits;")
	fmt.Fprintln(out, "a number: how many blobs were not read. Equal decoders share a column:")
	for i, c := range columns {
		fmt.Fprintf(out, "  %s  %s\n", letter(i), wrapNames(c.names, 5))
	}
	return gaps, out.err
}

func letter(i int) string { return string(rune('A' + i)) }

// wrapNames breaks a list of names into lines of up to Width; the lines after the first are indented.
func wrapNames(names []string, indent int) string {
	var b strings.Builder
	n := indent
	for i, name := range names {
		if i > 0 {
			b.WriteString(",")
			n++
			if n+1+len(name) >= Width {
				b.WriteString("\n" + strings.Repeat(" ", indent-1))
				n = indent - 1
			}
			b.WriteString(" ")
			n++
		}
		b.WriteString(name)
		n += len(name)
	}
	return b.String()
}
