// Package cmdtest is what the tests of the commands share.
package cmdtest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// Docs holds a document to what it says a command prints: each console block that
// calls it, against what run returns for the words behind its name. At least so
// many blocks must be there. If update, the document is written anew instead.
func Docs(t *testing.T, document, command string, least int, update bool, run func(args string) (out string, err error)) {
	t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```")
	ran := 0
	for i := 1; i < len(blocks); i += 2 {
		body, console := strings.CutPrefix(blocks[i], "console\n")
		line, want, _ := strings.Cut(body, "\n")
		args, ours := strings.CutPrefix(line, "$ "+command+" ")
		if !console || !ours {
			continue
		}
		ran++
		out, err := run(args)
		switch {
		case err != nil:
			t.Errorf("%s: %s: %v", document, line, err)
		case update:
			blocks[i] = "console\n" + line + "\n" + out
		case out != want:
			t.Errorf("%s: %s: %s\n(go test ./cmd/%s -run Docs -update writes it anew)",
				document, line, FirstDifference(out, want), command)
		}
	}
	if ran < least {
		t.Errorf("%s: %d commands ran, expected %d or more", document, ran, least)
	}
	if update {
		if err := os.WriteFile(document, []byte(strings.Join(blocks, "```")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// FirstDifference tells two texts apart that are not the same.
func FirstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// Buffer can be read while it is written to.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
