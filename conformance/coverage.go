package conformance

import (
	"context"
	"fmt"
)

// Coverage says which clauses of SPEC.md have vectors.
type Coverage struct {
	Clauses []ClauseCoverage
	Faults  []string // what is missing, a line each
}

// ClauseCoverage counts the vectors of a clause.
type ClauseCoverage struct {
	Clause
	Accepts, Rejects int // vectors to be accepted, encodings among them, and to be rejected
	Examples         int // how many of these stand in SPEC.md
}

// Cover counts the vectors and the examples of each clause of the specification, and
// lists what is missing. It executes the examples on the codec.
func Cover(spec *Spec, set *Set) (*Coverage, error) {
	c := &Coverage{}
	fault := func(format string, args ...any) { c.Faults = append(c.Faults, fmt.Sprintf(format, args...)) }
	index := map[string]int{}
	for i, clause := range spec.Clauses {
		index[clause.ID] = i
		c.Clauses = append(c.Clauses, ClauseCoverage{Clause: clause})
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
				c.Clauses[i].Rejects++
				rejected[v.Want.Reason] = true
			} else {
				c.Clauses[i].Accepts++
			}
			if example {
				c.Clauses[i].Examples++
			}
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
		if clause.NeedsVectors() && clause.Accepts+clause.Rejects == 0 {
			fault("%s:%d: %s has a MUST and no vector", SpecFile, clause.Row, clause.ID)
		}
	}
	for _, reason := range reasons() {
		if !rejected[reason] {
			fault("no vector is to be rejected for %s", reason)
		}
	}
	return c, c.execute(spec.Examples, fault)
}

// execute runs the examples; those that were not answered or wrongly are faults.
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
