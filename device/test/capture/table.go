package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A table has a row for each backend, machine and compiler, and a cell for each
// level of optimization.
type table struct {
	rows    []*row
	columns []string
}

type row struct {
	backend           backend
	machine, compiler string
	cells             []*count
}

func (r *row) String() string { return r.line(nil).String() }

// A line of the table in a document: rows with the same cells share one.
type line struct{ backend, machine, compiler, cells string }

func (l line) String() string { return l.backend + " | " + l.machine + " | " + l.compiler }

// line returns the line of a row. Where the cells of all columns are equal, it has them once.
func (r *row) line(columns []string) line {
	l := line{backend: r.backend.name, machine: r.machine, compiler: r.compiler}
	if r.backend.table {
		l.backend += " (table)"
	}
	same := true
	var list []string
	for i, c := range r.cells[:len(columns)] {
		same = same && c.String() == r.cells[0].String()
		list = append(list, columns[i]+" "+c.String())
	}
	l.cells = strings.Join(list, ", ")
	if same && len(list) > 0 {
		l.cells = r.cells[0].String()
	}
	return l
}

// merge joins the values of one field of lines that have all others in common.
func merge(lines []line, field func(*line) *string) []line {
	var merged []line
	for _, l := range lines {
		i := slices.IndexFunc(merged, func(m line) bool {
			*field(&m) = *field(&l)
			return m == l
		})
		if i < 0 {
			merged = append(merged, l)
			continue
		}
		*field(&merged[i]) += ", " + *field(&l)
	}
	return merged
}

// String returns recall and false frames in percent.
func (c *count) String() string {
	switch {
	case c.fatal != "":
		return "fault"
	case c.expected == 0:
		return ""
	}
	return percent(c.found, c.expected) + " / " + percent(c.wrong, c.found+c.wrong)
}

// The marks of the table of generated programs in a document.
const (
	beginMark = "<!-- table: go run ./device/test/capture -write docs/notes/capture.md -->\n"
	endMark   = "<!-- end of table -->\n"
)

func (t *table) markdown() string {
	var b strings.Builder
	frames, stacks, corrupted := 0, 0, 0
	b.WriteString("| backend | machine | compiler | " + strings.Join(t.columns, ", ") + " |\n| --- | --- | --- | --- |\n")
	var lines []line
	for _, r := range t.rows {
		lines = append(lines, r.line(t.columns))
		for _, c := range r.cells {
			frames, stacks, corrupted = frames+c.expected, stacks+c.captures, corrupted+c.corrupted
		}
	}
	lines = merge(lines, func(l *line) *string { return &l.compiler })
	lines = merge(lines, func(l *line) *string { return &l.machine })
	lines = merge(lines, func(l *line) *string { return &l.backend })
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s |\n", l, l.cells)
	}
	fmt.Fprintf(&b, "\n%d stacks, %d frames", stacks, frames)
	if corrupted > 0 {
		fmt.Fprintf(&b, "; and %d captures of corrupted stacks", corrupted)
	}
	b.WriteString(".\n")
	return b.String()
}

// percent never rounds to 100 or 0 what is not.
func percent(part, whole int) string {
	switch {
	case part == 0 || whole == 0:
		return "0"
	case part == whole:
		return "100"
	}
	p := 100 * float64(part) / float64(whole)
	return fmt.Sprintf("%.2f", min(max(p, 0.01), 99.99))
}

// replace puts the table between its marks in a document.
func (t *table) replace(path string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(doc), beginMark)
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no table: expected the line %q, and later %q", path, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	var kept []string
	for line := range strings.Lines(t.markdown()) {
		if !strings.HasPrefix(line, "| scan |") { // of which no cell is like another
			kept = append(kept, line)
		}
	}
	return os.WriteFile(path, []byte(before+beginMark+strings.Join(kept, "")+endMark+after), 0o666)
}

// short returns the cells that fall short of their target.
func (t *table) short() []string {
	var short []string
	for _, r := range t.rows {
		for i, c := range r.cells {
			switch {
			case c.fatal != "":
				short = append(short, c.fatal)
			case c.expected == 0 || r.backend.report:
			case c.recall() < r.backend.recall || c.falsity() > r.backend.wrong || c.differing > 0:
				short = append(short, fmt.Sprintf("%s %s: %.2f %% found, %.2f %% false, of %g and %g; %d differing", r, t.columns[i], c.recall(), c.falsity(), r.backend.recall, r.backend.wrong, c.differing))
			}
		}
	}
	return short
}
