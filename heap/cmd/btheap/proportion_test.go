package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// What a command allocates is in proportion to the log, not to the frames of the call paths: one
// more call path of 1,000 frames takes 11 bytes of log, and a number for each of its frames would
// be 400 bytes per byte at least.
func TestProportion(t *testing.T) {
	if testing.Short() {
		t.Skip("with the race detector, pools keep nothing")
	}
	dir := t.TempDir()
	file := func(dumps, paths int) string {
		name := filepath.Join(dir, fmt.Sprintf("%d-%d.log", dumps, paths))
		if err := os.WriteFile(name, cmdtest.DeepLog(t, dumps, paths, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const few, many = 1000, 4000
	for _, c := range []struct {
		dumps int
		args  string
	}{
		{1, "top"}, {1, "top --stacks"}, {1, "top --json"}, {1, "top --by module"},
		{1, "dumps"}, {1, "html"}, {1, "html --by function"}, {3, "leaks"}, {3, "diff"}, {3, "html"},
	} {
		t.Run(c.args, func(t *testing.T) {
			measure := func(paths int) (allocated uint64, size int64) {
				name := file(c.dumps, paths)
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				var stderr bytes.Buffer
				runtime.ReadMemStats(&before)
				code := run(append(strings.Fields(c.args), name), strings.NewReader(""), io.Discard, &stderr)
				runtime.ReadMemStats(&after)
				if code != 0 {
					t.Fatalf("exit %d: %s", code, &stderr)
				}
				return after.TotalAlloc - before.TotalAlloc, info.Size()
			}
			a, n := measure(few)
			b, m := measure(many)
			perByte := float64(int64(b)-int64(a)) / float64(m-n)
			t.Logf("%d and %d bytes of log: %d and %d bytes allocated, %.0f per further byte", n, m, a, b, perByte)
			if perByte > 350 {
				t.Errorf("%.0f bytes allocated per byte of log, want at most 350", perByte)
			}
		})
	}
}
