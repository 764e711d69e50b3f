package main

import (
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestBadFiles(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, false))
	for _, args := range []func(file string) []string{
		func(file string) []string { return []string{"top", file} },
		func(file string) []string { return []string{"dumps", file} },
		func(file string) []string { return []string{"leaks", file} },
		func(file string) []string { return []string{"map", file} },
		func(file string) []string { return []string{"diff", "-q", log, file} },
		func(file string) []string { return []string{"top", "-e", file, log} },
		func(file string) []string { return []string{"top", "--maps", file, log} },
	} {
		cmdtest.BadFiles(t, run, args)
	}
}
