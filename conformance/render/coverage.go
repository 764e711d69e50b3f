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
	t.Header([]string{"clause", "", "accept", "reject", "in SPEC.md"})
	must, shown := 0, 0
	for _, clause := range c.Clauses {
		kind := ""
		if clause.NeedsVectors() {
			kind = "MUST"
			must++
			if clause.Accepts+clause.Rejects > 0 {
				shown++
			} else {
				kind = "MUST, no vector"
			}
		}
		row := []string{clause.ID, kind}
		row = appendCounts(row, clause.Accepts, clause.Rejects, clause.Examples)
		if err := t.Append(row); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d clauses with a MUST have vectors\n", shown, must)
	return w.err
}
