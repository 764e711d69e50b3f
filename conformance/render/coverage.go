package render

import (
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/conformance"
)

// Coverage writes a table of clauses.
func Coverage(out io.Writer, c *conformance.Coverage) error {
	w := &stickyWriter{w: out}
	t := NewTable(w, 2)
	t.Header([]string{"clause", "", "MUSTs", "accept", "reject", "in SPEC.md"})
	clauses, covered, musts := 0, 0, 0
	for _, clause := range c.Clauses {
		note := ""
		if clause.NeedsVectors() {
			clauses++
			musts += clause.Musts()
			if clause.Covered() {
				covered++
			} else {
				note = "too few vectors"
			}
		}
		row := []string{clause.ID, note}
		row = appendCounts(row, clause.Musts(), clause.Accepts, clause.Rejects, clause.Examples)
		if err := t.Append(row); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d clauses have a vector for each of their MUSTs, %d in total\n", covered, clauses, musts)
	return w.err
}
