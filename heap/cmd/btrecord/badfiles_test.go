//go:build linux

package main

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestBadFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		return cli.Run(command(), args, stdin, stdout, stderr)
	}
	for _, args := range []func(file string) []string{
		func(file string) []string { return []string{"--", file} },
		func(file string) []string { return []string{file} },
		func(file string) []string { return []string{"--library", file, "--", "/bin/sh"} },
		func(file string) []string { return []string{"library", "--cc", file} },
		func(file string) []string { return []string{"library", "-o", filepath.Join(file, "lib.so", "x")} },
		func(file string) []string { return []string{"ctl", file, "dump"} },
	} {
		cmdtest.BadFiles(t, run, args)
	}
}
