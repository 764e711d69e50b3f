package main

import (
	"strings"
	"testing"
)

// Profiles whose stacks are the holders of blocks, of a program with 16 and with 40 connections, so
// that the second has 48 sessions more, of 7 words, with names of 5, and 8 lost headers more, of 11 words
// with values of 3.
func TestDiffOfHolders(t *testing.T) {
	out, errs, code := command("", "diff", "-n", "0", "testdata/held-16.pb.gz", "testdata/held-40.pb.gz")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{
		"+2,688 bytes, +48 allocations: 1,792 → 4,480 bytes\n    block of 56 bytes\n    g_sessions\n",
		"+1,920 bytes, +48 allocations: 1,280 → 3,200 bytes\n    block of 40 bytes\n    block of 56 bytes\n    g_sessions\n",
		"+704 bytes, +8 allocations: 440 → 1,144 bytes\n    block of 88 bytes\n    leaked\n",
		"+192 bytes, +8 allocations: 120 → 312 bytes\n    block of 24 bytes\n    leaked\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "g_routes") {
		t.Errorf("the routes did not grow:\n%s", out)
	}
	page, errs, code := command("", "html", "-o", "-", "testdata/held-40.pb.gz")
	if code != 0 || !strings.Contains(page, "g_sessions") || !strings.Contains(page, "shared: g_table") {
		t.Errorf("html: exit code %d, %d bytes: %s", code, len(page), errs)
	}
}
