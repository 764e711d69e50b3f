package forms

import (
	"os"
	"strings"
	"testing"
)

// TestRefusals reads reports that have no levels. testdata/refusals.txt has, behind ## and a name, a text of the refusal,
// and the report.
func TestRefusals(t *testing.T) {
	text, err := os.ReadFile("testdata/refusals.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split("\n"+string(text), "\n## ")[1:]
	for _, block := range blocks {
		name, rest, _ := strings.Cut(block, "\n")
		want, report, _ := strings.Cut(rest, "\n")
		if res := Read(strings.NewReader(report)); len(res.Heaps) > 0 || !strings.Contains(res.Refusal, want) {
			t.Errorf("%s: %d heaps, %q, expected a refusal with %q", name, len(res.Heaps), res.Refusal, want)
		}
	}
	if len(blocks) < 20 {
		t.Errorf("%d reports", len(blocks))
	}
}
