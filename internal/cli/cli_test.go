package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program returns a command whose RunE is run.
func program(run func(c *cobra.Command, args []string) error) *cobra.Command {
	root := Root(&cobra.Command{Use: "prog [flags] FILE...", Short: "Prog is for tests.",
		Example: "  prog --lines 3 a.log    three lines", Args: cobra.ArbitraryArgs, RunE: run})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntP("lines", "n", 0, "print `N` lines")
	f.Duration("interval", 0, "wait `TIME`")
	f.String("to", "", "write to `FILE`")
	f.StringArray("from", nil, "read `FILE` (repeatable)")
	AddFlags(root, "Output", f)
	return root
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		err  error
		code int
		says string
	}{
		{"fine", nil, nil, OK, ""},
		{"plain error", nil, errors.New("bad input"), Usage, "prog: bad input\n"},
		{"short", nil, fmt.Errorf("x: %w", Shortf("3 records")), Short, "prog: x: 3 records\n"},
		{"failed", nil, Failedf("disk"), Failed, "prog: disk\n"},
		{"code alone", nil, Exit(Short), Short, ""},
		{"closed pipe", nil, &os.PathError{Op: "write", Err: syscall.EPIPE}, OK, ""},
		{"path", nil, fmt.Errorf("-e: %w", &os.PathError{Op: "open", Path: "a.elf", Err: syscall.ENOENT}), Usage, "prog: -e: a.elf: no such file or directory\n"},
		{"program", nil, fmt.Errorf("cannot run %w", &exec.Error{Name: "cc", Err: exec.ErrNotFound}), Usage, "prog: cannot run cc: executable file not found in $PATH\n"},
		{"path of a program", nil, &exec.Error{Name: "/a/b", Err: &os.PathError{Op: "stat", Path: "/a/b", Err: syscall.ENOTDIR}}, Usage, "prog: /a/b: not a directory\n"},
		{"path, named before", nil, fmt.Errorf("-m: a.maps: %w", &os.PathError{Op: "read", Path: "a.maps", Err: syscall.EISDIR}), Usage, "prog: -m: a.maps: is a directory\n"},
		{"empty path", nil, &os.PathError{Op: "open", Err: syscall.ENOENT}, Usage, "prog: \"\": no such file or directory\n"},
		{"escapes", nil, errors.New("name \x1b[31m\nprog: forged \u202e"), Usage, `prog: name \x1b[31m\nprog: forged \u202e` + "\n"},
		{"arguments", nil, BadArgsf("--a and --b"), Usage, "prog: --a and --b\nTry 'prog --help'.\n"},
		{"unknown flag", []string{"--linse=1"}, nil, Usage, "prog: unknown flag: --linse; did you mean --lines?\nTry 'prog --help'.\n"},
		{"no such flag at all", []string{"--zzz"}, nil, Usage, "prog: unknown flag: --zzz\nTry"},
		{"number", []string{"-n", "1k"}, nil, Usage, `prog: --lines "1k": expected a whole number` + "\n"},
		{"large number", []string{"-n", "99999999999999999999"}, nil, Usage, "the number is out of range"},
		{"empty value", []string{"--to="}, nil, Usage, `prog: --to "": expected FILE` + "\nTry 'prog --help'.\n"},
		{"empty value in a list", []string{"--from", "a", "--from", ""}, nil, Usage, `prog: --from "": expected FILE` + "\n"},
		{"time", []string{"--interval", "soon"}, nil, Usage, `prog: --interval "soon": expected a time such as 5s or 100ms` + "\n"},
	} {
		var out, errs bytes.Buffer
		code := Run(program(func(*cobra.Command, []string) error { return c.err }), c.args, nil, &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.says) || c.says == "" && errs.Len() > 0 {
			t.Errorf("%s: exit code %d, stderr %q; want %d, %q", c.name, code, errs.String(), c.code, c.says)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// What cannot be written exits with Failed, even where a command or the help
// does not look.
func TestCannotWrite(t *testing.T) {
	full := failing{&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}}
	careless := func(c *cobra.Command, _ []string) error { fmt.Fprintln(c.OutOrStdout(), "data"); return nil }
	careful := func(c *cobra.Command, _ []string) error { _, err := fmt.Fprintln(c.OutOrStdout(), "data"); return err }
	late := func(c *cobra.Command, _ []string) error { // an error of its own, from a later write
		fmt.Fprintln(c.OutOrStdout(), "data")
		return &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	}
	for name, run := range map[string]func(*cobra.Command, []string) error{"careless": careless, "careful": careful, "late": late} {
		var errs bytes.Buffer
		if code := Run(program(run), nil, nil, full, &errs); code != Failed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: exit code %d, stderr %q", name, code, errs.String())
		}
		errs.Reset()
		if code := Run(program(run), nil, nil, failing{syscall.EPIPE}, &errs); code != OK || errs.Len() > 0 {
			t.Errorf("%s, closed pipe: exit code %d, stderr %q", name, code, errs.String())
		}
	}
	for _, args := range [][]string{{"--help"}, {"--version"}} {
		var errs bytes.Buffer
		if code := Run(program(careful), args, nil, full, &errs); code != Failed {
			t.Errorf("%v: exit code %d, stderr %q", args, code, errs.String())
		}
	}
}

