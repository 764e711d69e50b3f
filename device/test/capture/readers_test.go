package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the readers of the article report is walked, or ends the walk, as they would
// have wanted it.
func TestReadersReports(t *testing.T) {
	for _, m := range []struct{ gcc, qemu string }{{"mips-linux-gnu-gcc", "qemu-mips"}, {"mipsel-linux-gnu-gcc", "qemu-mipsel"}} {
		t.Run(m.qemu, func(t *testing.T) {
			for _, tool := range []string{m.gcc, m.qemu} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("%s is not installed", tool)
				}
			}
			exe := filepath.Join(t.TempDir(), "readers")
			if out, err := exec.Command(m.gcc, "-O2", "-static", "-fno-pic", "-mno-abicalls", "-I../../include", "program/readers.c", "../../src/capture_mips.c", "-o", exe).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out, err := exec.Command(m.qemu, exe).CombinedOutput()
			want := strings.Repeat("found\n", 5) + "main reached\n" +
				"misaligned by 1: ended\nmisaligned by 2: ended\nmisaligned by 3: ended\nnot code: ended\n"
			if err != nil || string(out) != want {
				t.Errorf("%v, got\n%swant\n%s", err, out, want)
			}
		})
	}
}
