//go:build linux

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var stormTime = flag.Duration("storm", 5*time.Second, "how long TestStorm's program runs")

// TestStorm has 64 threads free each other's blocks, load and unload a library, fork, execute
// programs, and send each other signals. The recording has the blocks that the program has
// at its end, the end of each block was seen before the next allocation at its address,
// and each child is recorded.
func TestStorm(t *testing.T) {
	cmdtest.Long(t)
	program := compile(t, "gcc", "storm.c", "-O1", "-pthread")
	library := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_b")
	file := filepath.Join(t.TempDir(), "rec")
	full := btrecord(t, "-v", "--children", "--interval", "1s", "-o", file, "--", program, "64", fmt.Sprint(int(stormTime.Seconds())), library)
	c := exec.Command(full.Path, full.Args[1:]...) // btrecord ends after a minute
	c.Env = full.Env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(*stormTime+time.Minute, func() { c.Process.Kill() })
	defer hangs.Stop()
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, errs.String())
	}
	var want profile.Value
	var children, failed int
	if _, err := fmt.Sscan(out.String(), &want.Count, &want.Bytes, &children, &failed); err != nil || failed != 0 || children == 0 || want.Count == 0 {
		t.Fatalf("the program printed %q: %v", out.String(), err)
	}
	for _, bad := range []string{"not seen in time", "lost", "ended:"} {
		if i := strings.Index(errs.String(), bad); i >= 0 {
			t.Errorf("btrecord printed %q", errs.String()[max(0, i-300):i+len(bad)])
		}
	}
	dumps := read(t, file)
	last := dumps[len(dumps)-1]
	got, again := through(last, "keep"), through(last, "again")
	got.Count, got.Bytes = got.Count+again.Count, got.Bytes+again.Bytes
	if got != want {
		t.Errorf("%+v is recorded, the program has %+v", got, want)
	}
	files, _ := filepath.Glob(file + ".*")
	if len(files) != children {
		t.Errorf("%d children are recorded, want %d", len(files), children)
	}
	for _, f := range files[:min(len(files), 50)] {
		dumps := read(t, f)
		if v := through(dumps[len(dumps)-1], "in_child"); v != (profile.Value{Bytes: 200, Count: 10}) {
			t.Errorf("%s: %+v is live, want 10 blocks of 20 bytes", f, v)
		}
	}
	_, memory, _ := strings.Cut(errs.String(), "btrecord: memory: ")
	t.Logf("%d dumps, %d children, %+v at the end; memory: %s", len(dumps), children, got, memory)
}
