package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A stripped library whose local functions are only in .gnu_debugdata, as on Fedora and RHEL.
func TestMiniDebugInfo(t *testing.T) {
	for _, tool := range []string{"gcc", "objcopy", "nm", "xz"} {
		cmdtest.Need(t, tool)
	}
	t.Chdir(t.TempDir())
	const source = `#include <stdlib.h>
static __attribute__((noinline)) void *hidden_local(int n) { void *p = malloc(n); __asm__ volatile("" :: "r"(p)); return p; }
void *api(int n) { void *p = hidden_local(n); __asm__ volatile("" :: "r"(p)); return p; }
`
	if err := os.WriteFile("lib.c", []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("gcc", "-O1", "-g0", "-fPIC", "-shared", "-o", "lib.so", "lib.c")
	full, err := Open("lib.so", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	addr := uint64(0)
	for _, fn := range full.symtab().functions {
		if full.symtab().text(fn.name) == "hidden_local" {
			addr = fn.addr
		}
	}
	run("objcopy", "--only-keep-debug", "lib.so", "lib.full")
	run("objcopy", "-S", "--remove-section", ".comment", "--keep-symbol=hidden_local", "lib.full", "mini")
	run("xz", "mini")
	run("objcopy", "--strip-all", "--add-section", ".gnu_debugdata=mini.xz", "lib.so", "stripped.so")
	data, err := os.ReadFile("stripped.so")
	if err != nil || addr == 0 {
		t.Fatal(addr, err)
	}
	f, err := Open("stripped.so", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if name, _, _ := f.symbolAt(addr + 4); name != "hidden_local" {
		t.Errorf("the function is %q, want hidden_local", name)
	}
	// Damaged, it is a stripped file as before, and that is said. The reader does not use the byte at 30.
	for _, at := range []int{30, 100, 200} {
		section, _ := f.section(".gnu_debugdata")
		damaged := append([]byte(nil), data...)
		i := len(data)
		for k := range data[:len(data)-len(section)] {
			if string(data[k:k+len(section)]) == string(section) {
				i = k
				break
			}
		}
		if at < len(section) && i+at < len(data) {
			damaged[i+at] ^= 0xff
		}
		path := filepath.Join(t.TempDir(), "damaged.so")
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		frames, _ := g.Lookup(nil, addr+4)
		unread := strings.Contains(g.Why(), ".gnu_debugdata cannot be read")
		if named := len(frames) == 1 && frames[0].Func == "hidden_local"; named == unread || at == 100 && named {
			t.Errorf("damaged at %d: frames %v: %q", at, frames, g.Why())
		}
		g.Close()
	}
}
