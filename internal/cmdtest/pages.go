package cmdtest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var pages = flag.String("pages", "", "write man pages and completions to `DIR`")

// Pages checks that a command and all its subcommands have a man page, and help of at most 80
// columns, and that the shells have completions. With -pages DIR it writes them to DIR/man1 and
// DIR/completions, for packages:
//
//	go test ./cmd/btstats -run TestPages -pages DIR
func Pages(t *testing.T, root *cobra.Command) {
	t.Helper()
	dir := *pages
	if dir == "" {
		dir = t.TempDir()
	}
	man, shell := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{man, shell} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root.DisableAutoGenTag = true // a page is the same whenever it is made
	header := &doc.GenManHeader{Section: "1", Source: "lwsbt", Manual: "lwsbt"}
	if err := doc.GenManTree(root, header, man); err != nil {
		t.Fatal(err)
	}
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(man, name+".1"))
		if err != nil || !bytes.Contains(page, []byte(".SH SYNOPSIS")) {
			t.Errorf("%s: no man page: %v", c.CommandPath(), err)
		}
		var help bytes.Buffer
		c.SetOut(&help)
		if err := c.Help(); err != nil || help.Len() == 0 {
			t.Errorf("%s: no help: %v", c.CommandPath(), err)
		}
		for line := range strings.Lines(help.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s --help: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				all(sub)
			}
		}
	}
	all(root)
	for _, s := range []struct {
		file  string
		write func(string) error
	}{
		{root.Name() + ".bash", func(f string) error { return root.GenBashCompletionFileV2(f, true) }},
		{"_" + root.Name(), root.GenZshCompletionFile},
		{root.Name() + ".fish", func(f string) error { return root.GenFishCompletionFile(f, true) }},
	} {
		if err := s.write(filepath.Join(shell, s.file)); err != nil {
			t.Error(err)
		}
	}
}
