package conformance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The vectors notice plausible mistakes in testee.py, as written: one that they do not notice shows that a vector is
// missing. Without LWSBT_FULL, every 20th is tried, with it every 10th, and all with
// LWSBT_FULL=all.
func TestVectorsNoticeMutants(t *testing.T) {
	cmdtest.Need(t, "python3")
	source, err := os.ReadFile("example/testee.py")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")[1:]
	if len(lines) < 100 {
		t.Errorf("%d mutants, want 100 and more", len(lines))
	}
	for i, line := range lines {
		old, instead, _ := strings.Cut(strings.ReplaceAll(line, "¶", "\n"), "\t")
		if n := strings.Count(string(source), old); n != 1 {
			t.Errorf("testee.py has %q %d times, want 1", old, n)
			continue
		}
		if i%20 != 0 && !cmdtest.Full() || i%10 != 0 && !cmdtest.All() {
			continue
		}
		t.Run(instead, func(t *testing.T) {
			mutant := filepath.Join(t.TempDir(), "testee.py")
			if err := os.WriteFile(mutant, []byte(strings.Replace(string(source), old, instead, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			noticed := ""
			_, err := Run(ctx, builtinSet(t), Process([]string{"python3", mutant}, time.Minute), Options{Written: true, StrictReasons: true, Failed: func(r *Result) {
				noticed = r.ID
				cancel()
			}})
			if noticed == "" {
				t.Errorf("no vector notices %q instead of %q: %v", instead, old, err)
			}
		})
	}
}
