//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The table of live allocations holds what an array does, whatever the addresses, and
// numbers of pairs that are gone are used again.
func TestBlocks(t *testing.T) {
	for _, m := range []struct{ name, cc, run string }{
		{"native", "gcc", ""},
		{"sanitized", "gcc -fsanitize=address,undefined -fno-sanitize-recover", ""},
		{"mips", "mips-linux-gnu-gcc -static", "qemu-mips"},
		{"i686", "i686-linux-gnu-gcc -static", ""},
	} {
		t.Run(m.name, func(t *testing.T) {
			if m.name != "native" && !full() {
				t.Skip("LWSBT_FULL=1 runs it")
			}
			args := strings.Fields(m.cc)
			cmdtest.Need(t, args[0])
			program := filepath.Join(t.TempDir(), "blocks")
			source := filepath.Join("..", "..", "device")
			args = append(args, "-g", "-O2", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-o", program,
				"-I"+filepath.Join(source, "include"), "-I"+filepath.Join(source, "preload"), filepath.Join("testdata", "blocks.c"),
				filepath.Join(source, "preload", "blocks.c"), filepath.Join(source, "preload", "pairs.c"))
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			run := []string{program}
			if m.run != "" {
				cmdtest.Need(t, m.run)
				run = []string{m.run, program}
			}
			c := exec.Command(run[0], run[1:]...)
			c.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0")
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), " allocations, ") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
