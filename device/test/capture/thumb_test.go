package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A constant before a function may look like a push of arguments, or like place made for
// them: it is no part of the function, if something loads it.
func TestConstantsBeforeFunctions(t *testing.T) {
	if os.Getenv("LWSBT_FULL") == "" {
		t.Skip("LWSBT_FULL is not set")
	}
	for _, m := range []struct{ cpu, kinds string }{
		{"cortex-m0", "ldr far both"},
		{"cortex-m3", "ldr far both ldr.w ldrd ldrd2 vldr"},
	} {
		t.Run(m.cpu, func(t *testing.T) {
			cmdtest.Need(t, "arm-none-eabi-gcc", "qemu-arm")
			exe := filepath.Join(t.TempDir(), "constants")
			args := f("-Os -mthumb -static -ffreestanding -nostdlib -nostartfiles -I../../include -mcpu=" + m.cpu +
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
			for _, kind := range f("push1 push2 push3 push4 sub1 sub2 sub3 sub4 push4-ldr push4-table") {
				want = append(want, "real "+kind)
			}
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
