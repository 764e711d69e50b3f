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
	add := func(id, kind string, n conformance.VectorCounts) error {
		return t.Append(appendCounts([]string{id, kind}, n.Accepts, n.Rejects, n.Examples))
	}
	kindOf := func(m *conformance.MustCoverage) string {
		if !m.NeedsVectors() {
			return "not by vector"
		}
		if must++; m.Accepts+m.Rejects == 0 {
			return "MUST, no vector"
		}
		shown++
		return "MUST"
	}
	for _, clause := range c.Clauses {
		kind := ""
		list := clause.Requirements
		if len(list) == 1 {
			kind, list = kindOf(&list[0]), nil
		}
		if err := add(clause.ID, kind, clause.VectorCounts); err != nil {
			return err
		}
		for i := range list {
			if err := add("  "+list[i].ID, kindOf(&list[i]), list[i].VectorCounts); err != nil {
				return err
			}
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d requirements (MUST) have vectors\n", shown, must)
	return w.err
}
