package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// gatewayCore has gdb write a core file of testdata/gateway.c.
func gatewayCore(t *testing.T) (core, exe string) {
	t.Helper()
	cmdtest.Need(t, "gcc", "gdb")
	dir := t.TempDir()
	core, exe = filepath.Join(dir, "core"), filepath.Join(dir, "app")
	tool(t, "gcc", "-g", "-O2", "-o", exe, "testdata/gateway.c")
	out := tool(t, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run", "-ex", "generate-core-file "+core, exe)
	if _, err := os.Stat(core); err != nil {
		t.Skipf("gdb cannot make core files here: %s", out)
	}
	return core, exe
}

// gatewayFirmware runs testdata/gateway.c on a board with newlib-nano, and goes to a directory with
// its files fw.elf and ram.bin.
func gatewayFirmware(t *testing.T) {
	t.Helper()
	exe, ram, _ := cmdtest.Board(t, "cortex-m3", "testdata/firmware", "-g", "-Os", "-DBARE", "--specs=nano.specs",
		"testdata/gateway.c", "../../core/alloc/testdata/bare.c")
	dir := t.TempDir()
	for name, from := range map[string]string{"fw.elf": exe, "ram.bin": ram} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestHolds compares the holders with what testdata/gateway.c has: 8 connections of 9 words with
// buffers of 17, in a list and a table; 16 sessions of 7 words with names of 5; a table of 21 words
// for 20 routes of 3; and 3 leaked headers of 11 words with values of 3.
func TestHolds(t *testing.T) {
	core, exe := gatewayCore(t)
	const word = 8
	code, out, errs := execute("holds", core, "-e", exe, "--json")
	if code != cli.OK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var got jsonHeld
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.Leaked != word*3*(11+3) || got.LeakedN != 6 || got.Blocks != 16+32+21+6 {
		t.Errorf("%d blocks, %d leaked with %d bytes", got.Blocks, got.LeakedN, got.Leaked)
	}
	held := map[string]uint64{}
	for _, h := range got.Holders {
		name := h.Holder
		if h.Shared {
			name = "shared"
			if h.Least != 9*word || h.Most != 9*word || len(h.Top) == 0 || h.Holder != "g_table" && h.Holder != "g_conns" {
				t.Errorf("%+v", h)
			}
		}
		held[name] += h.Bytes
	}
	for name, want := range map[string]uint64{"shared": word * 8 * (9 + 17), "g_sessions": word * 16 * (7 + 5), "g_routes": word * (21 + 20*3)} {
		if held[name] != want {
			t.Errorf("%s holds %d bytes, want %d", name, held[name], want)
		}
	}

	code, out, _ = execute("holds", core, "-e", exe)
	for _, want := range []string{"  g_sessions\n", "  g_routes\n", "336", "not reached: btcore heap --leaks\n", " × struct conn, shared: g_"} {
		if code != cli.OK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	code, out, _ = execute("holds", core, "-e", exe, "-n", "1")
	if code != cli.OK || !strings.Contains(out, "  g_sessions\n") || strings.Contains(out, "  g_routes\n") || !strings.Contains(out, "more holder") {
		t.Errorf("-n 1: exit code %d\n%s", code, out)
	}

	// The way to a buffer: from the table, through its connection.
	top := got.Holders[slices.IndexFunc(got.Holders, func(h jsonHolder) bool { return h.Shared })].Top[0]
	var addr uint64
	fmt.Sscanf(top, "0x%x", &addr)
	code, out, _ = execute("holds", core, "-e", exe, "--path", top)
	if code != cli.OK || !strings.HasPrefix(out, top+"  72 bytes  struct conn\n  in g_") || strings.Count(out, "\n") != 2 {
		t.Errorf("--path: exit code %d\n%s", code, out)
	}
	_, out, _ = execute("holds", core, "-e", exe, "--path", fmt.Sprintf("%#x", addr+72+8)) // the chunk behind it
	if lines := strings.Split(out, "\n"); len(lines) != 4 || !strings.HasSuffix(lines[0], "  136 bytes") || lines[1] != "  +40 of "+top+"  72 bytes  struct conn" {
		t.Errorf("--path of a buffer:\n%s", out)
	}

	for _, c := range []struct{ args, want string }{
		{"--path 0x10", "--path 0x10: in no block"},
		{"--path here", `--path "here": expected 0xADDR`},
		{"--path 0x10 --json", "--path: not with --json"},
		{"-n -1", "-n -1: expected 0 or more"},
		{"--allocator musl", "no heap of musl in this image"},
	} {
		if code, _, errs := execute(append([]string{"holds", core}, strings.Fields(c.args)...)...); code != cli.Usage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q; want %q", c.args, code, errs, c.want)
		}
	}
}
