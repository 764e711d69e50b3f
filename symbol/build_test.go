package symbol

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// source is the absolute path of a program in testdata/src.
func source(t testing.TB, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("testdata", "src", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tool skips the test, with a line that says so, where a program is missing.
func tool(t testing.TB, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return p
}

// run runs a program in dir and returns what it printed.
func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GOFLAGS=", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// buildC compiles sources with a compiler and options and returns the program.
func buildC(t testing.TB, args []string, sources ...string) string {
	t.Helper()
	tool(t, args[0])
	out := filepath.Join(t.TempDir(), "prog")
	cmd := append(append([]string{}, args...), "-o", out)
	for _, s := range sources {
		cmd = append(cmd, source(t, s))
	}
	run(t, t.TempDir(), cmd...)
	return out
}

// buildGo compiles testdata/src/prog.go with a GOEXPERIMENT.
func buildGo(t testing.TB, experiment string, args ...string) string {
	t.Helper()
	tool(t, "go")
	t.Setenv("GOEXPERIMENT", experiment)
	out := filepath.Join(t.TempDir(), "prog")
	cmd := append([]string{"go", "build", "-o", out}, args...)
	build := exec.Command(cmd[0], append(cmd[1:], "prog.go")...)
	build.Dir = filepath.Dir(source(t, "prog.go"))
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	if bytes.Contains(text, []byte("unknown GOEXPERIMENT")) {
		t.Skipf("go does not know GOEXPERIMENT=%s any more", experiment)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, text)
	}
	return out
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}
