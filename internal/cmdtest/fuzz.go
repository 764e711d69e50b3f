package cmdtest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Command runs a command on arguments and standard input and returns its exit code.
type Command func(args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Sub is a subcommand, or a command without subcommands: its name, its optional flags, and
// its fixed arguments. In flags and arguments, FILE is replaced by a file with the input.
type Sub struct {
	Name  string // "" for the command itself
	Flags [][]string
	Args  []string
	// Verdict is set if exit code 1 means that a test failed. The output reports the
	// failure, so no error message is needed.
	Verdict bool
	// Check, if not nil, checks properties of this command.
	Check func(t *testing.T, args []string, code int, out string)
}

// FuzzSub fuzzes a whole command. The fuzzer selects one of subs, generates the input, and a
// number whose bit n selects the arguments Flags[n]. The input is both standard input and a file
// that is not executable.
//
// For any input, a command must end within a minute with one of the four exit codes, print
// the reason for a failure, print no control characters except tabs and line ends, print the
// same in a second run, and print valid JSON, XML or CSV in these formats.
func FuzzSub(f *testing.F, run Command, subs []Sub) {
	f.Fuzz(func(t *testing.T, picked uint32, sub uint8, input []byte) {
		s := &subs[int(sub)%len(subs)]
		var args []string
		if s.Name != "" {
			args = append(args, s.Name)
		}
		args = slices.Concat(args, pick(s.Flags, picked), s.Args)
		path := filepath.Join(t.TempDir(), "input")
		if err := os.WriteFile(path, input, 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "FILE", path)
		}
		code, out := try(t, run, args, input, s.Verdict)
		if s.Check != nil {
			s.Check(t, args, code, out)
		}
	})
}

// SeedSub adds an input as a seed for [FuzzSub], for each subcommand with no flags and
// with each.
func SeedSub(f *testing.F, subs []Sub, input []byte) {
	for i, s := range subs {
		f.Add(uint32(0), uint8(i), input)
		for n := range s.Flags {
			f.Add(uint32(1)<<n, uint8(i), input)
		}
	}
}

func pick(flags [][]string, picked uint32) (args []string) {
	for n, flag := range flags {
		if picked>>n&1 == 1 {
			args = append(args, flag...)
		}
	}
	return args
}

// try runs a command twice and checks the properties listed at FuzzSub.
func try(t *testing.T, run Command, args []string, input []byte, verdict bool) (code int, out string) {
	type result struct {
		code      int
		out, errs string
	}
	once := func() result {
		var out, errs bytes.Buffer
		code := run(args, bytes.NewReader(input), &out, &errs)
		return result{code, out.String(), errs.String()}
	}
	start := time.Now()
	r := once()
	if d := time.Since(start); d > time.Minute {
		t.Errorf("%q: took %v", args, d)
	}
	if r.code < 0 || r.code > 3 {
		t.Errorf("%q: exit code %d", args, r.code)
	}
	reported := verdict && r.code == 1 && r.out != ""
	if r.code != 0 && !reported && strings.TrimSpace(r.errs) == "" {
		t.Errorf("%q: exit code %d, and no message", args, r.code)
	}
	if strings.ContainsFunc(r.errs, control) {
		t.Errorf("%q: control characters on stderr: %q", args, r.errs)
	}
	if !slices.Contains(args, "--passthrough") && strings.ContainsFunc(r.out, control) {
		t.Errorf("%q: control characters on stdout: %q", args, r.out)
	}
	if again := once(); again != r {
		t.Errorf("%q: a second run differs:\n%+v\n%+v", args, r, again)
	}
	if r.code < 2 {
		if err := parses(formatOf(args), r.out); err != nil {
			t.Errorf("%q: %v in %q", args, err, r.out)
		}
	}
	return r.code, r.out
}

func control(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0
}

// formatOf returns the last --format among args.
func formatOf(args []string) string {
	for n, a := range slices.Backward(args) {
		if a == "--format" && n+1 < len(args) {
			return args[n+1]
		}
	}
	return ""
}

// parses returns an error if text is not valid in a format. It returns nil for unknown
// formats.
func parses(format, text string) error {
	switch format {
	case "json", "jsonl", "speedscope":
		d := json.NewDecoder(strings.NewReader(text))
		for {
			var v any
			if err := d.Decode(&v); err != nil {
				return ended(err)
			}
		}
	case "junit":
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := d.Token(); err != nil {
				return ended(err)
			}
		}
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
