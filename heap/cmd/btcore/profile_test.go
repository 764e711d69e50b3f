package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// pathSums adds up the ~p# lines of a recording, and checks the end of the dump.
func pathSums(t *testing.T, out string) (live, size uint64, paths int) {
	t.Helper()
	var end codec.Header
	lines := uint64(0)
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, callpath.LeadIn):
			lines++
			var l callpath.Line
			if err := l.Parse([]byte(line)); err != nil {
				t.Fatal(err)
			}
			for e := (callpath.Entry{}); l.Next(&e); paths++ {
				live, size = live+e.Live, size+e.Bytes
			}
		case strings.HasPrefix(line, codec.LeadIn):
			t.Errorf("a record of its own: %s", line)
		case strings.HasPrefix(line, "~h#end"):
			if err := codec.ParseHeader(&end, []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
	}
	n, _ := end.Uint("n")
	b, _ := end.Uint("b")
	l, _ := end.Uint("l")
	if n != live || b != size || l != lines {
		t.Errorf("%+v, but %d blocks of %d bytes in %d lines", end, live, size, lines)
	}
	return live, size, paths
}

// TestProfileOfACore prints the table of heap/core/testdata/profile.c, which prints its blocks itself.
func TestProfileOfACore(t *testing.T) {
	cmdtest.Long(t)
	src, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	exe, core, truth := filepath.Join(dir, "app"), filepath.Join(dir, "core"), filepath.Join(dir, "truth.txt")
	args := []string{"-g", "-O2", "-w", "-fexceptions", "-DON_DEVICE", "-I", filepath.Join(src, "device/include"),
		"-o", exe, filepath.Join(src, "heap/core/testdata/profile.c")}
	for _, name := range strings.Fields("choose encode decode line head event parse heap trim alloc dump paths packet profile profile_blocks profile_dump sums device paths_head") {
		args = append(args, filepath.Join(src, "device/src", name+".c"))
	}
	tool(t, "gcc", args...)
	gdb := tool(t, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run > "+truth,
		"-ex", "generate-core-file "+core, exe)
	text, err := os.ReadFile(truth)
	if _, e := os.Stat(core); err != nil || e != nil {
		t.Skipf("gdb cannot make core files here: %s", gdb)
	}
	blocks, bytes := uint64(0), uint64(0)
	labels := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var addr, size uint64
		var label string
		if n, _ := fmt.Sscanf(line, "live %x %d %s", &addr, &size, &label); n == 3 {
			blocks, bytes = blocks+1, bytes+size
			labels[label] = true
		}
	}
	if blocks < 100 {
		t.Fatalf("the program has %d blocks", blocks)
	}
	found := fmt.Sprintf("%d blocks of %d paths in the profile at ", blocks, len(labels))
	for _, flags := range []string{"", "-e " + exe, "--owner table"} {
		code, out, errs := execute(append([]string{"heap", core}, strings.Fields(flags)...)...)
		n, b, paths := pathSums(t, out)
		if code != cli.OK || n != blocks || b != bytes || paths != len(labels) || !strings.Contains(errs, found) {
			t.Errorf("heap %s: exit code %d, %d blocks of %d bytes in %d paths, the program has %d of %d in %d; %s",
				flags, code, n, b, paths, blocks, bytes, len(labels), errs)
		}
	}
	for _, flags := range []string{"--leaks", "--damage", "--only leaked"} {
		code, _, errs := execute(append([]string{"heap", core}, strings.Fields(flags)...)...)
		if code != cli.Usage || !strings.Contains(errs, "are in no list: not with --only, --by, --leaks or --damage") {
			t.Errorf("heap %s: exit code %d, %s", flags, code, errs)
		}
	}
}
