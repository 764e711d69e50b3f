package profile

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"strconv"
	"strings"
)

// writeCSV writes a line per row: its value, its innermost frame, and all frames, innermost
// first.
func writeCSV(w *bufio.Writer, p *Profile, _ ExportOptions) ([]string, error) {
	c := csv.NewWriter(w)
	c.Write([]string{"dump", "bytes", "count", "function", "file", "line", "stack"})
	d, _ := p.last()
	var names []string
	for row := range p.lastRows() {
		stack := Row{p, row.number}.Stack()
		names = names[:0]
		for _, s := range stack {
			names = append(names, foldedName.Replace(s.String()))
		}
		var first Site
		if len(stack) > 0 {
			first = stack[0]
		}
		line := ""
		if first.Line > 0 {
			line = strconv.Itoa(first.Line)
		}
		if err := c.Write([]string{csvText(d.Name), strconv.FormatUint(row.Bytes, 10), strconv.FormatUint(row.Count, 10),
			csvText(cmp.Or(first.Func, first.Module)), csvText(first.File), line, csvText(strings.Join(names, ";"))}); err != nil {
			return nil, err
		}
	}
	c.Flush()
	return nil, c.Error()
}

// csvText returns a name for a cell of a spreadsheet. Names come from untrusted ELF files and
// logs. If a name begins like a formula, csvText adds an apostrophe in front, which makes it
// text.
func csvText(s string) string {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// writeFolded writes the folded format of flamegraph.pl: a line per call stack, outermost
// function first, with its weight. Lines are ordered by the names of their frames.
func writeFolded(w *bufio.Writer, p *Profile, o ExportOptions) ([]string, error) {
	if v := *p.names().view; v.By == ByLine { // the format has only functions
		v.By = ByFunction
		p = p.View(v)
	}
	rows := p.rows()
	text, rank := rows.names.ranked()
	order := stackOrder{rows: rows, rank: rank, outermost: true}
	list := p.branches()
	order.sort(list, 0)
	_, last := p.last()
	for _, b := range list {
		stack := rows.stack(int(b.row))
		for i := len(stack) - 1; i >= 0; i-- {
			w.WriteString(text(stack[i]))
			if i > 0 {
				w.WriteByte(';')
			}
		}
		if len(stack) == 0 {
			w.WriteString("(no frames)")
		}
		w.WriteByte(' ')
		writeUint(w, o.Weight.Of(rows.value(int(b.row), last)))
		if err := w.WriteByte('\n'); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
