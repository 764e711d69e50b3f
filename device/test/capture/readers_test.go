package capture

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// What the readers of the article report is walked, or ends the walk, as they would
// have wanted it.
func TestReadersReports(t *testing.T) {
	cmdtest.Long(t)
	for _, m := range []struct{ gcc, qemu string }{{"mips-linux-gnu-gcc", "qemu-mips"}, {"mipsel-linux-gnu-gcc", "qemu-mipsel"}} {
		t.Run(m.qemu, func(t *testing.T) {
			cmdtest.Need(t, m.gcc, m.qemu)
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

// A caller in another mode is recorded, and ends the walk. Not microMIPS, for lack
// of an emulated processor that has it and floating point, as the C library wants.
func TestOtherModes(t *testing.T) {
	cmdtest.Long(t)
	for _, mode := range []string{"mips16"} {
		for _, level := range []string{"-O0", "-O2"} {
			t.Run(mode+level, func(t *testing.T) {
				cmdtest.Need(t, "mips-linux-gnu-gcc", "qemu-mips")
				exe := filepath.Join(t.TempDir(), "modes")
				args := strings.Fields(level + " -static -fno-pic -mno-abicalls -mips32r2 -I../../include program/modes.c ../../src/capture_mips.c -o " + exe + " -DOTHER=" + mode)
				if out, err := exec.Command("mips-linux-gnu-gcc", args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				out, err := exec.Command("qemu-mips", exe).CombinedOutput()
				if want := "3 frames, the last in other, of an odd function: 1\n"; err != nil || string(out) != want {
					t.Errorf("%v, got %q, want %q", err, out, want)
				}
			})
		}
	}
}
