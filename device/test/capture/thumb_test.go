package capture

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A constant before a function may look like a push of arguments, or like place made for
// them: it is no part of the function, if something loads it.
func TestConstantsBeforeFunctions(t *testing.T) {
	cmdtest.Long(t)
	for _, m := range []struct{ cpu, kinds, within, ends string }{
		{"cortex-m0", "ldr far both", "data offset", "moves address bl blx"},
		{"cortex-m3", "ldr far both ldr.w ldrd ldrd2 adr vldr", "data offset mla mla2 tbb tbh words aligned", "moves address bl blx b.w ldr.w ldmia.w"},
	} {
		t.Run(m.cpu, func(t *testing.T) {
			cmdtest.Need(t, "arm-none-eabi-gcc", "qemu-arm")
			exe := filepath.Join(t.TempDir(), "constants")
			args := f("-Os -mthumb -static -ffreestanding -nostdlib -nostartfiles -I../../include -mcpu=" + m.cpu +
				" -Wl,-Ttext=0x10000,--defsym=__executable_start=0x10000" + // known to some cases
				" program/constants.c program/sys.c ../../src/capture_thumb.c -lgcc -o " + exe)
			if out, err := exec.Command("arm-none-eabi-gcc", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var want []string
			for _, value := range f("0xb408 0xb40c 0xb40e 0xb40f 0xb081 0xb082 0xb083 0xb084") {
				for _, kind := range f(m.kinds) {
					want = append(want, kind+" "+value)
				}
			}
			want = append(want, "within 0x1b510")
			for _, kind := range f(m.within) {
				want = append(want, "within "+kind)
			}
			for _, end := range f(m.ends) {
				want = append(want, "after "+end)
			}
			for _, kind := range f("push1 push2 push3 push4 sub1 sub2 sub3 sub4 push4-ldr push4-table") {
				want = append(want, "real "+kind)
			}
			want = append(want, "table 0xb5")
			out, err := exec.Command("qemu-arm", exe).CombinedOutput()
			if err != nil {
				t.Errorf("%v", err)
			}
			if got := strings.TrimSpace(string(out)); got != strings.Join(want, "\n") {
				t.Errorf("walked right:\n%s\nwant all:\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}

// A call before an Arm function is no part of it.
func TestEndsInCall(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "arm-linux-gnueabihf-gcc", "qemu-arm")
	exe := filepath.Join(t.TempDir(), "ends")
	args := f("-Os -marm -static -I../../include program/ends.c ../../src/capture_arm.c -o " + exe)
	if out, err := exec.Command("arm-linux-gnueabihf-gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("qemu-arm", exe).CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v, got %q, want %q", err, out, "ok\n")
	}
}

// A caller in the other state of the processor is the last frame.
func TestOtherState(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "arm-linux-gnueabihf-gcc", "qemu-arm")
	for _, backend := range []string{"arm", "thumb"} {
		for _, options := range []string{"", "-DLWSBT_TINY"} {
			t.Run(backend+" "+options, func(t *testing.T) {
				exe := filepath.Join(t.TempDir(), "modes")
				args := f("-m" + backend + " " + options + " -Os -static -I../../include -DBACKEND=lwsbt_capture_" + backend + " program/states.c ../../src/capture_" + backend + ".c -o " + exe)
				if out, err := exec.Command("arm-linux-gnueabihf-gcc", args...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				const want = "3 ok\n3 ok\n"
				if out, err := exec.Command("qemu-arm", exe).CombinedOutput(); err != nil || string(out) != want {
					t.Errorf("%v, got %q, want %q", err, out, want)
				}
			})
		}
	}
}
