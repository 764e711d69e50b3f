package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance/btv"
)

// coverage counts the vectors of each clause of SPEC.md.
type coverage struct {
	clauses []clauseCoverage
	faults  []string
}

// clauseCoverage counts the vectors of a clause.
type clauseCoverage struct {
	Clause
	vectorCounts
	musts []mustCoverage
}

// mustCoverage counts the vectors of one MUST. A vector that names a clause without a number
// shows the only MUST of the clause, and none of several.
type mustCoverage struct {
	Must
	vectorCounts
}

// vectorCounts are numbers of vectors.
type vectorCounts struct {
	accepts, rejects int // vectors to be accepted, encodings among them, and to be rejected
	examples         int // how many of these are in SPEC.md
}

// TestCoverage fails if a MUST has no vector. With -v, it prints the vectors of each MUST.
func TestCoverage(t *testing.T) {
	c, err := cover(BuiltinSpec(), builtinSet(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range c.faults {
		t.Error(fault)
	}
	t.Log("\n" + c.table())
}

// table returns the numbers of vectors by clause and MUST.
func (c *coverage) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "clause\taccept\treject\tin SPEC.md")
	must, shown := 0, 0
	for _, clause := range c.clauses {
		n := clause.vectorCounts
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", clause.ID, n.accepts, n.rejects, n.examples)
		for _, m := range clause.musts {
			note := ""
			if !m.vector {
				note = "\tnot by vector"
			} else if must++; m.accepts+m.rejects > 0 {
				shown++
			}
			fmt.Fprintf(w, "  MUST %s\t%d\t%d\t%d%s\n", m.ID, m.accepts, m.rejects, m.examples, note)
		}
	}
	w.Flush()
	return b.String() + fmt.Sprintf("%d of %d requirements (MUST) have vectors\n", shown, must)
}

func (n *vectorCounts) add(v *Vector, example bool) {
	if v.Rejects() {
		n.rejects++
	} else {
		n.accepts++
	}
	if example {
		n.examples++
	}
}

// cover counts the vectors and the examples of each clause of the specification, and
// lists what is missing. It executes the examples on the codec.
func cover(spec *Spec, set *Set) (*coverage, error) {
	c := &coverage{}
	fault := func(format string, args ...any) { c.faults = append(c.faults, fmt.Sprintf(format, args...)) }
	index := map[string]int{}
	for i, clause := range spec.Clauses {
		index[clause.ID] = i
		cc := clauseCoverage{Clause: clause}
		musts, err := clause.Musts()
		if err != nil {
			return nil, err
		}
		for _, m := range musts {
			cc.musts = append(cc.musts, mustCoverage{Must: m})
		}
		c.clauses = append(c.clauses, cc)
	}
	rejected := map[string]bool{}
	count := func(v *Vector, example bool) {
		if len(v.Clauses) == 0 {
			fault("%s: %s names no clause", v.Place(), v.ID)
		}
		for _, id := range v.Clauses {
			i, ok := index[id]
			if !ok {
				fault("%s: %s names clause %s, which SPEC.md lacks", v.Place(), v.ID, id)
				continue
			}
			if v.Rejects() {
				rejected[v.Want.Reason] = true
			}
			c.clauses[i].add(v, example)
			c.clauses[i].count(v, example, fault)
		}
	}
	for _, v := range set.Vectors {
		if strings.HasPrefix(v.File, builtinDir) {
			count(v, false)
		}
	}
	for _, v := range spec.Examples {
		count(v, true)
	}
	for _, clause := range c.clauses {
		for _, m := range clause.musts {
			if m.vector && m.accepts+m.rejects == 0 {
				fault("%s:%d: %s has no vector: %s", clause.File, clause.Row, m.ID, clip(m.Text))
			}
		}
	}
	for _, reason := range codec.Reasons() {
		if !rejected[string(reason)] {
			fault("no vector is to be rejected for %s", reason)
		}
	}
	return c, c.execute(spec.Examples, fault)
}

// count adds a vector of the clause to the requirements that it shows.
func (c *clauseCoverage) count(v *Vector, example bool, fault func(string, ...any)) {
	for i := range c.musts {
		m := &c.musts[i]
		if m.ID == c.ID || slices.Contains(v.Musts, m.ID) {
			m.add(v, example)
		}
	}
	for _, id := range v.Musts {
		known := slices.ContainsFunc(c.musts, func(m mustCoverage) bool { return m.ID == id })
		if btv.ClauseOf(id) == c.ID && !known {
			fault("%s: %s names %s, which SPEC.md lacks", v.Place(), v.ID, id)
		}
	}
}

// execute runs the examples. An example without an answer, or with a wrong one, is a fault.
func (c *coverage) execute(examples []*Vector, fault func(string, ...any)) error {
	if len(examples) == 0 {
		fault("SPEC.md has no examples to execute")
		return nil
	}
	set := &Set{}
	if err := set.Add(examples...); err != nil {
		return err
	}
	report, err := Run(context.Background(), set, Codec, Options{})
	if err != nil {
		return err
	}
	for _, r := range report.Results {
		if r.Status != Pass {
			fault("%s:%d: example %s %s does not pass: %s", r.File, r.Row, r.ID, r.Op, r.Status)
		}
	}
	return nil
}

// needsVectors reports whether the clause has a MUST that vectors can show.
func needsVectors(c *Clause) bool {
	musts, _ := c.Musts()
	return slices.ContainsFunc(musts, func(m Must) bool { return m.vector })
}
