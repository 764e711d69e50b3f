package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files are read in the order of their dates, or of the numbers in their names.
func TestOrderOfFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	thu, mon := file("thu.log", "2026-03-05 10:00:00 free heap: 4\n"), file("mon.log", "# a comment\n2026-03-02 10:00:00 free heap: 5\n")
	ten, nine := file("jeprof.4711.10.i10.heap", ""), file("jeprof.4711.9.i9.heap", "")
	for _, c := range []struct {
		files, want []string
		told        bool
	}{
		{[]string{thu, mon}, []string{mon, thu}, true},
		{[]string{ten, nine}, []string{nine, ten}, true},
		{[]string{ten, thu}, []string{ten, thu}, false},
	} {
		if got, told := inOrder(c.files); !slices.Equal(got, c.want) || told != c.told {
			t.Errorf("%q: %q, %t", c.files, got, told)
		}
	}
}

// Five logs of a day each, in the order of a shell, are one series of one boot.
func TestDailyLogs(t *testing.T) {
	logs, err := filepath.Glob("../../heaplog/testdata/field/daily-files/*.log")
	if err != nil || len(logs) != 5 {
		t.Fatal(logs, err)
	}
	out, errs, code := command("", append([]string{"leaks", "-q"}, logs...)...)
	if code != 0 || !strings.Contains(out, "the heap leaks in 720 reports") || !strings.Contains(out, "76,860") || strings.Contains(out, "boots") {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
}
