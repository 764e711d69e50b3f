package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// compiler is the C compiler to build testees with; without one the test is
// skipped, saying so.
func compiler(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no C compiler (CC, cc, gcc or clang): the example testee in C is not built")
	return ""
}

// The example of README.md builds without a warning, and passes all there is to
// decode and all ~p# lines, for the right reasons.
func TestExampleTestee(t *testing.T) {
	program := filepath.Join(t.TempDir(), "testee")
	out, err := exec.Command(compiler(t), "-std=c11", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror",
		"-o", program, "example/testee.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set := builtinSet(t)
	report, err := Run(t.Context(), set, Process([]string{program}, time.Minute), Options{Seed: 5, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	decoded, lines, failed := 0, 0, 0
	for i, r := range report.Results {
		switch {
		case r.Op == OpDecode && r.Status == Pass:
			decoded++
		case r.Op == OpPline && r.Status == Pass:
			lines++
		case r.Op == OpDecode, r.Op == OpPline:
			failed++
			t.Errorf("%s: %s (%+v)", r.ID, r.Status, report.Results[i].Failure)
		case r.Status != Skipped:
			t.Errorf("%s %s: %s, want skip", r.ID, r.Op, r.Status)
		}
	}
	if decoded < 200 || lines < 200 {
		t.Errorf("%d blobs and %d lines of call paths read, want at least 200 of each", decoded, lines)
	}
}
