package fuzz

import (
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/naive"
)

var clauseID = regexp.MustCompile(`BT-[A-Z0-9]+-[0-9]+`)

// name names the clause that decides a finding: that of the codec's rejection; else that whose vectors
// fail with the mutants that give the same wrong answer, unless it is late; else that of the field that differs.
func (x *Finding) name(late bool) {
	if x.Want.Outcome == conformance.Reject {
		if list := clauseID.FindAllString(x.Want.Text, -1); len(list) > 0 {
			x.Clause, x.Certain = list[len(list)-1], true
			return
		}
	}
	if !late && !x.Got.Trouble() {
		if x.Clause = x.clauseOfMutants(); x.Clause != "" {
			x.Certain = true
			return
		}
	}
	if x.Clause, _ = conformance.ClauseOf(x.Request.Op, x.Field); x.Clause == "" {
		x.Clause = "BT-REJ-1"
	}
}

// manyMutants is how many mutants with the same wrong answer are examined, mutantTime the time for that.
const (
	manyMutants = 8
	mutantTime  = 4 * time.Second
)

// clauseOfMutants returns the requirement whose vectors are most nearly those that fail with the mutants
// that answer as the testee does (Ochiai's measure); "" if no mutant does.
func (x *Finding) clauseOfMutants() string {
	set, err := conformance.Builtin()
	if err != nil {
		return ""
	}
	op := x.Request.Op
	same := &conformance.Set{} // the vectors of the operation
	all := map[string]float64{}
	for _, v := range set.Vectors {
		if v.Has(op) {
			one := *v
			one.Ops = []conformance.Op{op}
			same.Vectors = append(same.Vectors, &one)
			for _, c := range requirements(v, op) {
				all[c]++
			}
		}
	}
	score := map[string]float64{}
	matches, begun := 0, time.Now()
	for _, m := range naive.Mutants() {
		t, _ := m.Start(context.Background())
		a := ask(t, &x.Request)
		if matches == manyMutants || time.Since(begun) > mutantTime || a.Trouble() || x.Request.Compare(x.Got, a) != "" || x.Request.Compare(x.Want, a) == "" {
			continue
		}
		report, err := conformance.Run(context.Background(), same, m.Start, conformance.Options{Written: true})
		if err != nil || report.Counts.Fail == 0 {
			continue
		}
		matches++
		failed := map[string]float64{}
		for _, r := range report.Results {
			if r.Status == conformance.Fail {
				for _, c := range requirements(r.Vector, op) {
					failed[c]++
				}
			}
		}
		for c, n := range failed {
			score[c] += n / math.Sqrt(float64(report.Counts.Fail)*all[c])
		}
	}
	best := ""
	for _, c := range slices.Sorted(maps.Keys(score)) {
		if best == "" || score[c] > score[best] {
			best = c
		}
	}
	return best
}

// requirements returns the requirements that a vector tests and that are about the side of op, reader or
// writer, and the clauses of which it names none.
func requirements(v *conformance.Vector, op conformance.Op) (list []string) {
	side := map[bool]string{false: "reader", true: "writer"}[op.Writes()]
	for _, id := range v.Clauses {
		c := conformance.BuiltinSpec().Clause(id)
		if c == nil {
			continue
		}
		musts, _ := c.Musts()
		numbered := false
		for _, m := range musts {
			if slices.Contains(v.Musts, m.ID) {
				numbered = true
				if m.Side == "" || m.Side == side {
					list = append(list, m.ID)
				}
			}
		}
		if !numbered {
			list = append(list, id)
		}
	}
	return list
}
