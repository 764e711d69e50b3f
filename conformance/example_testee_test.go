package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// compiler returns the C compiler to build testees with. It skips the test if there is none.
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

// buildTestee builds the example testee in C, and fails on warnings.
func buildTestee(t *testing.T, compiler string, flags ...string) string {
	t.Helper()
	sources, err := filepath.Glob("example/testee*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the example: %v", err)
	}
	program := filepath.Join(t.TempDir(), "testee")
	args := append([]string{"-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-o", program}, flags...)
	args = append(append(args, sources...), "-lm")
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// passesAll checks that a testee passes every vector, with the right reasons, and skips none.
func passesAll(t *testing.T, command ...string) {
	t.Helper()
	report, err := Run(t.Context(), builtinSet(t), Process(command, time.Minute), Options{Seed: 5, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[Op]int{}
	for _, r := range report.Results {
		asked[r.Op]++
		if r.Status != Pass && !pending(r.ID) {
			t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, r.Failure)
		}
	}
	for _, op := range Ops() {
		if asked[op] == 0 {
			t.Errorf("%s was not asked", op)
		}
	}
}

// The example of README.md builds without a warning, and passes all vectors.
func TestExampleTestee(t *testing.T) {
	passesAll(t, buildTestee(t, compiler(t), "-O2"))
}

// The example also passes with sanitizers, on 32-bit machines, and on big-endian machines.
func TestExampleTesteeOnMachines(t *testing.T) {
	cmdtest.Long(t)
	for _, m := range []struct {
		name, compiler, qemu string
		flags                []string
	}{
		{"sanitizers", "gcc", "", []string{"-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"}},
		{"clang", "clang", "", []string{"-O2"}},
		{"i686", "i686-linux-gnu-gcc", "qemu-i386", []string{"-O2", "-static"}},
		{"s390x", "s390x-linux-gnu-gcc", "qemu-s390x", []string{"-O2", "-static"}},
		{"mips", "mips-linux-gnu-gcc", "qemu-mips", []string{"-O2", "-static"}},
	} {
		t.Run(m.name, func(t *testing.T) {
			cmdtest.Need(t, m.compiler)
			program := []string{buildTestee(t, m.compiler, m.flags...)}
			if m.qemu != "" {
				cmdtest.Need(t, m.qemu)
				program = append([]string{m.qemu}, program...)
			}
			passesAll(t, program...)
		})
	}
}
