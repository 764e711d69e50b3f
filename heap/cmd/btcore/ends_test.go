package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// endsProgram allocates blocks of 1 to 64 bytes, from malloc or from the library, and
// then does what its argument names. It prints the address of each block.
const endsProgram = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lwsbt.h"

#ifdef WRAPPED
extern struct lwsbt_heap lwsbt_wrapped;
#define HEAP lwsbt_wrapped
#define ALLOCATE(n) malloc(n)
#else
static const struct lwsbt_allocator below = { malloc, realloc, free, NULL };
static struct { int before; struct { int one; struct lwsbt_heap pool; } inner[2]; } app;
#define HEAP app.inner[1].pool
#define ALLOCATE(n) lwsbt_heap_malloc(&HEAP, &below, n, __builtin_return_address(0))
#endif

char *blocks[64];
char *past;

__attribute__((noinline)) void stop(void) { __asm__ volatile(""); }
__attribute__((noinline)) char *make(size_t n) { return ALLOCATE(n); }

int main(int argc, char **argv)
{
	for (int i = 0; argc > 1 && strcmp(argv[1], "empty") && i < 64; i++) {
		blocks[i] = make((size_t)i + 1);
		memset(blocks[i], 'x', (size_t)i + 1);
		printf("%d %p\n", i + 1, (void *)blocks[i]);
	}
	if (argc > 1 && !strcmp(argv[1], "over"))
		for (int i = 0; i < 64; i++)
			if (HEAP.mark && (i + 1) % 16 != 8)
				blocks[i][i + 1] = 0;
	if (argc > 1 && !strcmp(argv[1], "ends")) { /* the blocks that head and tail lead to */
		memset(blocks[0] - 40, 'A', 40);
		memset(blocks[63] - 40, 'A', 40);
	}
	if (argc > 1 && !strcmp(argv[1], "past")) {
		past = blocks[39] + 40;
		blocks[39] = NULL;
		blocks[38] = NULL;
	}
	fflush(stdout);
	stop();
	return 0;
}
`

// endsCore builds and runs endsProgram, and returns a core file of it, its executable,
// and the addresses of its blocks by size.
func endsCore(t *testing.T, what string, flags ...string) (core, exe string, blocks map[int]uint64) {
	t.Helper()
	src, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	main := filepath.Join(dir, "main.c")
	exe, core = filepath.Join(dir, "app"), filepath.Join(dir, "core")
	if err := os.WriteFile(main, []byte(endsProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-g", "-O1", "-w", "-I", filepath.Join(src, "device/include"), "-o", exe, main}, flags...)
	for _, name := range strings.Fields("choose encode decode line head heap trim alloc dump") {
		args = append(args, filepath.Join(src, "device/src", name+".c"))
	}
	if strings.Contains(strings.Join(flags, " "), "-DWRAPPED") {
		args = append(args, filepath.Join(src, "device/adapters/wrap.c"), "-DLWSBT_WRAP_CAPTURE=NULL", "-Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc")
	}
	tool(t, "gcc", args...)
	truth := filepath.Join(dir, "truth.txt")
	out := tool(t, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run "+what+" > "+truth,
		"-ex", "generate-core-file "+core, exe)
	text, err := os.ReadFile(truth)
	if _, e := os.Stat(core); err != nil || e != nil {
		t.Skipf("gdb cannot make core files here: %s", out)
	}
	blocks = map[int]uint64{}
	for _, line := range strings.Split(string(text), "\n") {
		var n int
		var addr uint64
		if k, _ := fmt.Sscanf(line, "%d 0x%x", &n, &addr); k == 2 {
			blocks[n] = addr
		}
	}
	return core, exe, blocks
}

var endsBuilds = map[string][]string{
	"wrap.c":             {"-DWRAPPED"},
	"member of a static": nil,
}

// TestHeapIsFound checks that the list is found by the name of wrap.c's heap or by its
// type, also without any block or with the ends of the list overwritten.
func TestHeapIsFound(t *testing.T) {
	for name, flags := range endsBuilds {
		for what, least := range map[string]int{"empty": 0, "full": 64, "ends": 62} {
			t.Run(name+", "+what, func(t *testing.T) {
				if what != "ends" && !cmdtest.Full() {
					t.Skip("LWSBT_FULL is not set")
				}
				core, exe, _ := endsCore(t, what, flags...)
				code, out, errs := execute("heap", "--record", core, "-e", exe)
				want := cli.OK
				if what == "ends" {
					want = cli.Short
				}
				variable := "variable lwsbt_wrapped"
				if flags == nil {
					variable = "variable app"
				}
				if n := strings.Count(out, "~m#"); code != want || n < least || !strings.Contains(errs, variable) {
					t.Errorf("exit code %d, %d blocks, want %d by %s\n%s", code, n, least, variable, errs)
				}
			})
		}
	}
}

// TestWritesPastTheEnd checks that one byte written past the end of a block with a
// spare byte is reported with the block, and that the report names the unchecked blocks.
func TestWritesPastTheEnd(t *testing.T) {
	cmdtest.Long(t)
	for _, c := range []struct {
		name    string
		flags   []string
		checked func(size int) bool // whether spare bytes follow
	}{
		{"chunks", nil, func(size int) bool { return size%16 != 8 }}, // glibc's: 16 bytes, 8 of them its own
		{"words", []string{"-DLWSBT_WHOLE_CHUNKS=0"}, func(size int) bool { return size%8 != 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			testEnds(t, c.flags, c.checked)
		})
	}
}

func testEnds(t *testing.T, flags []string, checked func(size int) bool) {
	n := 0
	for size := 1; size <= 64; size++ {
		if checked(size) {
			n++
		}
	}
	core, exe, _ := endsCore(t, "full", flags...)
	_, out, _ := execute("heap", "--damage", core, "-e", exe)
	for _, want := range []string{"No damage found.", "Checked: the metadata of 64 blocks; up to",
		fmt.Sprintf("behind the end of %d blocks", n), fmt.Sprintf("short writes past the end of %d blocks without spare bytes", 64-n), "contents; freed memory"} {
		if !strings.Contains(strings.ReplaceAll(out, "\n ", ""), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	core, exe, blocks := endsCore(t, "over", flags...)
	code, out, errs := execute("heap", "--damage", core, "-e", exe)
	if code != cli.Short {
		t.Errorf("exit code %d: %s", code, errs)
	}
	hit := map[string]bool{}
	for _, m := range regexp.MustCompile(`Memory behind the block at (0x[0-9a-f]+) was overwritten:\n  - 1 of `).FindAllStringSubmatch(out, -1) {
		hit[m[1]] = true
	}
	for size, addr := range blocks {
		if hit[fmt.Sprintf("%#x", addr)] != (checked(size) && size%16 != 8) {
			t.Errorf("the block of %d bytes: reported %v", size, hit[fmt.Sprintf("%#x", addr)])
		}
	}
	if strings.Contains(out, "The metadata of the block") {
		t.Errorf("metadata is intact:\n%s", out)
	}
}

// TestPointerPastTheEnd checks that a block with only a pointer one past its end is
// uncertain, and a block without a pointer is leaked.
func TestPointerPastTheEnd(t *testing.T) {
	cmdtest.Long(t)
	core, exe, blocks := endsCore(t, "past", "-DWRAPPED")
	for kind, want := range map[string]uint64{"leaked": blocks[39], "uncertain": blocks[40]} {
		_, out, _ := execute("heap", "--only", kind, core, "-e", exe)
		if got := records(t, out); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %#x, want %#x", kind, got, want)
		}
	}
}
