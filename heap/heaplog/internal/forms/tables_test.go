package forms

import "testing"

// Expressions are compiled when they are first used: here all of them are.
func TestExpressionsCompile(t *testing.T) {
	for i, e := range lineExprs {
		if e().NumSubexp() == 0 {
			t.Errorf("row %d of lines.tsv has no group: %s", i+1, e())
		}
	}
	for _, f := range traceForms {
		if f.expr().String() == "" {
			t.Errorf("a row of traces.tsv for %s has no expression", f.system)
		}
	}
	for name, f := range stackFrames {
		if f.expr().SubexpIndex("address") < 0 {
			t.Errorf("a frame of %s has no address", name)
		}
	}
}
