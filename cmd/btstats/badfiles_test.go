package main

import (
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestBadFiles(t *testing.T) {
	cmdtest.BadFiles(t, run, func(file string) []string { return []string{file} })
}
