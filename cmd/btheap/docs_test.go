package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the documents' commands print into them")

var word = regexp.MustCompile(`'[^']*'|\S+`)

// docs/btheap.md prints what btheap prints, of the example program.
func TestDocs(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed")
	}
	dir := t.TempDir()
	exe := filepath.Join(dir, "heaplog")
	if out, err := exec.Command(cc, "-std=c11", "-g", "-O2", "-o", exe, "../../examples/heaplog/heaplog.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, err := exec.Command(exe, "4").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "heap.log"), log, 0o644); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	out, _, code := command("", "growth", "-q", "-s", "-e", "heaplog", "--split", "connections open", "--hide", "^(heap_alloc|_start|0x.*)$", "heap.log")
	if code != 0 || !strings.Contains(string(readme), "heap.log\n"+out+"```") {
		t.Errorf("README.md does not show what btheap growth prints, exit code %d:\n%s", code, out)
	}
	t.Chdir(filepath.Join(here, "../.."))
	cmdtest.Docs(t, "docs/btheap.md", "btheap", 3, *update, func(args string) (string, error) {
		var list []string
		for _, w := range word.FindAllString(args, -1) {
			list = append(list, strings.Trim(w, "'"))
		}
		os.Chdir(dir) // where heaplog and heap.log are
		defer os.Chdir(filepath.Join(here, "../.."))
		out, errs, code := command("", list...)
		if code != 0 {
			return "", fmt.Errorf("exit code %d: %s", code, errs)
		}
		return out, nil
	})
}
