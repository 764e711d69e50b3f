package conformance

import (
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The example in Python passes the built-in vectors and the vectors recorded from the real
// library, in all operations and with the right reasons.
func TestExampleInPython(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "python3")
	start := Process([]string{"python3", "example/testee.py"}, time.Minute)
	report, err := Run(t.Context(), builtinSet(t), start, Options{Seed: 5, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	ops := map[Op]int{}
	for _, r := range report.Results {
		if r.Status != Pass {
			t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, r.Failure)
		}
		ops[r.Op]++
	}
	for _, op := range Ops() {
		if ops[op] == 0 {
			t.Errorf("%s was not asked", op)
		}
	}
	globs := []string{"x86_64-gcc12-O2/*", "s390x-gcc12-O2/*", "armhf-gcc12-O2/*"}
	if cmdtest.Full() {
		globs = nil
	}
	recorded, err := Load([]string{recordedDir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := recorded.Select(globs...)
	if len(set.Vectors) < 900 {
		t.Fatalf("%d recorded vectors, want at least 900", len(set.Vectors))
	}
	report, err = Run(t.Context(), set, start, Options{Seed: 5, Workers: 2, Written: true, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Status != Pass {
			t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, r.Failure)
		}
	}
}
