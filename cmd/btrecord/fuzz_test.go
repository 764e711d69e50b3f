//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The recording never overwrites what is to run: a program, a script, or the library,
// under whatever name.
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
	flags := [][]string{{"--events"}, {"--interval", "1s"}, {"--at-peak"}, {"--children"}, {"--signal", "99"}, {"--library", "FILE"},
		{"--cc", "no-such-compiler"}, {"-o", "FILE"}, {"-o", "FILE.rec"}, {"-q"}}
	subs := []cmdtest.Sub{
		{Flags: flags, Args: []string{"--", "FILE"}},
		{Flags: flags[:5], Args: []string{"--library", "FILE", "-o", "FILE.rec", "--", "/no/such/program"}},
		{Name: "dump", Flags: [][]string{{"--wait", "0s"}}, Args: []string{"FILE"}},
	}
	cmdtest.SeedSub(f, subs, []byte("#!/bin/sh\n"))
	cmdtest.SeedSub(f, subs, []byte("\x7fELF\x02\x01\x01"))
	cmdtest.FuzzSub(f, func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		return cli.Run(command(), args, stdin, stdout, stderr)
	}, subs)
}

// What is read of programs and recordings are any bytes: their ELF headers, the first
// line of a script, and the last headers of a recording, which are found as a search of
// the whole text finds them.
func FuzzRead(f *testing.F) {
	f.Add([]byte("#! \n"), int64(0))
	f.Add([]byte("~h#boot w=64\n~h#end 1 n=2 b=3\n~h#total allocs=1\n~h#total"), int64(3))
	f.Add([]byte("~h#total live=x\n~h#end 4294967296\n"), int64(0))
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(exe[:4096], int64(0))
	f.Fuzz(func(t *testing.T, data []byte, from int64) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		scriptInterpreter(path)
		(&target{path: path}).read()
		(&target{}).checkLibrary(path)
		recordingOf(filepath.Dir(path) + "/")
		if h := dumpSince(path, max(from, 0)); h != nil && h.Verb != codec.VerbEnd {
			t.Errorf("the end of a dump: %+v", h)
		}
		total, _, err := lastTotal(bytes.NewReader(data))
		if err != nil {
			t.Error(err)
		}
		i := bytes.LastIndex(data, []byte("~h#total "))
		if i < 0 && total != nil {
			t.Errorf("a total of none: %+v", total)
		}
		if i >= 0 {
			line, _, _ := bytes.Cut(data[i:], []byte("\n"))
			if err := codec.ParseHeader(new(codec.Header), line); err == nil && total == nil {
				t.Errorf("no total, but %q", line)
			}
		}
	})
}
