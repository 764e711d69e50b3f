package capture

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/device/tools/functions"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The table is patched after linking: a compiler that sees the whole program must
// read it all the same.
func TestTableWithLTO(t *testing.T) {
	readSources(t)
	for _, tt := range []struct{ backend, machine, compiler string }{
		{"fp", "x86-64", "gcc"}, {"fp", "x86-64", "clang"}, // fp reads no table: its size is checked alone
		{"riscv", "riscv64", "gcc"}, {"mips", "mips", "gcc"}, {"arm", "arm", "gcc"}, {"thumb", "thumb2", "gcc"}, {"aarch64", "aarch64", "gcc"},
	} {
		t.Run(tt.backend+" "+tt.machine+" "+tt.compiler, func(t *testing.T) {
			if tt.backend != "fp" && !cmdtest.Full() {
				t.Skip("LWSBT_FULL is not set")
			}
			table, out := runWithLTO(t, tt.backend, tt.machine, tt.compiler)
			if want := len(table.Start); out.functions != want {
				t.Errorf("the program has a table of %d functions, want %d", out.functions, want)
			}
			if want := f("third second first main"); len(out.names) < len(want) || !slices.Equal(out.names[:len(want)], want) {
				t.Errorf("captured %v, want %v", out.names, want)
			}
		})
	}
}

// What program/flto.c prints, with the names of the functions that it captured.
type captured struct {
	functions int
	names     []string
}

// runWithLTO builds program/flto.c, patches it and runs it.
func runWithLTO(t *testing.T, backend, name, cc string) (*functions.Table, captured) {
	t.Helper()
	m := machineOf(name)
	compiler := m.gcc
	if cc == "clang" {
		compiler = append(slices.Clone(m.clang), "-fuse-ld=lld")
		cmdtest.Need(t, "ld.lld")
	}
	cmdtest.Need(t, compiler[0])
	exe := filepath.Join(t.TempDir(), "flto")
	args := slices.Concat(compiler[1:], f("-O2 -flto -static -g0 -fno-omit-frame-pointer -I../../include -DLWSBT_CAPTURE_TABLE_ONLY -DLWSBT_FUNCTIONS_MAX=8000"),
		f("-DBACKEND=lwsbt_capture_"+backend+" program/flto.c ../../src/capture_"+backend+".c ../../src/capture_functions.c -o "+exe))
	if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table, err := functions.Patch(exe)
	if err != nil {
		t.Fatal(err)
	}
	command := []string{exe}
	if m.qemu != "" {
		cmdtest.Need(t, m.qemu)
		command = []string{m.qemu, exe}
	}
	out, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	symbols, err := readSymbols(exe)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(out), " functions\n")
	var c captured
	if c.functions, err = strconv.Atoi(first); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	for _, line := range f(rest) {
		pc, err := strconv.ParseUint(line, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		c.names = append(c.names, symbols.name(pc))
	}
	return table, c
}
