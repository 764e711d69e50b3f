// Package docs is the documents. Its test runs the commands that they show.
package docs

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

// sessions are the documents with commands, and how many each has at least.
var sessions = []struct {
	file  string
	least int
}{
	{"../README.md", 8},
	{"live.md", 7},
	{"leak.md", 6},
	{"leaks.md", 1},
	{"map.md", 3},
	{"snip.md", 3},
	{"report.md", 7},
	{"btdecode.md", 2},
	{"units.md", 2},
	{"btheap.md", 2},
	{"btrecord.md", 5},
	{"btstats.md", 3},
	{"library.md", 2},
	{"systems.md", 2},
}

// TestSessions runs the commands in an empty directory with links to what the
// repository has, as if it were a clone; the commands of cmd/ are in PATH.
func TestSessions(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the documents are of Linux")
	}
	cmdtest.Need(t, "bash", "gcc")
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/btconform", "./cmd/btdecode", "./cmd/btheap", "./cmd/btrecord", "./cmd/btstats", "./examples/largest")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// btrecord's library is built anew, what commands of Go build is not.
	env := []string{"GOCACHE=" + strings.TrimSpace(string(cache)), "PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + t.TempDir(), "LC_ALL=C.UTF-8", "NO_COLOR=1", "DEBUGINFOD_URLS="}
	for _, s := range sessions {
		t.Run(filepath.Base(s.file), func(t *testing.T) {
			t.Parallel()
			cmdtest.Session{Document: s.file, Least: s.least, Update: *update, Run: cmdtest.Shell(clone(t), env)}.Test(t)
		})
	}
}

// clone returns a directory with links to what the repository has at its top.
func clone(t *testing.T) string {
	dir := t.TempDir()
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := os.Symlink(filepath.Join(top, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What one reads in a session fits a few screens.
func TestLength(t *testing.T) {
	for _, file := range []string{"live.md", "leak.md", "leaks.md", "map.md", "snip.md", "report.md", "btdecode.md", "btheap.md", "btstats.md", "btcore.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 150 {
			t.Errorf("%s has %d lines, expected up to 150", file, n)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	list := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		list[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return list
}

// Links between documents lead to a file that is there, and to a heading of it.
func TestLinks(t *testing.T) {
	n := 0
	for _, pattern := range []string{"*.md", "../*.md", "../*/README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				n++
				path, anchor, _ := strings.Cut(m[1], "#")
				target := file
				if path != "" {
					target = filepath.Join(filepath.Dir(file), path)
				}
				there, err := os.ReadFile(target)
				if info, e := os.Stat(target); e == nil && info.IsDir() {
					err = nil
				}
				if err != nil {
					t.Errorf("%s: %v", file, err)
				} else if anchor != "" && !anchors(string(there))[anchor] {
					t.Errorf("%s: %s has no heading #%s", file, target, anchor)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links, expected 50 or more", n)
	}
}

// The program in library.md is the one in examples/largest.
func TestLibraryProgram(t *testing.T) {
	text, err := os.ReadFile("library.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../examples/largest/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "```go\n")
	code, _, _ = strings.Cut(code, "```\n")
	_, want, _ := strings.Cut(string(program), "\n") // without the comment on the package
	if code != want {
		t.Errorf("library.md has\n%s\nexamples/largest has\n%s", code, want)
	}
}
