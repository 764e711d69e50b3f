package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// mainVar makes the test binary the command.
const mainVar = "BTCONFORM_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVar) != "" {
		main()
	}
	os.Exit(m.Run())
}

// self is a command line that runs this command.
func self(t *testing.T, args ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"/usr/bin/env", mainVar + "=1", exe}, args...)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	good    = "btv 1\n\nid: good\nclause: BT-BLOB-2\nop: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n"
	wrong   = "btv 1\n\nid: wrong\nclause: BT-BLOB-2\nop: decode\nhex: 00100004\nwant: ok size=1 pcs=-\n"
	reason  = "btv 1\n\nid: reason\nclause: BT-BLOB-2\nop: decode\nhex: 00100005\nwant: reject short\n"
	broken  = "btv 1\n\nid: broken\nclause: BT-BLOB-2\nop: decode\nhex: 001\nwant: reject length\n"
	salvage = "btv 1\n\nid: salvage\nclause: BT-SALV-1\nop: salvage\nhex: 205d0199442e80d0\nwant: part depth=4 size=- pcs=406651\n"
)

// Every way to call it: exit code, what goes where.
func TestRun(t *testing.T) {
	files := map[string]string{}
	for name, text := range map[string]string{"good.btv": good, "wrong.btv": wrong, "reason.btv": reason, "broken.btv": broken,
		"salvage.btv": salvage, "known.txt": "wrong ok https://example.org/1\n", "stale.txt": "good crash https://example.org/1\n",
		"bad-known.txt": "wrong\n", "empty.btv": "btv 1\n",
		"examples.md": "**BT-BLOB-2** It MUST.\n\n```btv\n" + strings.SplitN(good, "\n\n", 2)[1] + "```\n"} {
		files[name] = write(t, name, text)
	}
	emptyDir := t.TempDir()
	for _, c := range []struct {
		name   string
		args   string // @name is a file
		stdin  string
		code   int
		stdout string // is contained
		stderr string
	}{
		{"built in", "", "", cli.OK, "passed: lwsbt-go", ""},
		{"good", "@good.btv", "", cli.OK, "passed: lwsbt-go", ""},
		{"stdin", "-", good, cli.OK, "passed", ""},
		{"two files", "@good.btv @salvage.btv", "", cli.OK, "2 vectors", ""},
		{"same file twice", "@good.btv @good.btv", "", cli.Usage, "", "good.btv:3: id good is that of"},
		{"seed", "--seed 77 @good.btv", "", cli.OK, "seed 77", ""},
		{"wrong", "@wrong.btv", "", cli.Short, "again: btconform --run wrong ", ""},
		{"known", "--known @known.txt @wrong.btv", "", cli.OK, "1 failed as known", ""},
		{"stale", "--known @stale.txt @good.btv", "", cli.Short, "STALE ", ""},
		{"bad known", "--known @bad-known.txt @good.btv", "", cli.Usage, "", "bad-known.txt:1: "},
		{"no known", "--known /no/such @good.btv", "", cli.Usage, "", "/no/such"},
		{"reason", "@reason.btv", "", cli.OK, "rejected for length, expected short", ""},
		{"strict reason", "--strict-reasons @reason.btv", "", cli.Short, "FAIL reason", ""},
		{"broken", "@broken.btv", "", cli.Usage, "", `broken.btv:6: hex "001", expected`},
		{"empty", "@empty.btv", "", cli.Usage, "", "empty.btv:1: no vectors in the file"},
		{"empty directory", emptyDir, "", cli.Usage, "", "no .btv files"},
		{"no file", "/no/such.btv", "", cli.Usage, "", "/no/such.btv"},
		{"no match", "--run nothing* @good.btv", "", cli.Usage, "", "no vector's ID matches --run nothing*"},
		{"run", "--run goo* @good.btv @wrong.btv", "", cli.OK, "1 vectors", ""},
		{"unknown flag", "--colour red", "", cli.Usage, "", "unknown flag: --colour"},
		{"format", "--format yaml", "", cli.Usage, "", "--format yaml, expected one of table, json, junit"},
		{"jobs", "-j 0", "", cli.Usage, "", "--jobs 0, expected at least 1"},
		{"nothing after dashes", "@good.btv --", "", cli.Usage, "", "nothing after --"},
		{"no testee", "@good.btv -- /no/such/testee", "", cli.Failed, "", "testee /no/such/testee does not start"},
		{"testee without hello", "@good.btv -- true", "", cli.Failed, "", `testee true, asked "hello btp=1": crash: ended with exit code 0 before`},
		{"built-in files", "../../conformance/vectors", "", cli.OK, "passed", ""},
		{"specification", "@examples.md", "", cli.OK, "1 vectors", ""},
		{"no time", "--timeout 0s -- true", "", cli.Usage, "", "--timeout 0s, expected more than 0"},
		{"time of no testee", "--timeout 1s @good.btv", "", cli.Usage, "", "--timeout has no effect without a program"},
		{"program for vectors", "/bin/sh", "", cli.Usage, "", `/bin/sh:1: not a text file, expected one that begins with "btv 1" (a program to test goes after --)`},
		{"mistyped command", "lsit", "", cli.Usage, "", `lsit: no such file or directory (did you mean "btconform list"?)`},
		{"no such vectors", "nosuchthing", "", cli.Usage, "", `nosuchthing: no such file or directory, expected a directory of vectors, a .btv file or a command`},
		{"mistyped flag", "--fromat json", "", cli.Usage, "", "did you mean --format?"},
		{"version", "--version", "", cli.OK, "btconform ", ""},
		{"completion", "completion bash", "", cli.OK, "__start_btconform", ""},
		{"junit without a program", "--format junit @good.btv -- /no/such/tool", "", cli.Failed, `<testsuites tests="1" failures="1"`, "does not start"},
		{"junit", "--format junit @wrong.btv", "", cli.Short, `<testsuites tests="1" failures="1"`, ""},
		{"help", "help", "", cli.OK, "Usage:", ""},
		{"--help", "--help", "", cli.OK, "--strict-reasons", ""},
		{"list", "list @good.btv", "", cli.OK, "good\tdecode\tBT-BLOB-2\t", ""},
		{"list --help", "list --help", "", cli.OK, "Usage:", ""},
		{"list nothing", "list --run x @good.btv", "", cli.Usage, "", "no vector's ID matches --run x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var args []string
			for _, word := range strings.Fields(c.args) {
				if name, ok := strings.CutPrefix(word, "@"); ok {
					word = files[name]
				}
				args = append(args, word)
			}
			var stdout, stderr bytes.Buffer
			code := run(args, strings.NewReader(c.stdin), &stdout, &stderr)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if !strings.Contains(stdout.String(), c.stdout) {
				t.Errorf("stdout\n%s\nwant %q", stdout.String(), c.stdout)
			}
			if !strings.Contains(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), c.stderr)
			}
			if c.code == cli.Usage && stdout.Len() > 0 {
				t.Errorf("stdout %q beside a fault of usage", stdout.String())
			}
		})
	}
}

