package unwind

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The rules of code are those of the tables that the compiler wrote for the same code, which
// CallRules does not read.
func TestCallRulesAreThoseOfTables(t *testing.T) {
	files, _ := filepath.Glob("/lib/*-linux-gnu*/lib[cz].so.[16]")
	files = append(files, "/bin/bash")
	compared := 0
	for _, file := range files {
		o, err := Open(file)
		if err != nil || o.eh == nil && o.debug == nil {
			if !os.IsNotExist(err) {
				t.Logf("%s has no tables (%v)", file, err)
			}
			continue
		}
		w := &walker{Unwinder: &Unwinder{Memory: noMemory{}}, arch: o.arch, left: math.MaxInt}
		same, other := 0, 0
		for _, r := range o.CallRules() {
			f := o.eh.find(r.After - 1)
			if f == nil {
				continue
			}
			w.used = 0
			row, ok := f.rulesAt(r.After-1, w)
			if !ok || row.cfa.kind != ruleRegister {
				continue
			}
			if fp := row.regs[o.arch.fp]; ruleFits(o.arch, &r, row) &&
				(fp.kind == ruleSame && !r.FPSaved || fp.kind == ruleOffset && r.FPSaved && fp.off == r.FP) {
				same++
			} else if other++; other < 5 {
				t.Logf("%s: %+v, tables: cfa %+v, fp %+v", file, r, row.cfa, fp)
			}
		}
		t.Logf("%s: %d rules as the tables, %d others", file, same, other)
		if compared += same; other > same/100 {
			t.Errorf("%s: %d of %d rules are not those of the tables", file, other, same+other)
		}
	}
	if compared < 1000 {
		t.Errorf("%d rules compared, expected 1,000", compared)
	}
}

// ruleFits reports whether a rule gives the CFA and the return address of a row. Both may reach
// the CFA by another register.
func ruleFits(a *machine, r *CallRule, row *row) bool {
	ra := row.regs[a.raColumn]
	if a.ra < 0 {
		ra = rule{kind: ruleOffset, off: -int64(a.word)}
	}
	fromFP := row.cfa.reg == a.fp
	return (fromFP != r.FromFP || row.cfa.off == r.CFA) && ra.kind == ruleOffset && ra.off == r.RA
}
