package render

import (
	"os"
	"strings"
	"testing"
)

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