// Help fits a terminal.
func TestHelpWidth(t *testing.T) {
	args := [][]string{{"help"}, {"--help"}}
	for _, c := range newRoot().Commands() {
		args = append(args, []string{c.Name(), "--help"})
	}
	if len(args) < 4 {
		t.Errorf("%d helps, want that of each command", len(args))
	}
	for _, a := range args {
		var stdout, stderr bytes.Buffer
		if code := run(a, strings.NewReader(""), &stdout, &stderr); code != cli.OK {
			t.Errorf("%v: exit %d, %s", a, code, stderr.String())
		}
		if !strings.Contains(stdout.String(), "Usage:") {
			t.Errorf("%v: no usage in %q", a, stdout.String())
		}
		for _, line := range strings.Split(stdout.String(), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%v: over 80 columns: %s", a, line)
			}
		}
	}
}

// The command that a failure shows repeats it.
func TestAgain(t *testing.T) {
	cmdtest.Need(t, "python3")
	file := write(t, "it's wrong.btv", wrong)
	var stdout, stderr bytes.Buffer
	args := []string{"--as-written", file, "--", "python3", "../../conformance/example/testee.py"}
	if code := run(args, nil, &stdout, &stderr); code != cli.Short {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	_, line, ok := strings.Cut(stdout.String(), "  again: btconform ")
	if !ok {
		t.Fatalf("no command in\n%s", stdout.String())
	}
	line, _, _ = strings.Cut(line, "\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", mainVar+"=1 '"+exe+"' "+line)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != cli.Short || !strings.Contains(string(out), "FAIL wrong decode") {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// A reader that stops early causes neither a failure nor a message.
func TestClosedPipe(t *testing.T) {
	for _, args := range []string{"list", "help", "--format json"} {
		line := strings.Join(self(t), " ") + " " + args + " | head -c 1"
		cmd := exec.Command("/bin/sh", "-c", line)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil || stderr.Len() > 0 || stdout.Len() != 1 {
			t.Errorf("%s: %v, %d bytes, stderr %q", args, err, stdout.Len(), stderr.String())
		}
	}
}
