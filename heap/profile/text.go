package profile

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"slices"
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
	// Sites with equal texts are one site.
	byText := new(stackTree)
	var site [1]uint32
	t := translation{from: rows.stacks, to: byText, list: func(number uint32) []uint32 {
		site[0] = rank[number]
		return site[:]
	}}
	order := newOutline(byText, func(yield func(row, stack uint32) bool) {
		for row := range p.lastRows() {
			if !yield(uint32(row.number), t.stack(rows.stackOf(row.number))) {
				return
			}
		}
	})
	_, last := p.last()
	var stack []uint32
	for row := range order.ordered(0) {
		stack = rows.stack(stack[:0], int(row))
		for i, site := range slices.Backward(stack) {
			w.WriteString(text(site))
			if i > 0 {
				w.WriteByte(';')
			}
		}
		if len(stack) == 0 {
			w.WriteString("(no frames)")
		}
		w.WriteByte(' ')
		writeUint(w, o.Weight.Of(rows.value(int(row), last)))
		if err := w.WriteByte('\n'); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
