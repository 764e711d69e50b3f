package symbol

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// full enables all cases (LWSBT_FULL=1). Without it, the tests try each kind of case once, on
// fewer addresses, which takes about ten seconds.
var full = cmdtest.Full()

// built caches compiled programs, which several tests share.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]func() (string, error)
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "symbol-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir, built.paths = dir, map[string]func() (string, error){}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// onceBuilt returns what build made in a directory of its own, the first time that
// key was asked for.
func onceBuilt(t testing.TB, key string, build func(dir string) (string, error)) string {
	t.Helper()
	built.Lock()
	get := built.paths[key]
	if get == nil {
		dir := filepath.Join(built.dir, strconv.Itoa(len(built.paths)))
		get = sync.OnceValues(func() (string, error) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return "", err
			}
			return build(dir)
		})
		built.paths[key] = get
	}
	built.Unlock()
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

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
	out, err := runIn(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func runIn(dir string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GOFLAGS=", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// buildC compiles sources with a compiler and options and returns the program,
// which must not be changed.
func buildC(t testing.TB, args []string, sources ...string) string {
	t.Helper()
	tool(t, args[0])
	cmd := slices.Clone(args)
	for _, s := range sources {
		cmd = append(cmd, source(t, s))
	}
	return onceBuilt(t, strings.Join(cmd, "\x00"), func(dir string) (string, error) {
		out := filepath.Join(dir, "prog")
		_, err := runIn(dir, append(cmd, "-o", out)...)
		return out, err
	})
}

// buildGo compiles testdata/src/prog.go with a GOEXPERIMENT.
func buildGo(t testing.TB, experiment string, args ...string) string {
	t.Helper()
	tool(t, "go")
	out := filepath.Join(t.TempDir(), "prog")
	cmd := append([]string{"go", "build", "-o", out}, args...)
	build := exec.Command(cmd[0], append(cmd[1:], "prog.go")...)
	build.Dir = filepath.Dir(source(t, "prog.go"))
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOEXPERIMENT="+experiment)
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

// process makes a Process of some files, and closes it at the end of the test.
func process(t testing.TB, paths ...string) *Process {
	t.Helper()
	var c Config
	for _, path := range paths {
		c.Files = append(c.Files, FileSpec{Path: path})
	}
	return configured(t, c)
}

func configured(t testing.TB, c Config) *Process {
	t.Helper()
	p, err := NewProcess(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// at returns the Location of an address.
func (p *Process) at(pc uint64) Location {
	a := p.Locate(pc)
	if a.Location == nil {
		return Location{Missing: a.Missing()}
	}
	return *a.Location
}

// allNotes returns the notes of a process, mismatches last.
func allNotes(p *Process) []string {
	missing, mismatches := p.Notes()
	return append(missing, mismatches...)
}
