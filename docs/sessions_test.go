// Package docs is the documents of the format. Its test runs the commands that they show.
package docs

import (
	"flag"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

func TestSessions(t *testing.T) {
	cmdtest.Documents(t, "..", []string{"../cmd/btstats"}, map[string]int{"btstats.md": 5}, *update)
}

func TestLength(t *testing.T) { cmdtest.Short(t, "btstats.md") }

func TestPackages(t *testing.T) {
	cmdtest.Packages(t, "..", 30, "*.md", "notes/*.md", "../*.md", "../*/README.md", "../fleet/docs/*.md")
}

func TestLinks(t *testing.T) {
	cmdtest.Links(t, 50, "*.md", "notes/*.md", "../*.md", "../*/README.md", "../spec/*.md", "../conformance/btv/README.md")
}
