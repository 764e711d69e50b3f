//go:build linux

package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The recording never overwrites the program, its script or the library, under any name.
func TestOutputIsNoInput(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"program": "\x7fELF", "script": "#!/bin/sh\n", "library": "x"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(name, name+".link"); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"-o", "program", "--", "./program"}, {"-o", "program.link", "--", "./program"},
		{"-o", "script.link", "--", "./script"}, {"-o", "library.link", "--library", "library", "--", "./program"}} {
		var errs strings.Builder
		code := cli.Run(command(), args, nil, io.Discard, &errs)
		data, err := os.ReadFile(strings.TrimSuffix(args[1], ".link"))
		if code != 2 || !strings.Contains(errs.String(), "is the same file as") || err != nil || len(data) == 0 {
			t.Errorf("%v: exit code %d, %q; the file has %d bytes now", args, code, errs.String(), len(data))
		}
	}
}

// FuzzCommand runs the command on a program and a library that are any bytes, and so
// never run: see cmdtest.FuzzSub.
func FuzzCommand(f *testing.F) {
	flags := [][]string{{"--events"}, {"--interval", "1s"}, {"--at-peak"}, {"--children"}, {"--sample", "1T"}, {"--library", "FILE"},
		{"-o", "FILE"}, {"-o", "FILE.rec"}, {"-q"}}
	subs := []cmdtest.Sub{
		{Flags: flags, Args: []string{"--", "FILE"}},
		{Flags: flags[:5], Args: []string{"--library", "FILE", "-o", "FILE.rec", "--", "/no/such/program"}},
		{Name: "ctl", Args: []string{"FILE", "dump"}},
	}
	cmdtest.SeedSub(f, subs, []byte("#!/bin/sh\n"))
	cmdtest.SeedSub(f, subs, []byte("\x7fELF\x02\x01\x01"))
	cmdtest.FuzzSub(f, func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		code := cli.Run(command(), args, stdin, stdout, stderr)
		if notRecorded <= code && code <= notFound {
			return cli.Failed // what other commands have for it
		}
		return code
	}, subs)
}
