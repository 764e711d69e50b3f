package figures

import (
	"os"
	"path/filepath"
	"testing"
)

const document = `# Title

<!-- sizes: go test ./x -->

| a | 1,200 |

<!-- end of sizes -->

More.
`

func TestCut(t *testing.T) {
	before, table, after, err := cut(document, "sizes")
	if err != nil || before+"\n| b |\n"+after != "# Title\n\n<!-- sizes: go test ./x -->\n\n| b |\n\n<!-- end of sizes -->\n\nMore.\n" || table != "\n| a | 1,200 |\n\n" {
		t.Errorf("%q %q %q %v", before, table, after, err)
	}
	for name, text := range map[string]string{"size": document, "sizes": document + document, "x": "<!-- x -->\n| a |\n"} {
		if _, _, _, err := cut(text, name); err == nil {
			t.Errorf("%s in %q: no error", name, text)
		}
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct {
		name, old, table string
		within           float64
		differs          bool
	}{
		{"equal", "| a | 1 |", "| a | 1 |", 0, false},
		{"a number, exact", "| a | 10 |", "| a | 11 |", 0, true},
		{"a row more", "| a | 1 |", "| a | 1 |\n| b | 2 |", 0.5, true},
		{"a row less", "| a | 1 |\n| b | 2 |", "| a | 1 |", 0.5, true},
		{"just within", "| a | 1,000 |", "| a | 1,501 |", 0.5, false},
		{"just outside", "| a | 1,000 |", "| a | 1,502 |", 0.5, true},
		{"below", "| a | 1,502 |", "| a | 1,000 |", 0.5, true},
		{"the last digit", "| a | 0.1 |", "| a |  0.2 |", 0.1, false},
		{"other text", "| a | 1 s |", "| a | 1 ms |", 0.5, true},
	} {
		if got := difference(c.old, c.table, c.within); (got != "") != c.differs {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// recorder is a test that takes notes of its failures.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "FIGURES.md")
	if err := os.WriteFile(file, []byte(document), 0o644); err != nil {
		t.Fatal(err)
	}
	defer func(old bool) { *update = old }(*update)
	*update = false
	r := &recorder{TB: t}
	if Check(r, file, "sizes", "| a | 1,201 |\n"); !r.failed {
		t.Error("another table is taken for the one of the file")
	}
	*update = true
	Check(t, file, "sizes", "| a | 1,201 |\n")
	*update = false
	Check(t, file, "sizes", "\n| a | 1,201 |\n\n")
	CheckWithin(t, file, "sizes", "| a | 1,150 |\n", 0.1)
}
