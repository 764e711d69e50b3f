//go:build linux

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// A recording that could not be written to its end, as where the disk is full, is no
// success, even where nothing is to be noted.
func TestCutRecording(t *testing.T) {
	program, dir := modes(t), t.TempDir()
	record := func(name string, args ...string) (code int, errs string) {
		var out, notes bytes.Buffer
		code = cli.Run(command(), append([]string{"-q", "-o", filepath.Join(dir, name), "--"}, args...), nil, &out, &notes)
		return code, notes.String()
	}
	if code, errs := record("whole.rec", program, "churn", "1600"); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	// The limit is the program's own: the test process, too, writes files.
	code, errs := record("cut.rec", "bash", "-c", `trap "" XFSZ; ulimit -f 3; exec "$0" churn 1600`, program)
	if code != 3 || !strings.Contains(errs, "the last dump was cut") && !strings.Contains(errs, "without a dump at the end") {
		t.Errorf("exit code %d, want 3: %q", code, errs)
	}
}
