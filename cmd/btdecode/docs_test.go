package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the documents' commands print into them")

// docs/btdecode.md prints what btdecode prints, of the example program.
func TestDocs(t *testing.T) {
	exe, log := heaplog(t)
	example := filepath.Join(filepath.Dir(exe), "heap.log")
	if err := os.WriteFile(example, []byte(onlyEncoded(log)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	cmdtest.Docs(t, "docs/btdecode.md", "btdecode", 3, *update, func(args string) (string, error) {
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
		if code != 0 {
			return "", fmt.Errorf("exit code %d: %s", code, errs)
		}
		return out, nil
	})
}
