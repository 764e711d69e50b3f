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

// TestMemoryOfManyBlocks holds the commands to 1.5 times the core file of 1.2 million blocks, its pages included.
func TestMemoryOfManyBlocks(t *testing.T) {
	cmdtest.Long(t)
	const blocks = 1_200_000
	core, exe := dumped(t, "gcc", "many.c", nil, fmt.Sprint(blocks))
	command := filepath.Join(t.TempDir(), "btcore")
	tool(t, "go", "build", "-o", command, ".")
	info, err := os.Stat(core)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ args, want string }{{"heap --leaks", "40,000 blocks leaked, "}, {"heap", " in 1,200,000 blocks; "}, {"holds", "lists"}} {
		c := exec.Command(command, append(strings.Fields(x.args), core, "-e", exe)...)
		out, err := c.Output()
		if err != nil || !strings.Contains(string(out), x.want) {
			t.Fatalf("%s: %v: %.300s", x.args, err, out)
		}
		peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
		t.Logf("%s: %d bytes for a core file of %d: %.2f times", x.args, peak, info.Size(), float64(peak)/float64(info.Size()))
		if peak > info.Size()*3/2 {
			t.Errorf("%s: %d bytes for a core file of %d", x.args, peak, info.Size())
		}
	}
}
