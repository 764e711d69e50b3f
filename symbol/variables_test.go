package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Link-time optimization renames static variables that several parts of a program use.
func TestVariablesOfOptimizedLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.c": "static int table[64]; int *a(int i) { return &table[i]; } int set(int i) { return table[i * 3] = i; }",
		"b.c": "static int table[32]; int *a(int), set(int); int main(int n, char **v) { table[n] = set(n); return *a(n) + table[n / 2] + !v; }",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][]string{
		{"gcc", "-flto", "-flto-partition=max", "-fno-inline"},
		{"clang", "-flto=thin", "-fuse-ld=lld", "-fno-inline"},
	} {
		t.Run(c[0], func(t *testing.T) {
			cmdtest.Need(t, c[0])
			if c[0] == "clang" {
				cmdtest.Need(t, "ld.lld")
			}
			exe := filepath.Join(dir, c[0])
			argv := append(c[1:], "-O2", "-w", "-o", exe, "a.c", "b.c")
			cmd := exec.Command(c[0], argv...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			f, err := Open(exe, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			list, _ := f.Variables("table")
			sizes := map[uint64]bool{}
			for _, v := range list {
				sizes[v.Size] = v.Name == "table"
			}
			if len(list) != 2 || !sizes[256] || !sizes[128] {
				t.Errorf("variables table: %+v", list)
			}
		})
	}
}
