package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the documents' commands print into them")

// Each console block of docs/btdecode.md that calls btdecode prints what the
// document says it does. -update writes what it does print.
func TestDocs(t *testing.T) {
	const docs = "docs/btdecode.md"
	exe, log := heaplog(t)
	example := filepath.Join(filepath.Dir(exe), "heap.log")
	if err := os.WriteFile(example, []byte(onlyEncoded(log)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```")
	ran := 0
	for i := 1; i < len(blocks); i += 2 {
		body, console := strings.CutPrefix(blocks[i], "console\n")
		line, want, _ := strings.Cut(body, "\n")
		args, ours := strings.CutPrefix(line, "$ btdecode ")
		if !console || !ours {
			continue
		}
		ran++
		fields := strings.Fields(strings.ReplaceAll(args, "'", ""))
		for n, f := range fields {
			switch f {
			case "heaplog":
				fields[n] = exe
			case "heap.log":
				fields[n] = example
			}
		}
		out, errs, code := command("", fields...)
		switch {
		case code != 0:
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		case *update:
			blocks[i] = "console\n" + line + "\n" + out
		case out != want:
			t.Errorf("%s:\ngot\n%s\nwant\n%s\n(go test ./cmd/btdecode -run Docs -update writes it anew)", line, out, want)
		}
	}
	if ran < 3 {
		t.Errorf("%d commands ran, expected 3 or more", ran)
	}
	if *update {
		if err := os.WriteFile(docs, []byte(strings.Join(blocks, "```")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
