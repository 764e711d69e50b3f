//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestMemoryOfManyBlocks holds --leaks to 1.6 times the core file of 1.2 million blocks, its pages included.
func TestMemoryOfManyBlocks(t *testing.T) {
	cmdtest.Long(t)
	const blocks = 1_200_000
	core, exe := dumped(t, "gcc", "many.c", nil, fmt.Sprint(blocks))
	command := filepath.Join(t.TempDir(), "btcore")
	tool(t, "go", "build", "-o", command, ".")
	c := exec.Command(command, "heap", "--leaks", core, "-e", exe)
	out, err := c.Output()
	if err != nil || !strings.HasPrefix(string(out), "40,000 blocks leaked, ") {
		t.Fatalf("%v: %.200s", err, out)
	}
	info, err := os.Stat(core)
	if err != nil {
		t.Fatal(err)
	}
	peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	t.Logf("%d bytes for a core file of %d: %.2f times", peak, info.Size(), float64(peak)/float64(info.Size()))
	if peak > info.Size()*8/5 {
		t.Errorf("%d bytes for a core file of %d", peak, info.Size())
	}
}
