package fuzz

import (
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
)

// The form of nearly every request of the vectors gives the same request again.
func TestFormsGiveTheSame(t *testing.T) {
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	n, other := 0, 0
	for _, v := range set.Vectors {
		for _, op := range v.Ops {
			r := v.Request(op, conformance.Hello{})
			n++
			if !isText(op) && !isBlob(op) && !legal(&r) {
				t.Errorf("%s: %s is not allowed", v.ID, r.Describe())
				continue
			}
			text := form(&r)
			again, ok := withForm(r, text)
			if !ok || again.Line("1") != r.Line("1") {
				other++
				t.Logf("%s: %.200s\n%.200s", v.ID, text, r.Line("1"))
			}
		}
	}
	if n < 3000 || other > 10 {
		t.Errorf("%d of %d requests have no form of their own", other, n)
	}
}
