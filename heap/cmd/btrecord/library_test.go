//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// An interrupt of btrecord library leaves no file, neither its own nor the compiler's,
// and none of the compiler's processes goes on.
func TestInterruptedBuild(t *testing.T) {
	if out := os.Getenv("LWSBT_TEST_BUILD"); out != "" {
		os.Exit(cli.Run(command(), []string{"library", "--cc", os.Getenv("LWSBT_TEST_CC"), "-o", out}, nil, os.Stdout, os.Stderr))
	}
	dir := t.TempDir()
	temp, out := filepath.Join(dir, "tmp"), filepath.Join(dir, "out")
	for _, d := range []string{temp, out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A compiler with a temporary file, whose assembler writes the output later.
	cc := filepath.Join(dir, "cc")
	err := os.WriteFile(cc, []byte(`#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo x >"$(mktemp)"
(echo x >"$2"; echo ready >`+dir+`/ready; sleep 60; echo x >"$2"; echo x >`+dir+`/late)
`), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestInterruptedBuild$")
	c.Env = append(os.Environ(), "LWSBT_TEST_BUILD="+filepath.Join(out, "lib.so"), "LWSBT_TEST_CC="+cc, "TMPDIR="+temp)
	// All processes have the pipe open: it ends with the last of them.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.ExtraFiles = []*os.File{w}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for tries := 0; ; tries++ {
		if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
			break
		}
		if tries == 6000 {
			t.Fatal("the compiler did not start within a minute")
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Process.Signal(syscall.SIGTERM)
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != cli.Failed {
		t.Errorf("ended with %v, want exit code %d", c.ProcessState, cli.Failed)
	}
	io.Copy(io.Discard, r)
	var left []string
	for _, pattern := range []string{"tmp/*", "out/*", "late"} {
		names, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, n := range names {
			if !strings.HasPrefix(filepath.Base(n), "btrecord") { // TestMain's
				left = append(left, n)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A library that writes another version of the layout is refused: nothing would be recorded.
func TestLibraryOfAnotherVersion(t *testing.T) {
	library := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_b")
	if r := recorded(t, "--library", library, "--", "true"); r.code != 2 || !strings.Contains(r.errs, "of another version") {
		t.Errorf("exit status %d: %s", r.code, r.errs)
	}
}
