package main

import (
	"io"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestBadFiles(t *testing.T) {
	ram, exe, _ := ramFiles(t)
	run := func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		return cli.Run(command(), args, stdin, stdout, stderr)
	}
	for _, args := range []func(file string) []string{
		func(file string) []string { return []string{"heap", file} },
		func(file string) []string { return []string{"stacks", file} },
		func(file string) []string { return []string{"heap", "--ram", file} },
		func(file string) []string { return []string{"heap", "--ram", "0x20000000=" + ram, "-e", file} },
		func(file string) []string {
			return []string{"stacks", "--ram", "0x20000000=" + ram, "-e", exe, "--regs", file}
		},
	} {
		cmdtest.BadFiles(t, run, args)
	}
}
