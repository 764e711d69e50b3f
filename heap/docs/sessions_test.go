// Package docs is the documents of the heap tools. Its test runs the commands that they show,
// and those of documents of the format that also need the heap tools.
package docs

import (
	"flag"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

func TestSessions(t *testing.T) {
	commands := []string{"../../cmd/btconform", "../../cmd/btstats", "../cmd/btdecode", "../cmd/btheap", "../cmd/btrecord", "../examples/largest"}
	cmdtest.Documents(t, "../..", commands, map[string]int{"leak.md": 8, "report.md": 7,
		"btdecode.md": 7, "btheap.md": 5, "btrecord.md": 3, "systems.md": 1, "../README.md": 6, "../../README.md": 7}, *update)
}

func TestLength(t *testing.T) {
	cmdtest.Short(t, "leak.md", "leaks.md", "report.md", "btdecode.md", "btheap.md", "btcore.md", "any-heap.md", "crash.md")
}

func TestLinks(t *testing.T) { cmdtest.Links(t, 30, "*.md", "../*.md") }

func TestPackages(t *testing.T) { cmdtest.Packages(t, "../..", 15, "*.md", "../*.md") }
