package conformance

import (
	"context"
	"fmt"
	"slices"
)

// Coverage holds the numbers of vectors of the clauses of SPEC.md.
type Coverage struct {
	Clauses []ClauseCoverage
	Faults  []string // descriptions of missing vectors and other faults, one line each
}

// ClauseCoverage counts the vectors of a clause.
type ClauseCoverage struct {
	Clause
	VectorCounts
	Requirements []MustCoverage // each MUST of the clause
}

// MustCoverage counts the vectors of one MUST. A vector that names a clause without a number
// tests the MUST of the clause if it has only one, else none.
type MustCoverage struct {
	Must
	VectorCounts
}

// VectorCounts holds numbers of vectors.
type VectorCounts struct {
	Accepts, Rejects int // vectors that must be accepted, including encodings, and rejected
	Examples         int // number of these that are examples in SPEC.md
}

func (n *VectorCounts) add(v *Vector, example bool) {
	if v.Rejects() {
		n.Rejects++
	} else {
		n.Accepts++
	}
	if example {
		n.Examples++
	}
}

// Cover counts the vectors and examples of each clause of the specification, and lists
// requirements without vectors and other faults. It runs the examples on the codec.
func Cover(spec *Spec, set *Set) (*Coverage, error) {
	c := &Coverage{}
	fault := func(format string, args ...any) { c.Faults = append(c.Faults, fmt.Sprintf(format, args...)) }
	index := map[string]int{}
	for i, clause := range spec.Clauses {
		index[clause.ID] = i
		cover := ClauseCoverage{Clause: clause}
		musts, err := clause.Musts()
		if err != nil {
			return nil, err
		}
		for _, m := range musts {
			cover.Requirements = append(cover.Requirements, MustCoverage{Must: m})
		}
		c.Clauses = append(c.Clauses, cover)
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
			c.Clauses[i].add(v, example)
			c.Clauses[i].count(v, example, fault)
		}
	}
	for _, v := range set.Vectors {
		if v.File != SpecFile {
			count(v, false)
		}
	}
	for _, v := range spec.Examples {
		count(v, true)
	}
	for _, clause := range c.Clauses {
		for _, m := range clause.Requirements {
			if m.NeedsVectors() && m.Accepts+m.Rejects == 0 {
				fault("%s:%d: %s has no vector: %s", SpecFile, clause.Row, m.ID, clip(m.Text))
			}
		}
	}
	for _, reason := range reasons() {
		if !rejected[reason] {
			fault("no vector is to be rejected for %s", reason)
		}
	}
	return c, c.execute(spec.Examples, fault)
}

// count adds a vector of the clause to the requirements that it tests.
func (c *ClauseCoverage) count(v *Vector, example bool, fault func(string, ...any)) {
	for i := range c.Requirements {
		m := &c.Requirements[i]
		if m.ID == c.ID || slices.Contains(v.Musts, m.ID) {
			m.add(v, example)
		}
	}
	for _, id := range v.Musts {
		known := slices.ContainsFunc(c.Requirements, func(m MustCoverage) bool { return m.ID == id })
		if clauseOf(id) == c.ID && !known {
			fault("%s: %s names %s, which SPEC.md lacks", v.Place(), v.ID, id)
		}
	}
}

// execute runs the examples; an example that does not pass is a fault.
func (c *Coverage) execute(examples []*Vector, fault func(string, ...any)) error {
	if len(examples) == 0 {
		fault("%s has no examples to execute", SpecFile)
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
