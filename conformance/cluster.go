package conformance

import (
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/naive"
)

// Cluster is failures that one clause explains: nearly every vector that needs the
// clause fails.
type Cluster struct {
	Clause string `json:"clause"`
	Failed int    `json:"failed"` // failures not in a cluster before
	Asked  int    `json:"asked"`  // results that need the clause
}

// basic are the clauses that a blob's fields need beside those that a vector
// names, the most basic first.
var basic = []string{"BT-FIELD-1", "BT-DEPTH-1", "BT-SIZE-1", "BT-LIT-1", "BT-DELTA-1", "BT-DELTA-2", "BT-DELTA-3",
	"BT-COUNT-2", "BT-DEPTH-2", "BT-USER-1", "BT-B64-2"}

// needs returns the clauses that an implementation has to follow to answer the
// vector rightly: those that it names, and those of the fields of its blob.
func (v *Vector) needs(op Op) []string {
	needed := slices.Clone(v.Clauses)
	add := func(clause string) {
		if !slices.Contains(needed, clause) {
			needed = append(needed, clause)
		}
	}
	if v.Rejects() || op == OpBline || op == OpFormat || op == OpEncode && v.Blob == nil {
		return needed
	}
	blob := v.Blob
	if op == OpMline {
		add("BT-B64-2")
		blob, _ = naive.ParseLine(*v.Text, v.Lenient)
	}
	s, rejected := naive.Decode(blob, 64)
	if rejected != nil {
		return needed
	}
	if len(s.PCs) == 32 {
		add("BT-DEPTH-2")
	}
	for _, f := range s.Fields {
		switch {
		case f.Name == "depth":
			add("BT-FIELD-1")
			add("BT-DEPTH-1")
		case f.Name == "literal":
			add("BT-LIT-1")
		case f.Name == "delta":
			add("BT-DELTA-1")
		case f.Name == "back" && f.Value > 0:
			add("BT-DELTA-2")
		case f.Name == "sign" && f.Value == 1:
			add("BT-DELTA-3")
		case f.Name == "count" && f.Value == 0:
			add("BT-COUNT-2")
		case f.Name == "size":
			add("BT-SIZE-1")
		case f.Name == "user" && f.Width >= 8:
			add("BT-USER-1")
		}
	}
	return needed
}

// clusters explains failures by as few clauses as can be, at most three. Reading
// and writing are judged apart, as a testee may do one of them rightly. Crashes and
// hangs are left out: they say nothing about a clause.
func clusters(results []Result) []Cluster {
	type use struct {
		clause  string
		encodes bool
	}
	needed := make([][]string, len(results))
	asked, failed := map[use]int{}, map[use]int{}
	open := map[int]bool{} // failures that no cluster explains
	for i := range results {
		r := &results[i]
		if r.Status == Skipped || r.Status == Unasked || r.Status == Fail && r.Failure.Answer.Trouble() {
			continue
		}
		needed[i] = r.Vector.needs(r.Op)
		for _, c := range needed[i] {
			asked[use{c, r.Op.encodes()}]++
			if r.Status == Fail {
				failed[use{c, r.Op.encodes()}]++
			}
		}
		if r.Status == Fail {
			open[i] = true
		}
	}
	fails := func(i int, clause string) bool { // nearly everything that needs it as result i does
		u := use{clause, results[i].Op.encodes()}
		return 10*failed[u] >= 9*asked[u]
	}
	var found []Cluster
	for len(found) < 3 {
		explains := map[string]int{}
		for i := range open {
			for _, c := range needed[i] {
				if fails(i, c) {
					explains[c]++
				}
			}
		}
		best := ""
		for c, n := range explains {
			if n < 2 {
				continue
			}
			if best == "" || n > explains[best] || n == explains[best] && moreBasic(c, best) {
				best = c
			}
		}
		if best == "" {
			break
		}
		found = append(found, Cluster{best, explains[best], asked[use{best, false}] + asked[use{best, true}]})
		for i := range open {
			if slices.Contains(needed[i], best) && fails(i, best) {
				delete(open, i)
			}
		}
	}
	return found
}

func moreBasic(a, b string) bool {
	rank := func(c string) int {
		if i := slices.Index(basic, c); i >= 0 {
			return i
		}
		return len(basic)
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra < rb
	}
	return strings.Compare(a, b) < 0
}
