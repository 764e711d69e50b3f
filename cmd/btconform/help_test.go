package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var continued = regexp.MustCompile(`\\\n\s*`)

// Every example of every help works as it is printed, in the project's root and with any program for ./mine and
// ./decoder. Runs of minutes are cut to a second.
func TestExamplesOfHelp(t *testing.T) {
	cmdtest.Need(t, "python3")
	dir := t.TempDir()
	for _, name := range []string{"SPEC.md", "spec", "ref-c", "conformance"} {
		path, err := filepath.Abs("../../" + name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testee := "python3 conformance/example/testee.py"
	for name, run := range map[string]string{"btconform": strings.Join(self(t), " ") + ` "$@"`, "mine": testee, "decoder": testee} {
		script := "#!/bin/sh\nexec " + run + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, c := range append([]*cobra.Command{newRoot()}, newRoot().Commands()...) {
		for line := range strings.Lines(continued.ReplaceAllString(c.Example, "")) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  ") // what it is for
			t.Run(line, func(t *testing.T) {
				for _, program := range []string{"lws-api-test-backtrace", "qemu-s390x"} {
					if _, err := exec.LookPath(program); err != nil && strings.Contains(line, program) {
						t.Skip(program + " is not installed")
					}
				}
				if strings.Contains(line, "./btref") {
					t.Skip("btref of another machine is not built")
				}
				run := strings.NewReplacer("5m", "1s", "fuzz --", "fuzz --for 1s --").Replace(line)
				cmd := exec.Command("/bin/sh", "-c", run)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
				if strings.Contains(line, "found.btv -") {
					if err := os.WriteFile(filepath.Join(dir, "found.btv"), []byte(good), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				out, err := cmd.CombinedOutput()
				if err != nil && cmd.ProcessState.ExitCode() != cli.Short { // that is a result: the testee was slow
					t.Errorf("%v: %.2000s", err, out)
				}
			})
			n++
		}
	}
	if n < 10 {
		t.Errorf("%d examples, want at least 10", n)
	}
}
