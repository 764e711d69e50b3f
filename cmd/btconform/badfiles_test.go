package main

import (
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestBadFiles(t *testing.T) {
	for _, args := range []func(file string) []string{
		func(file string) []string { return []string{file} },
		func(file string) []string { return []string{"list", file} },
		func(file string) []string { return []string{"--known", file} },
		func(file string) []string { return []string{"--", file} },
	} {
		cmdtest.BadFiles(t, run, args)
	}
}
