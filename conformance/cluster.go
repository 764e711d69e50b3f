package conformance

import (
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Cluster is a group of failures that one clause explains, because nearly every vector that
// needs the clause fails.
type Cluster struct {
	Clause string `json:"clause"`
	Failed int    `json:"failed"` // failures that no earlier cluster explains
	Asked  int    `json:"asked"`  // results that need the clause
}

// basic lists the clauses that the fields of a blob need, in addition to the clauses that a
// vector names; the most basic first.
var basic = []string{"BT-FIELD-1", "BT-DEPTH-1", "BT-SIZE-1", "BT-LIT-1", "BT-DELTA-1", "BT-DELTA-2", "BT-DELTA-3",
	"BT-COUNT-2", "BT-DEPTH-2", "BT-USER-1", "BT-B64-2"}

// needs returns the clauses that an implementation must follow to answer the vector
// correctly: the clauses that the vector names, and the clauses of the fields of its blob.
func (v *Vector) needs(op Op) []string {
	needed := slices.Clone(v.Clauses)
	add := func(clause string) {
		if !slices.Contains(needed, clause) {
			needed = append(needed, clause)
		}
	}
	o := op.row()
	if v.Rejects() || o.blob == nil {
		return needed
	}
	for _, clause := range o.needs {
		add(clause)
	}
	blob, _ := o.blob(v)
	fields, err := codec.Decoder{}.AppendFields(nil, blob)
	if err != nil {
		return needed
	}
	for _, f := range fields {
		if f.Frame == codec.MaxDepth-1 {
			add("BT-DEPTH-2")
		}
		switch {
		case f.Kind == codec.FieldDepth:
			add("BT-FIELD-1")
			add("BT-DEPTH-1")
		case f.Kind == codec.FieldLiteral:
			add("BT-LIT-1")
		case f.Kind == codec.FieldDelta:
			add("BT-DELTA-1")
		case f.Kind == codec.FieldBack && f.Value > 0:
			add("BT-DELTA-2")
		case f.Kind == codec.FieldSign && f.Value == 1:
			add("BT-DELTA-3")
		case (f.Kind == codec.FieldCount || f.Kind == codec.FieldSizeCount) && f.Value == 0:
			add("BT-COUNT-2")
		case f.Kind == codec.FieldSize:
			add("BT-SIZE-1")
		case f.Kind == codec.FieldUser && f.Width >= 8:
			add("BT-USER-1")
		}
	}
	return needed
}

// use is a clause that results need, for decoding or for encoding. An implementation may
// follow the clause in only one of the two.
type use struct {
	clause  string
	encodes bool
}

// failures holds the results of a run by the clauses that they need.
type failures struct {
	needed [][]use      // of each result; empty if the result is no evidence about any clause
	asked  map[use]int  // number of results that need the clause
	failed map[use]int  // number of these that failed
	open   map[int]bool // failed results that no cluster explains
}

// gather counts results by the clauses that they need. Crashes and hangs are no evidence about
// a clause.
func gather(results []Result) *failures {
	f := &failures{needed: make([][]use, len(results)), asked: map[use]int{}, failed: map[use]int{}, open: map[int]bool{}}
	for i := range results {
		r := &results[i]
		if r.Status == Skipped || r.Status == Unasked || r.Status == Fail && r.Failure.Answer.Trouble() {
			continue
		}
		for _, clause := range r.Vector.needs(r.Op) {
			u := use{clause, r.Op.encodes()}
			f.needed[i] = append(f.needed[i], u)
			f.asked[u]++
			if r.Status == Fail {
				f.failed[u]++
			}
		}
		if r.Status == Fail {
			f.open[i] = true
		}
	}
	return f
}

// explains reports whether at least 90 % of the results that need the clause failed.
func (f *failures) explains(u use) bool { return 10*f.failed[u] >= 9*f.asked[u] }

// best returns the clause that explains the most open failures, if they are at least two, else "".
func (f *failures) best() (clause string, explained int) {
	counts := map[string]int{}
	for i := range f.open {
		for _, u := range f.needed[i] {
			if f.explains(u) {
				counts[u.clause]++
			}
		}
	}
	for c, n := range counts {
		if n >= 2 && (clause == "" || n > explained || n == explained && moreBasic(c, clause)) {
			clause, explained = c, n
		}
	}
	return clause, explained
}

// close removes the open failures that the clause explains.
func (f *failures) close(clause string) {
	for i := range f.open {
		if slices.ContainsFunc(f.needed[i], func(u use) bool { return u.clause == clause && f.explains(u) }) {
			delete(f.open, i)
		}
	}
}

// clusters explains failures by as few clauses as possible, at most three.
func clusters(results []Result) []Cluster {
	if !slices.ContainsFunc(results, func(r Result) bool { return r.Status == Fail }) {
		return nil
	}
	f := gather(results)
	var found []Cluster
	for len(found) < 3 {
		clause, explained := f.best()
		if clause == "" {
			break
		}
		found = append(found, Cluster{clause, explained, f.asked[use{clause, false}] + f.asked[use{clause, true}]})
		f.close(clause)
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
