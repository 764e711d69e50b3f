package capture

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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

// Rows with equal cells share a line, and equal cells of a line are one.
func TestMarkdownMergesRows(t *testing.T) {
	all, most := count{expected: 10, found: 10}, count{expected: 10, found: 9, wrong: 1}
	var rows []*row
	for _, r := range []struct {
		backend, machine, compiler string
		cell                       count
	}{
		{"fp", "x86-64", "gcc", all}, {"fp", "x86-64", "clang", all},
		{"fp", "arm", "gcc", all}, {"fp", "arm", "clang", most},
		{"fp", "i686", "gcc", all}, {"fp", "i686", "clang", all},
		{"arm", "arm", "gcc", all}, {"arm", "mips", "gcc", count{fatal: "it ended"}},
	} {
		cell, second := r.cell, r.cell
		if r.compiler == "gcc" && r.machine == "arm" {
			second = most
		}
		rows = append(rows, &row{backend: backend{name: r.backend}, machine: r.machine, compiler: r.compiler, cells: []*count{&cell, &second}})
	}
	got := (&table{rows, []string{"-O1", "-O2"}}).markdown()
	_, got, _ = strings.Cut(got, "--- |\n")
	got, sum, _ := strings.Cut(got, "\n\n")
	want := strings.Join([]string{
		"| fp | x86-64, i686 | gcc, clang | 100 / 0 |",
		"| fp, arm | arm | gcc | -O1 100 / 0, -O2 90.00 / 10.00 |",
		"| fp | arm | clang | 90.00 / 10.00 |",
		"| arm | mips | gcc | fault |",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := "0 stacks, 140 frames.\n"; sum != want {
		t.Errorf("got %q, want %q", sum, want)
	}
}
