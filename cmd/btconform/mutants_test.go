package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func runArgs(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestMutants(t *testing.T) {
	cmdtest.Long(t)
	code, out, errs := runArgs(t, "mutants")
	if code != cli.OK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"no-spill: fields have their nominal width: the README taken at its word\n    killed by ",
		" encoders, 0 of them survive ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	decoders, encoders := 0, 0
	last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
	if _, err := fmt.Sscanf(last, "%d decoders and %d encoders,", &decoders, &encoders); err != nil || decoders < 500 || encoders < 140 {
		t.Errorf("%s: %d decoders and %d encoders, expected 500 and 140 or more: %v", last, decoders, encoders, err)
	}
	for _, line := range strings.Split(out, "\n") {
		if len([]rune(line)) > 90 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}

// One vector alone leaves nearly all alive, and that is exit code 1.
func TestMutantsSurvive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.btv")
	const text = "btv 1\n\nid: a/b\nclause: BT-BLOB-2\nop: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runArgs(t, "mutants", file)
	if code != cli.Short || !strings.Contains(out, "sign-flipped: 0 subtracts, 1 adds\n    SURVIVES") ||
		!strings.Contains(out, "length-excludes-itself: ") || !strings.Contains(out, "killed by 1: a/b") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestMatrix(t *testing.T) {
	code, out, errs := runArgs(t, "matrix", "../../ref-c/vectors")
	if code != cli.OK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	if !strings.Contains(out, "x86_64-clang14-O2") || !strings.Contains(out, "  A  ours\n") {
		t.Errorf("unexpected:\n%s", out)
	}
}

func TestMatrixUsage(t *testing.T) {
	for _, args := range [][]string{
		{"matrix", "--record", "x", "../../ref-c/vectors"},
		{"matrix", "../../ref-c/vectors", "--", "true"},
		{"matrix", "no-such-directory"},
	} {
		if code, _, errs := runArgs(t, args...); code != cli.Usage || errs == "" {
			t.Errorf("%q: exit %d, %q; want %d and why", args, code, errs, cli.Usage)
		}
	}
}
