package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestPlaces reads core files of programs whose pointers are in unusual places. The comments of programs/places.c and
// containers.cc have the truth: none but the 12 blocks of 96 bytes is leaked, and nearly all of these are found.
func TestPlaces(t *testing.T) {
	quick := "joined handler_in_frame read_only"
	for _, c := range []struct{ compiler, qemu, cases, flags string }{
		{"gcc", "", "tagged mapped read_only thread_stack registers library coroutine coroutine_malloc joined coroutine_in_frame handler_mapped handler_in_frame child", ""},
		{"gcc", "", "tagged", "-static"},
		{"musl-gcc", "", "tagged thread_stack registers read_only", ""},
		{"aarch64-linux-gnu-gcc", "qemu-aarch64", "tagged mapped coroutine coroutine_malloc joined coroutine_in_frame handler_mapped handler_in_frame", "-static"},
		{"g++", "", "containers", ""},
	} {
		for _, name := range strings.Fields(c.cases) {
			t.Run(c.compiler+c.flags+"/"+name, func(t *testing.T) {
				if c.compiler != "gcc" || !strings.Contains(quick, name) {
					cmdtest.Long(t)
				}
				core, exe := placed(t, c.compiler, c.qemu, name, strings.Fields(c.flags)...)
				_, out, errs := execute("heap", "--blocks", "--json", core, "-e", exe)
				counts := map[string]int{}
				for line := range strings.Lines(out) {
					var b jsonBlock
					if err := json.Unmarshal([]byte(line), &b); err != nil {
						t.Fatal(err)
					}
					if b.Size < 120 && b.Size >= 96 {
						counts[b.State]++
					} else if counts["others"]++; b.State == "leaked" {
						t.Errorf("%s of %d bytes is %s", b.Addr, b.Size, b.State)
					}
				}
				if counts["leaked"] < 10 || counts["others"] < 20 {
					t.Errorf("%v; %s", counts, errs)
				}
			})
		}
	}
}

// placed compiles a case of places.c, or containers.cc, and returns the core file of the kernel or qemu.
func placed(t *testing.T, compiler, qemu, name string, flags ...string) (core, exe string) {
	t.Helper()
	cmdtest.Need(t, compiler, "bash")
	dir := t.TempDir()
	exe = filepath.Join(dir, "app")
	source := filepath.Join("testdata", "programs", "places.c")
	if name == "containers" {
		source = filepath.Join("testdata", "programs", "containers.cc")
	}
	tool(t, compiler, append([]string{"-g", "-O1", "-w", "-pthread", "-DCASE=" + name, "-o", exe, source}, flags...)...)
	if name == "library" {
		tool(t, compiler, "-shared", "-fPIC", "-o", filepath.Join(dir, "local.so"), filepath.Join("testdata", "programs", "local.c"))
	}
	pattern := "core*"
	if qemu != "" {
		cmdtest.Need(t, qemu)
		pattern = "qemu_app_*.core"
	}
	c := exec.Command("bash", "-c", "echo 0x3f > /proc/self/coredump_filter; ulimit -c unlimited; exec "+qemu+" ./app")
	c.Dir = dir
	c.Env = os.Environ()
	out, _ := c.CombinedOutput() // it aborts
	list, _ := filepath.Glob(filepath.Join(dir, pattern))
	if len(list) != 1 {
		t.Skipf("no core file is written here: %s", out)
	}
	return list[0], exe
}
