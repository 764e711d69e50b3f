package cmdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// Documents runs the shell sessions of documents, each of which has at least the given number
// of them, in an empty directory with links to what the
// repository has at its top, as if it were a clone; the commands of the packages are in PATH.
// Where go needs the packages, it runs at the top itself, because it does not follow links.
// Packages and top are relative to the directory of the test.
func Documents(t *testing.T, top string, packages []string, documents map[string]int, update bool) {
	if runtime.GOOS != "linux" {
		t.Skip("the documents are of Linux")
	}
	Need(t, "bash", "gcc")
	bin := t.TempDir()
	build := exec.Command("go", append([]string{"build", "-o", bin}, packages...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// btrecord's library is built anew, what commands of Go build is not.
	env := []string{"GOCACHE=" + strings.TrimSpace(string(cache)), "PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + t.TempDir(), "LC_ALL=C.UTF-8", "NO_COLOR=1", "DEBUGINFOD_URLS="}
	for file, least := range documents {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			linked, real := Shell(clone(t, top), env), Shell(top, env)
			Session{Document: file, Least: least, Update: update, Run: func(t *testing.T, line string) (string, error) {
				if strings.HasPrefix(line, "go ") && !strings.HasPrefix(line, "go tool ") {
					return real(t, line)
				}
				return linked(t, line)
			}}.Test(t)
		})
	}
}

// clone returns a directory with links to what the repository has at its top.
func clone(t *testing.T, top string) string {
	dir := t.TempDir()
	top, err := filepath.Abs(top)
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

// Short checks that each document fits a few screens: 200 lines.
func Short(t *testing.T, files ...string) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 200 {
			t.Errorf("%s has %d lines, expected up to 200", file, n)
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

// Links checks that the links of documents lead to a file that is there, and to a heading of
// it. It fails if there are fewer than least links.
func Links(t *testing.T, least int, patterns ...string) {
	n := 0
	for _, pattern := range patterns {
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
				checkLink(t, file, m[1])
			}
		}
	}
	if n < least {
		t.Errorf("%d links, expected %d or more", n, least)
	}
}

// goCommand matches a command of Go in a document, and the directory in which it runs.
var goCommand = regexp.MustCompile("\\bgo(?: -C ([a-z]+))? (?:test|doc|run|install|vet|build) [^`\n|]*")

// Packages checks that the packages exist which documents name in commands of Go. These run at
// the top of the repository. It fails if there are fewer than least.
func Packages(t *testing.T, top string, least int, patterns ...string) {
	n := 0
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range goCommand.FindAllStringSubmatch(string(text), -1) {
				for _, word := range strings.Fields(m[0]) {
					if !strings.HasPrefix(word, "./") {
						continue
					}
					n++
					dir := strings.TrimRight(word, ".*/'\"),;:")
					if list, err := filepath.Glob(filepath.Join(top, m[1], dir)); err != nil || len(list) == 0 {
						t.Errorf("%s: %s: there is no %s", file, m[0], word)
					}
				}
			}
		}
	}
	if n < least {
		t.Errorf("%d packages, expected %d or more", n, least)
	}
}

// checkLink checks a link in a document.
func checkLink(t *testing.T, file, to string) {
	path, anchor, _ := strings.Cut(to, "#")
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
