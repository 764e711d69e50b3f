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

// The example of README.md builds without a warning, and passes all vectors,
// for the right reasons. Nothing is skipped.
func TestExampleTestee(t *testing.T) {
	sources, err := filepath.Glob("example/testee*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the example: %v", err)
	}
	program := filepath.Join(t.TempDir(), "testee")
	args := append([]string{"-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-o", program}, sources...)
	out, err := exec.Command(compiler(t), append(args, "-lm")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set := builtinSet(t)
	report, err := Run(t.Context(), set, Process([]string{program}, time.Minute), Options{Seed: 5, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[Op]int{}
	for i, r := range report.Results {
		asked[r.Op]++
		if r.Status != Pass {
			t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, report.Results[i].Failure)
		}
	}
	if asked[OpDecode] < 200 || asked[OpPline] < 200 || asked[OpDumps] == 0 || asked[OpVencode] == 0 {
		t.Errorf("too few vectors were asked: %v", asked)
	}
}
