package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestBadFiles(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte(record+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []func(file string) []string{
		func(file string) []string { return []string{file} },
		func(file string) []string { return []string{"-e", file, log} },
		func(file string) []string { return []string{"--maps", file, log} },
	} {
		cmdtest.BadFiles(t, run, args)
	}
}