func TestHelp(t *testing.T) {
	root := program(func(*cobra.Command, []string) error { return nil })
	root.AddCommand(&cobra.Command{Use: "compare A B", Short: "compare two", RunE: func(*cobra.Command, []string) error { return nil }})
	for _, args := range [][]string{{"--help"}, {"compare", "--help"}, {"help", "compare"}} {
		var out bytes.Buffer
		if code := Run(root, args, nil, &out, io.Discard); code != OK {
			t.Fatalf("%v: exit code %d", args, code)
		}
		for l := range strings.Lines(out.String()) {
			if len(strings.TrimRight(l, "\n")) > 80 {
				t.Errorf("%v: over 80 columns: %s", args, l)
			}
		}
		wants := []string{"Usage:\n  prog", "Exit codes:\n  0 done", "--help"}
		if args[0] == "--help" {
			wants = append(wants, "Examples:\n  prog --lines 3", "Output:\n  -n, --lines N", "  compare      compare two", "--version")
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: no %q in\n%s", args, want, out.String())
			}
		}
	}
	if got := Suggest(root, "comapre"); !strings.Contains(got, `"prog compare"`) {
		t.Errorf("Suggest: %q", got)
	}
	if got := Suggest(root, "device.log"); got != "" {
		t.Errorf("Suggest of a file: %q", got)
	}
}

func TestOutputFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	content := func(name string) string { b, _ := os.ReadFile(name); return string(b) }
	if err := os.WriteFile("in.log", []byte("input"), 0o640); err != nil {
		t.Fatal(err)
	}
	os.Link("in.log", "hard")
	os.Symlink("in.log", "soft")
	os.Symlink("nowhere", "dangling")
	for _, name := range []string{"in.log", "./in.log", "hard", "soft", filepath.Join(dir, "in.log")} {
		err := WriteOutput(name, []string{"other", "in.log"}, nil, write("x"))
		if Code(err) != Usage || !strings.Contains(fmt.Sprint(err), "same file as the input") || content("in.log") != "input" {
			t.Errorf("-o %s: %v, the input is now %q", name, err, content("in.log"))
		}
	}
	// Standard input can be a file, too.
	stdin, err := os.Open("in.log")
	if err != nil {
		t.Fatal(err)
	}
	defer func(was *os.File) { os.Stdin = was; stdin.Close() }(os.Stdin)
	os.Stdin = stdin
	if err := WriteOutput("hard", []string{Stdio}, nil, write("x")); Code(err) != Usage || content("in.log") != "input" {
		t.Errorf("-o of what standard input reads: %v, the input is now %q", err, content("in.log"))
	}
	// What fails leaves the target as it was, and nothing else.
	fails := func(w io.Writer) error { io.WriteString(w, "half"); return errors.New("broken") }
	if err := WriteOutput("soft", nil, nil, fails); err == nil || content("in.log") != "input" {
		t.Errorf("%v, the target is now %q", err, content("in.log"))
	}
	// A link's target is replaced, not the link; the mode stays.
	if err := WriteOutput("soft", nil, nil, write("whole")); err != nil || content("in.log") != "whole" || content("hard") != "input" {
		t.Errorf("%v, in.log is %q, hard is %q", err, content("in.log"), content("hard"))
	}
	if info, err := os.Stat("in.log"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := WriteOutput("new", []string{"in.log"}, nil, write("new")); err != nil || content("new") != "new" {
		t.Errorf("%v, %q", err, content("new"))
	}
	for name, code := range map[string]int{"dangling": Failed, ".": Usage, "no/such/dir": Failed, "new/file": Failed} {
		if err := WriteOutput(name, nil, nil, write("x")); Code(err) != code {
			t.Errorf("-o %s: %v, exit code %d, want %d", name, err, Code(err), code)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := WriteOutput("/dev/full", nil, nil, write("x")); Code(err) != Failed {
			t.Errorf("/dev/full: %v, exit code %d", err, Code(err))
		}
	}
	var out bytes.Buffer
	if err := WriteOutput("-", nil, &out, write("stdout")); err != nil || out.String() != "stdout" {
		t.Errorf("%v, %q", err, out.String())
	}
	left, _ := os.ReadDir(".")
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "dangling hard in.log new soft" {
		t.Errorf("files left: %s", got)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":         "plain",
		"größe":         "größe",
		"a\tb\r\n":      `a\tb\r\n`,
		"\x1b[2J":       `\x1b[2J`,
		"\u009b2J":      `\u009b2J`,
		"bad \xff byte": `bad \xff byte`,
		"\u200b\ufeff":  `\u200b\ufeff`,
		"\ufffd":        "\ufffd",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
