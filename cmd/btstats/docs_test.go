package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const docs = "docs/btstats.md"

// Each console block of docs/btstats.md that calls btstats prints what the document
// says it does. -update writes what it does print.
func TestDocs(t *testing.T) {
	t.Chdir("../..")
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```")
	ran := 0
	for i := 1; i < len(blocks); i += 2 {
		body, console := strings.CutPrefix(blocks[i], "console\n")
		command, want, _ := strings.Cut(body, "\n")
		args, ours := strings.CutPrefix(command, "$ btstats ")
		if !console || !ours {
			continue
		}
		ran++
		var out, errs bytes.Buffer
		if code := run(strings.Fields(args), nil, &out, &errs); code != 0 {
			t.Errorf("%s: exit %d: %s", command, code, errs.String())
			continue
		}
		if *update {
			blocks[i] = "console\n" + command + "\n" + out.String()
		} else if out.String() != want {
			t.Errorf("%s: %s\n(go test ./cmd/btstats -run Docs -update writes it anew)", command, firstDifference(out.Bytes(), []byte(want)))
		}
	}
	if ran < 10 {
		t.Errorf("%d commands ran, expected 10 or more", ran)
	}
	if *update {
		if err := os.WriteFile(docs, []byte(strings.Join(blocks, "```")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
