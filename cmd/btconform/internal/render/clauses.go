package render

import (
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// renderClauses writes a table with a row for each clause: the number of its vectors that
// were answered correctly, and of the others by outcome. A vector of several clauses counts
// for each.
func renderClauses(out io.Writer, r *conformance.Report) error {
	w := &stickyWriter{w: out}
	const columns = 7
	counts := map[string]*[columns]int{}
	tally := func(id string, res *conformance.Result) {
		if counts[id] == nil {
			counts[id] = &[columns]int{}
		}
		n := counts[id]
		switch {
		case res.Status == conformance.Pass:
			n[0]++
		case res.Status == conformance.Skipped || res.Status == conformance.Unasked:
			n[6]++
		case res.Outcome == conformance.Crash:
			n[4]++
		case res.Outcome == conformance.Hang || res.Outcome == conformance.Protocol:
			n[5]++
		case res.Outcome == conformance.Reject:
			n[2]++
		case res.Vector.Rejects():
			n[3]++
		default:
			n[1]++
		}
	}
	const all = "all"
	for i := range r.Results {
		res := &r.Results[i]
		tally(all, res)
		for _, id := range res.Clauses {
			tally(id, res)
		}
	}
	t := newTable(1, "clause", "right", "wrong", "refuses", "accepts", "crash", "hang", "skip")
	ids := make([]string, 0, len(counts))
	for _, c := range conformance.BuiltinSpec().Clauses {
		ids = append(ids, c.ID)
	}
	for _, id := range append(ids, all) {
		if counts[id] == nil {
			continue
		}
		row := []string{id}
		row = appendCounts(row, counts[id][:]...)
		t.Rows = append(t.Rows, row)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s %s; %d vectors, seed %d\n", cli.Printable(r.Name), cli.Printable(r.Version), r.Vectors, r.Seed)
	return w.err
}
