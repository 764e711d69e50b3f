package render

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The failure shown in README.md is what Explain writes, except for the words of the clause.
func TestReadmeFailure(t *testing.T) {
	report := goldenReport(t)
	text, err := os.ReadFile("../../../../conformance/README.md")
	if err != nil {
		t.Fatal(err)
	}
	indented := regexp.MustCompile(`(?m)^    `).ReplaceAllString(string(text), "")
	_, shown, _ := strings.Cut(indented, "FAIL delta/back-3 ")
	shown, _, _ = strings.Cut(shown, "  again:")
	for i, r := range report.Results {
		if r.ID != "delta/back-3" {
			continue
		}
		lines := strings.Join(Explain(&report.Results[i]), "\n")
		for _, line := range strings.Split(strings.TrimSpace(shown), "\n")[2:] {
			if !strings.Contains(lines, strings.TrimSuffix(line, " …")) {
				t.Errorf("README.md shows %q, which is not in\n%s", line, lines)
			}
		}
		return
	}
	t.Error("README.md shows no such failure")
}

// README.md names every format.
func TestReadmeNamesFormats(t *testing.T) {
	text, err := os.ReadFile("../../../../conformance/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		if !strings.Contains(string(text), "`"+f+"`") {
			t.Errorf("README.md lacks `%s`", f)
		}
	}
}
