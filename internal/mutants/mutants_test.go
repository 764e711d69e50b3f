// Package mutants holds the tests to the numbers of the code: each line of mutants.txt is a plausible mistake, and the
// tests of its package must notice it.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A mutant replaces the only occurrence of old in a file. One of the tests must then fail: each is a package, or a
// package and the names of tests, "./codec:Longest|Names". The likeliest is first.
type mutant struct {
	file, old, new string
	tests          []string
}

// table returns the mutants of mutants.txt: fields separated by tabs, the file, the text, its replacement, and the tests.
func table(t *testing.T) (list []mutant) {
	t.Helper()
	text, err := os.ReadFile("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			t.Fatalf("%q has %d fields, want 4", line, len(f))
		}
		list = append(list, mutant{f[0], f[1], f[2], strings.Fields(f[3])})
	}
	if len(list) < 160 {
		t.Fatalf("%d mutants, want 160 and more", len(list))
	}
	return list
}

// The mutants are of code that is there, once. Where a change has moved it, the line of the table is of no use: a tenth may be
// so.
func TestTable(t *testing.T) {
	list, gone := table(t), 0
	for _, m := range list {
		text, err := os.ReadFile(filepath.Join("../..", m.file))
		if n := strings.Count(string(text), m.old); err != nil || n != 1 {
			t.Logf("%s has %q %d times, want 1: %v", m.file, m.old, n, err)
			gone++
		}
	}
	if gone > len(list)/10 {
		t.Errorf("%d of %d mutants are of code that is not there", gone, len(list))
	}
}

// The tests notice each mutant of code that is there; with LWSBT_FULL=1 every 20th is tried, with LWSBT_FULL=all each. The file is
// replaced for the compiler alone, by go's -overlay.
func TestMutants(t *testing.T) {
	cmdtest.Long(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	there := 0
	for i, m := range table(t) {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil || strings.Count(string(text), m.old) != 1 {
			continue // TestTable counts them
		}
		if there++; there%20 != 1 && !cmdtest.All() {
			continue
		}
		t.Run(fmt.Sprintf("%d/%s", i+1, strings.TrimSpace(m.new)), func(t *testing.T) {
			t.Parallel()
			overlay := m.overlay(t, root, string(text))
			for _, tests := range m.tests {
				dir, run, _ := strings.Cut(tests, ":")
				cmd := exec.Command("go", "test", "-failfast", "-vet=off", "-overlay", overlay, "-run", run, dir)
				cmd.Dir = root
				cmd.Env = append(os.Environ(), "LWSBT_FULL=")
				out, err := cmd.CombinedOutput()
				switch {
				case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
					t.Fatalf("the mutant does not compile: %s", out)
				case err != nil:
					t.Logf("noticed by %s %s", dir, failed.Find(out))
					return
				}
			}
			t.Errorf("no test of %v notices %q instead of %q", m.tests, m.new, m.old)
		})
	}
}

var failed = regexp.MustCompile(`--- FAIL: \S+|panic: .*`)

// overlay writes the mutant of a text and the file for -overlay, and returns the path of the latter.
func (m mutant) overlay(t *testing.T, root, text string) string {
	t.Helper()
	path := filepath.Join(root, m.file)
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(mutated, []byte(strings.Replace(text, m.old, m.new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err == nil {
		err = os.WriteFile(overlay, list, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}
