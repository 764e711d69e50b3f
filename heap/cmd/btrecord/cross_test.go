//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestOtherMachines runs a static btrecord of small targets on their programs, both under
// an emulator. RISC-V and Arm only if LWSBT_FULL is all: each btrecord takes long to build. .ci/run compiles for MIPS anyway.
func TestOtherMachines(t *testing.T) {
	cmdtest.Long(t)
	t.Parallel()
	for _, m := range []struct {
		arch, triplet, qemu string
	}{
		{"mips", "mips-linux-gnu", "qemu-mips"},
		{"arm", "arm-linux-gnueabihf", "qemu-arm"},
		{"riscv64", "riscv64-linux-gnu", "qemu-riscv64"},
	} {
		if m.arch != "mips" && !cmdtest.All() {
			continue
		}
		t.Run(m.arch, func(t *testing.T) {
			cmdtest.Need(t, m.triplet+"-gcc", m.qemu, "go")
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			sysroot := "/usr/" + m.triplet
			run := func(env []string, name string, args ...string) string {
				t.Helper()
				c := exec.CommandContext(t.Context(), name, args...)
				c.Env = append(os.Environ(), env...)
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			run([]string{"CGO_ENABLED=0", "GOOS=linux", "GOMIPS=softfloat", "GOARCH=" + m.arch}, "go", "build", "-ldflags", "-s -w", "-o", path("btrecord"), ".")
			run([]string{"LWSBT_TEST_BTRECORD=1"}, os.Args[0], "library", "--cc", m.triplet+"-gcc", "-o", path("library.so"))
			program := compile(t, m.triplet+"-gcc", "paths.c", "-O1", "-funwind-tables") // GCC for RISC-V has no tables of C code else
			// The kernel executes only programs of this machine: for it, bin/paths is a script that
			// runs the emulator. For btrecord, in the emulator's root, it is the program.
			root := path("root")
			script := fmt.Sprintf("#!/bin/sh\npreload=$LD_PRELOAD\nunset LD_PRELOAD\nexec %s -L %s -E LD_PRELOAD=\"$preload\" %s \"$@\"\n", m.qemu, sysroot, program)
			for _, d := range []string{path("bin"), filepath.Join(root, dir, "bin")} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(path("bin/paths"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			links, _ := filepath.Glob(sysroot + "/*")
			for _, l := range links {
				os.Symlink(l, filepath.Join(root, filepath.Base(l)))
			}
			if err := os.Symlink(program, filepath.Join(root, dir, "bin/paths")); err != nil {
				t.Fatal(err)
			}
			out := run(nil, "timeout", "60", m.qemu, "-L", root, path("btrecord"), "--library", path("library.so"), "-v", "-o", path("rec"), "--", path("bin/paths"), "10", "keep")
			if !strings.Contains(out, "done\n") {
				t.Errorf("the program printed no result: %s", out)
			}
			// The emulator opens directories below its root.
			dumps := readPaths(t, filepath.Join(root, path("rec")), false)
			last := dumps[len(dumps)-1]
			want := profile.Value{Bytes: 10240, Count: 1024}
			if v := through(last, "step"); v != want {
				t.Errorf("%+v is live, want %+v: %s", v, want, out)
			}
			if v := through(last, "main"); v.Count < want.Count {
				t.Errorf("%+v is live below main, want %+v or more: %s", v, want, out)
			}
			info, err := os.Stat(path("btrecord"))
			_, memory, _ := strings.Cut(out, "btrecord: memory: ")
			if err != nil || info.Size() > 10<<20 {
				t.Errorf("%v: btrecord has %d bytes, want at most 10 MB", err, info.Size())
			}
			t.Logf("btrecord has %d bytes; with the emulator's memory: %s", info.Size(), memory)
		})
	}
}
