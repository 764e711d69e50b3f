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

// buildTestee builds the minimal testee in C, and fails on warnings.
func buildTestee(t *testing.T, compiler string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "testee")
	args := append([]string{"-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-o", program}, flags...)
	if out, err := exec.Command(compiler, append(args, "example/testee.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// decodesAll checks that a testee decodes every blob, with the right reasons, and offers nothing else.
func decodesAll(t *testing.T, command ...string) {
	t.Helper()
	report, err := Run(t.Context(), builtinSet(t), Process(command, time.Minute), Options{Seed: 5, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	decoded := 0
	for _, r := range report.Results {
		switch {
		case r.Op == opDecode && r.Status == Pass:
			decoded++
		case r.Op == opDecode || r.Status != Skipped:
			t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, r.Failure)
		}
	}
	if decoded < 200 {
		t.Errorf("%d vectors decoded, want at least 200", decoded)
	}
}

// The minimal testee of README.md builds without a warning, and decodes all blobs.
func TestExampleTestee(t *testing.T) {
	decodesAll(t, buildTestee(t, compiler(t), "-O2"))
}

// It does so with sanitizers, on a 32-bit machine, and on a big-endian machine, too.
func TestExampleTesteeOnMachines(t *testing.T) {
	cmdtest.Long(t)
	for _, m := range []struct {
		name, compiler, qemu string
		flags                []string
	}{
		{"sanitizers", "gcc", "", []string{"-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"}},
		{"i686", "i686-linux-gnu-gcc", "qemu-i386", []string{"-O2", "-static"}},
		{"s390x", "s390x-linux-gnu-gcc", "qemu-s390x", []string{"-O2", "-static"}},
	} {
		t.Run(m.name, func(t *testing.T) {
			cmdtest.Need(t, m.compiler)
			program := []string{buildTestee(t, m.compiler, m.flags...)}
			if m.qemu != "" {
				cmdtest.Need(t, m.qemu)
				program = append([]string{m.qemu}, program...)
			}
			decodesAll(t, program...)
		})
	}
}
