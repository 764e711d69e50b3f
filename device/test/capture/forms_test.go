package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Functions of forms that real programs have and searches for a prologue have missed, and
// the end of a stack.
func TestForms(t *testing.T) {
	readSources(t)
	cmdtest.Long(t)
	for _, tt := range []struct{ machine, backend, flags, forms string }{
		{"mips", "mips", "-fno-pic -mno-abicalls", "outer large delay_of_b delay_of_jr"},
		{"riscv64", "riscv", "", "outer large after_noreturn overwritten constant_first"},
		{"aarch64", "aarch64", "", "outer large"},
	} {
		t.Run(tt.machine, func(t *testing.T) {
			m := machineOf(tt.machine)
			cmdtest.Need(t, m.gcc[0], m.qemu)
			exe := filepath.Join(t.TempDir(), "forms")
			args := f("-O2 -static -I../../include " + tt.flags + " -DBACKEND=lwsbt_capture_" + tt.backend + " program/forms.c ../../src/capture_" + tt.backend + ".c -o " + exe)
			if out, err := exec.Command(m.gcc[0], append(m.gcc[1:], args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := ""
			for _, form := range f(tt.forms) {
				want += form + " found\n"
			}
			want += "main found\nend of the stack found\n"
			out, err := exec.Command(m.qemu, exe).CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("%v, got\n%swant\n%s", err, out, strings.TrimSpace(want))
			}
		})
	}
}

// readSources reads the C sources, so that go test does not take its cached result for that of
// changed ones.
func readSources(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"../../include/*.h", "../../include/lwsbt/*.h", "../../src/*", "program/*", "real/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}
