// Package docs is the documents of the heap tools. Its test runs the commands that they show,
// and those of documents of the format that also need the heap tools.
package docs

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

func TestSessions(t *testing.T) {
	commands := []string{"../../cmd/btconform", "../../cmd/btstats", "../cmd/btdecode", "../cmd/btheap", "../cmd/btrecord", "../examples/largest"}
	cmdtest.Documents(t, "../..", commands, map[string]int{"live.md": 7, "ci.md": 4, "leak.md": 6, "leaks.md": 1, "map.md": 3, "report.md": 7,
		"btdecode.md": 2, "btheap.md": 2, "btrecord.md": 5, "library.md": 2, "systems.md": 2, "../README.md": 5, "../../README.md": 8, "../../docs/notes/units.md": 2}, *update)
}

func TestLength(t *testing.T) {
	cmdtest.Short(t, "live.md", "leak.md", "leaks.md", "map.md", "report.md", "ci.md", "btdecode.md", "btheap.md", "btcore.md", "any-heap.md")
}

func TestLinks(t *testing.T) { cmdtest.Links(t, 30, "*.md", "../*.md") }

func TestPackages(t *testing.T) { cmdtest.Packages(t, "../..", 15, "*.md", "../*.md") }

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
