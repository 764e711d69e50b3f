package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestPlaces reads core files of programs whose pointers are in unusual places. The comments of programs/places.c have
// the truth: none but the 12 blocks of 96 bytes is leaked, and nearly all of these are found.
func TestPlaces(t *testing.T) {
	quick := "joined handler_in_frame read_only"
	for _, c := range []struct{ compiler, qemu, cases, flags string }{
		{"gcc", "", "mapped read_only thread_stack registers library coroutine coroutine_malloc joined coroutine_in_frame handler_mapped handler_in_frame child", ""},
		{"musl-gcc", "", "thread_stack registers read_only", ""},
		{"aarch64-linux-gnu-gcc", "qemu-aarch64", "mapped coroutine coroutine_malloc joined coroutine_in_frame handler_mapped handler_in_frame", "-static"},
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

// TestHeld reads images of programs/held.c, whose comments have the truth: its cases are numbered from 0.
func TestHeld(t *testing.T) {
	for _, c := range []struct{ compiler, flags string }{{"gcc", ""}, {"gcc", "-static"}, {"musl-gcc", ""}} {
		t.Run(c.compiler+c.flags, func(t *testing.T) {
			if c.compiler != "gcc" || c.flags != "" {
				cmdtest.Long(t)
			}
			core, exe := placed(t, c.compiler, "", "held", strings.Fields(c.flags)...)
			others := []uint64{23, 24} // ENCODED
			if runtime.GOARCH != "amd64" {
				others = append(others, 18, 19, 20)
			}
			checkHeld(t, 25, others, core, "-e", exe)
		})
	}
	programs, _ := filepath.Abs(filepath.Join("testdata", "programs"))
	firmware, _ := filepath.Abs(filepath.Join("testdata", "firmware"))
	allocators, _ := filepath.Abs("../../core/alloc/testdata")
	for _, c := range []struct{ board, heap, flags string }{
		{"riscv32", "", ""}, {"cortex-m3", "", ""}, {"cortex-m3", "", "--specs=nano.specs"}, {"cortex-m3", "heap_4", ""}, {"riscv32", "heap_4", ""}, {"cortex-m3", "heap_5", ""},
	} {
		t.Run(c.board+c.heap+c.flags, func(t *testing.T) {
			cmdtest.Long(t)
			flags := append(strings.Fields(c.flags), "-g", "-Os", "-w", "-DBARE", filepath.Join(programs, "held.c"), filepath.Join(allocators, "bare.c"))
			if c.heap != "" {
				kernel := os.Getenv("FREERTOS_KERNEL")
				if kernel == "" {
					t.Skipf("no %s.c: set FREERTOS_KERNEL to the clone that has it", c.heap)
				}
				own := filepath.Join(allocators, "freertos")
				flags = append(flags, "-DFREERTOS", "-D"+strings.ToUpper(c.heap), "-I", own, filepath.Join(own, "setup.c"), filepath.Join(kernel, "portable", "MemMang", c.heap+".c"))
			}
			exe, ram, addr := cmdtest.Board(t, c.board, firmware, flags...)
			checkHeld(t, 13, []uint64{11, 12}, "--ram", fmt.Sprintf("%#x=%s", addr, ram), "-e", exe)
		})
	}
}

// checkHeld checks the blocks of an image of held.c with a number of cases, of which some may be leaked or without blocks.
func checkHeld(t *testing.T, cases uint64, others []uint64, args ...string) {
	t.Helper()
	_, out, errs := execute(append([]string{"heap", "--blocks", "--json"}, args...)...)
	held, leaks := map[uint64]int{}, 0
	for line := range strings.Lines(out) {
		var b jsonBlock
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		k := (b.Size - 200) / 16
		switch {
		case b.Size >= 96 && b.Size < 120:
			if b.State == "leaked" {
				leaks++
			}
		case b.State == "leaked" && (b.Size < 200 || !slices.Contains(others, k)):
			t.Errorf("%s of %d bytes, case %d, is leaked", b.Addr, b.Size, k)
		case b.Size >= 200:
			held[k]++
		}
	}
	for k := range cases {
		if held[k] < 4 && !slices.Contains(others, k) {
			t.Errorf("case %d: %d blocks", k, held[k])
		}
	}
	if leaks < 11 {
		t.Errorf("%d leaks; %s", leaks, errs)
	}
}

// placed compiles a case of places.c, or held.c, and returns the core file of the kernel or qemu.
func placed(t *testing.T, compiler, qemu, name string, flags ...string) (core, exe string) {
	t.Helper()
	cmdtest.Need(t, compiler, "bash")
	dir := t.TempDir()
	exe = filepath.Join(dir, "app")
	source := filepath.Join("testdata", "programs", "places.c")
	if name == "held" {
		source = filepath.Join("testdata", "programs", "held.c")
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
