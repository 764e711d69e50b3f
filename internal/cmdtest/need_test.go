package cmdtest

import (
	"os"
	"path/filepath"
	"testing"
)

// A compiler that does not find stdlib.h counts as missing.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, code := range map[string]string{"bare-linux-gnu-gcc": "exit 1", "whole-linux-gnu-gcc": "exit 0"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+code+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for program, want := range map[string]string{
		"":                         "",
		"sh -x":                    "",
		"nosuch":                   "nosuch is not installed",
		"bare-linux-gnu-gcc -O2":   "bare-linux-gnu-gcc has no C library",
		"whole-linux-gnu-gcc":      "",
		"nosuch-linux-gnu-gcc -m4": "nosuch-linux-gnu-gcc is not installed",
	} {
		if got := missing(program); got != want {
			t.Errorf("%q: %q, expected %q", program, got, want)
		}
	}
}
