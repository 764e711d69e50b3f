//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Other machines and C libraries: the same random programs, under qemu-user.
func TestMachines(t *testing.T) {
	for _, m := range []struct {
		name, cc, run string
		flags         []string
		word          int
	}{
		{"x86-64-clang", "clang", "", nil, 64},
		{"x86-64-musl", "musl-gcc", "", []string{"-Wl,--eh-frame-hdr"}, 64},
		{"i686", "i686-linux-gnu-gcc", "/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib", nil, 32},
		{"i686-qemu", "i686-linux-gnu-gcc", "qemu-i386 -L /usr/i686-linux-gnu", nil, 32},
		{"aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu", nil, 64},
		{"riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64 -L /usr/riscv64-linux-gnu", []string{"-fasynchronous-unwind-tables"}, 64},
		{"riscv64-without-tables", "riscv64-linux-gnu-gcc", "qemu-riscv64 -L /usr/riscv64-linux-gnu", nil, 64},
		{"arm", "arm-linux-gnueabihf-gcc", "qemu-arm -L /usr/arm-linux-gnueabihf", []string{"-funwind-tables"}, 32},
		{"mips", "mips-linux-gnu-gcc", "qemu-mips -L /usr/mips-linux-gnu", nil, 32},
		{"mipsel", "mipsel-linux-gnu-gcc", "qemu-mipsel -L /usr/mipsel-linux-gnu", nil, 32},
		{"ppc", "powerpc-linux-gnu-gcc", "qemu-ppc -L /usr/powerpc-linux-gnu", nil, 32},
		{"s390x", "s390x-linux-gnu-gcc", "qemu-s390x -L /usr/s390x-linux-gnu", nil, 64},
	} {
		t.Run(m.name, func(t *testing.T) {
			if !full() {
				t.Skip("LWSBT_FULL=1 runs it")
			}
			emulator := strings.Fields(m.run)
			if m.run != "" {
				cmdtest.Need(t, emulator[0])
				if _, err := os.Stat(emulator[2]); err != nil {
					t.Skipf("%s is not installed", emulator[2])
				}
			}
			library := buildLibrary(t, m.cc)
			program := compile(t, m.cc, "ops.c", append(m.flags, "-O1", "-pthread")...)
			fns := readFunctions(t, program)
			runs := 1
			if full() {
				runs = 6
			}
			for i := range runs {
				// qemu-i386 7.2 stops at the first thread, without us as well.
				// Some C libraries have no unwind tables, so what allocates within them
				// (strdup) ends there.
				script, last := randomScript(rand.New(rand.NewPCG(uint64(i), 14)), m.name != "i686-qemu")
				switch m.name {
				case "x86-64-musl", "arm", "mips", "mipsel":
					script = strings.ReplaceAll(strings.ReplaceAll(script, "d ", "m "), "D ", "M ")
				}
				path := filepath.Join(t.TempDir(), "rec")
				env := []string{"LWSBT_OUT=" + path, "LWSBT_CHECK=1", "LD_PRELOAD=" + library}
				if i%2 == 0 {
					env = append(env, "LWSBT_EVENTS=1")
				}
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				var c *exec.Cmd
				if !strings.HasPrefix(m.run, "qemu") {
					c = exec.CommandContext(ctx, slices.Concat(emulator, []string{program})[0], slices.Concat(emulator, []string{program})[1:]...)
					c.Env = append(os.Environ(), env...)
				} else {
					var args []string
					for _, e := range env {
						args = append(args, "-E", e)
					}
					c = exec.CommandContext(ctx, emulator[0], append(append(emulator[1:], args...), program)...)
				}
				var out, errs bytes.Buffer
				c.Stdin, c.Stdout, c.Stderr = strings.NewReader(script), &out, &errs
				if err := c.Run(); err != nil {
					t.Fatalf("%v\n%s", err, errs.String())
				}
				r := readRecording(t, path)
				if w, _ := r.boots[0].Get("w"); w != fmt.Sprint(m.word) {
					t.Errorf("w=%s", w)
				}
				checkOps(t, r, out.String(), last, program, fns)
				if strings.Contains(errs.String(), "differs") {
					t.Error(errs.String())
				}
				if t.Failed() {
					t.Fatalf("script %d:\n%s%s", i, script, errs.String())
				}
			}
		})
	}
}
