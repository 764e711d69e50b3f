package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// btcore functable writes the starts of the functions that nm lists into the program, which then finds them.
func TestFunctable(t *testing.T) {
	cmdtest.Need(t, "gcc", "nm", "strip")
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	if err := os.WriteFile(source, []byte(`#include "lwsbt.h"
#include <stdio.h>
int three(int a) { return a * 3; }
int main(void)
{
	const struct lwsbt_functions *t = lwsbt_function_table();
	size_t found = 0;
	for (size_t i = 0; t && i < t->count; i++)
		found += t->base + t->start[i] == (uintptr_t)three;
	printf("%zu %d\n", found, t != NULL);
	return 0;
}
`), 0o666); err != nil {
		t.Fatal(err)
	}
	build := func(options ...string) string {
		exe := filepath.Join(dir, "a")
		args := append([]string{"-no-pie", "-I", "../../../device/amalgamation", source, "../../../device/amalgamation/lwsbt.c", "-o", exe}, options...)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return exe
	}
	run := func(exe, want string) {
		t.Helper()
		if out, err := exec.Command(exe).Output(); err != nil || string(out) != want {
			t.Errorf("%v: %q, want %q", err, out, want)
		}
	}
	exe := build("-DLWSBT_FUNCTIONS_MAX=400")
	run(exe, "0 0\n")
	code, out, errs := execute("functable", exe)
	if code != cli.OK || out != "" || !strings.Contains(errs, " functions, 0x") {
		t.Fatalf("exit code %d, %q, %q", code, out, errs)
	}
	run(exe, "1 1\n")

	before, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ = execute("functable", "--c", exe)
	after, err := os.ReadFile(exe)
	if code != cli.OK || !strings.Contains(out, "const uint32_t lwsbt_function_starts[") || err != nil || !bytes.Equal(before, after) {
		t.Errorf("--c: exit code %d, %v, %.200q", code, err, out)
	}

	stripped := filepath.Join(dir, "stripped")
	if out, err := exec.Command("strip", "-o", stripped, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no ELF file"), 0o666); err != nil {
		t.Fatal(err)
	}
	small := build("-DLWSBT_FUNCTIONS_MAX=2")
	for _, c := range []struct{ path, want string }{
		{small, "compile with -DLWSBT_FUNCTIONS_MAX="},
		{stripped, "before strip"},
		{text, text + ": no ELF file"},
		{filepath.Join(dir, "none"), "no such file"},
	} {
		if code, _, errs := execute("functable", c.path); code != cli.Usage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q, want %q", c.path, code, errs, c.want)
		}
	}
	if code, _, errs := execute("functable", build()); code != cli.Usage || !strings.Contains(errs, "-DLWSBT_FUNCTIONS_MAX=N") {
		t.Errorf("without memory for a table: exit code %d, %q", code, errs)
	}
}
