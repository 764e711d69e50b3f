// Package mutants holds the tests to the numbers of the code: each line of mutants.txt is a plausible mistake, and the
// tests of its package must notice it.
package mutants

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A mutant replaces the only occurrence of old in a file. The tests of packages must then fail.
type mutant struct {
	file, old, new string
	packages       []string
}

// table returns the mutants of mutants.txt: fields separated by tabs, the file, the text, its replacement, and the
// packages with the tests that notice it.
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
	if len(list) < 15 {
		t.Fatalf("%d mutants, want 15 and more", len(list))
	}
	return list
}

// Each mutant is of code that is there, once.
func TestTable(t *testing.T) {
	for _, m := range table(t) {
		text, err := os.ReadFile(filepath.Join("../..", m.file))
		if n := strings.Count(string(text), m.old); err != nil || n != 1 {
			t.Errorf("%s has %q %d times, want 1: %v", m.file, m.old, n, err)
		}
	}
}

// The tests notice each mutant. The file is replaced for the compiler alone, by go's -overlay.
func TestMutants(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("LWSBT_FULL is not all")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range table(t) {
		t.Run(filepath.Base(m.file)+" "+strings.TrimSpace(m.new), func(t *testing.T) {
			path := filepath.Join(root, m.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			mutated, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			list, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
			if err == nil {
				err = os.WriteFile(overlay, list, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", append([]string{"test", "-failfast", "-overlay", overlay}, m.packages...)...)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "LWSBT_FULL=")
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("no test of %v notices %q instead of %q", m.packages, m.new, m.old)
			case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
				t.Errorf("the mutant does not compile: %s", out)
			}
		})
	}
}
