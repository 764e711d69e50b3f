package main

import (
	"fmt"
	"os"
	"strings"
)

// A table has a row for each backend, machine and compiler, and a cell for each
// level of optimization.
type table struct{ rows []*row }

type row struct {
	backend           backend
	machine, compiler string
	cells             []*count
}

func (r *row) String() string {
	name := r.backend.name
	if r.backend.table {
		name += ", table"
	}
	return name + " | " + r.machine + " | " + r.compiler
}

// The marks of the table in a document.
const (
	beginMark = "<!-- table: go run ./device/test/capture -write docs/capture.md -->\n"
	endMark   = "<!-- end of table -->\n"
)

func (t *table) markdown() string {
	var b strings.Builder
	frames, stacks, corrupted := 0, 0, 0
	b.WriteString("| backend | machine | compiler | " + strings.Join(levels, " | ") + " |\n| --- | --- | --- |" + strings.Repeat(" --- |", len(levels)) + "\n")
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s |", r)
		for _, c := range r.cells {
			frames, stacks, corrupted = frames+c.expected, stacks+c.captures, corrupted+c.corrupted
			switch {
			case c.fatal != "":
				b.WriteString(" fault |")
			case c.expected == 0:
				b.WriteString(" |")
			default:
				fmt.Fprintf(&b, " %s / %s |", percent(c.found, c.expected), percent(c.wrong, c.found+c.wrong))
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n%d stacks, %d frames; and %d captures of corrupted stacks.\n", stacks, frames, corrupted)
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
	return os.WriteFile(path, []byte(before+beginMark+t.markdown()+endMark+after), 0o666)
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
			case c.recall() < r.backend.recall || c.falsity() > r.backend.wrong || c.skips > 0:
				short = append(short, fmt.Sprintf("%s %s: %.2f %% found, %.2f %% false, of %g and %g; %d wrong by skip", r, levels[i], c.recall(), c.falsity(), r.backend.recall, r.backend.wrong, c.skips))
			}
		}
	}
	return short
}
