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
	"github.com/lwsbt/lwsbt/internal/figures"
)

// modelFirmware runs heap/core/alloc/testdata/model.c, which has no line of this repository's
// library, on a board with newlib-nano. It returns the arguments for its image.
func modelFirmware(t *testing.T) []string {
	t.Helper()
	model, err := filepath.Abs("../../core/alloc/testdata")
	if err != nil {
		t.Fatal(err)
	}
	exe, ram, addr := cmdtest.Board(t, "cortex-m3", filepath.Join(model, "../../../cmd/btcore/testdata/firmware"),
		"-g", "-Os", "-DBARE", "--specs=nano.specs", filepath.Join(model, "model.c"), filepath.Join(model, "bare.c"))
	return []string{"--ram", fmt.Sprintf("%#x=%s", addr, ram), "-e", exe}
}

// The heap of an allocator: a recording, leaks, and what is said on it.
func TestHeapOfAnAllocator(t *testing.T) {
	image := modelFirmware(t)
	run := func(args ...string) (int, string, string) {
		return execute(append(append([]string{"heap"}, args...), image...)...)
	}
	code, out, errs := run("--record")
	if n := strings.Count(out, "\n~m#"); code != cli.OK || n != 282 || !strings.Contains(out, "~h#begin 0 n=282 b=") {
		t.Errorf("exit code %d, %d records; %s", code, n, errs)
	}
	for _, want := range []string{"newlib-nano at 0x2000", " bytes in 282 blocks, ", "proven: the blocks end at the end of the heap, which the variable at 0x2000"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
	code, out, _ = run("--allocator", "newlib-nano", "--leaks", "--damage")
	// 17 are leaked. An old word holds one; two are uncertain: 0x200013ac and 0x20001a2c have addresses 8 and 16 bytes in front of them.
	if code != cli.OK || !strings.Contains(out, "14 blocks leaked, ") || !strings.Contains(out, "2 blocks uncertain") || !strings.Contains(out, "266 blocks reachable") || !strings.Contains(out, "No damage found.") {
		t.Errorf("--leaks: exit code %d\n%s", code, out)
	}
	if strings.Contains(out, "call stack") {
		t.Errorf("call stacks, which this allocator does not store:\n%s", out)
	}
	for _, c := range []struct{ args, want string }{
		{"--allocator dlmalloc", `--allocator "dlmalloc": expected freertos`},
		{"--allocator freertos", "no heap of freertos in this image"},
		{"--allocator newlib-nano --carve", "--allocator: not with --owner or --carve"},
	} {
		if code, _, errs := run(strings.Fields(c.args)...); code != cli.Usage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q; want %q", c.args, code, errs, c.want)
		}
	}

	// Without the RAM of the heap, the error names it.
	exe := image[len(image)-1]
	part := filepath.Join(t.TempDir(), "part.bin")
	cut(t, strings.SplitN(image[1], "=", 2)[1], part, 0x1000)
	code, _, errs = execute("heap", "--ram", "0x20000000="+part, "-e", exe)
	if code == cli.OK {
		t.Errorf("RAM without the heap: exit code 0; %s", errs)
	}
	cut(t, strings.SplitN(image[1], "=", 2)[1], part, 0x3000)
	code, out, errs = execute("heap", "--leaks", "--ram", "0x20000000="+part, "-e", exe)
	if code != cli.Short || !strings.Contains(out, "No leaks are reported: newlib-nano is unproven") {
		t.Errorf("RAM with a part of the heap: exit code %d, %s\n%s", code, errs, out)
	}
}

// Errors name what is missing: memory, symbols, or the right file.
func TestFirmwareThatDoesNotFit(t *testing.T) {
	gatewayFirmware(t)
	cmdtest.Need(t, "arm-none-eabi-strip")
	tool(t, "arm-none-eabi-strip", "-o", "stripped.elf", "fw.elf")
	cut(t, "fw.elf", "cut.elf", 30000)
	cut(t, "ram.bin", "cut.bin", 2000)
	cut(t, "ram.bin", "none.bin", 16)
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"heap --ram 0x20004000=ram.bin -e fw.elf", cli.Short, []string{"the variable __malloc_sbrk_start is at 0x20000", "which is not in this image; it has 0x20004000 to 0x20014000"}},
		{"holds --ram 0x20000000=none.bin -e fw.elf", cli.Short, []string{"which is not in this image; it has 0x20000000 to 0x20000010"}},
		{"heap --leaks --ram 0x20000000=cut.bin -e fw.elf", cli.Short, []string{"this is not so: the free block at 0x20000", "is in the image\n"}},
		{"heap --ram 0x20000000=ram.bin -e stripped.elf", cli.Usage, []string{"no heap in this image", "freertos, newlib and picolibc need an ELF file with symbols"}},
		{"heap --ram 0x20000000=ram.bin -e cut.elf", cli.Usage, []string{"cut.elf: malformed ELF: the file ends early", "no heap in this image"}},
		{"heap --ram 0x20000000=ram.bin -e fw.elf --allocator freertos", cli.Usage, []string{"no heap of freertos in this image; is it the program of this image?"}},
		{"heap --ram 0x20000000=ram.bin", cli.Usage, []string{"give the ELF file of the program"}},
	} {
		code, _, errs := execute(strings.Fields(c.args)...)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.args, code, c.code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: no %q in %s", c.args, want, errs)
			}
		}
		if strings.Contains(errs, "btcore: EOF") {
			t.Errorf("%s: %s", c.args, errs)
		}
	}
}

// cut copies the beginning of a file.
func cut(t *testing.T, from, to string, size int) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data[:size], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The commands of heap/docs/any-heap.md.
func TestAnyHeapDocs(t *testing.T) {
	document, err := filepath.Abs("../../docs/any-heap.md")
	if err != nil {
		t.Fatal(err)
	}
	cmdtest.Need(t, "gdb")
	core, exe, _ := firstWords(t, "gcc", "objects.c", "-O2", "-g")
	gatewayFirmware(t)
	for name, file := range map[string]string{"core": core, "app": exe} {
		if err := os.Symlink(file, name); err != nil {
			t.Fatal(err)
		}
	}
	numbers := regexp.MustCompile(`0x[0-9a-f]+|\b[\d,]+ (bytes|free)|largest [\d,]+|have \d+|(?m)^ +[\d,]+ +[\d.]+`) // they depend on the compiler
	cmdtest.Session{Document: document, Least: 2, Update: figures.Update(),
		Plain: func(s string) string { return numbers.ReplaceAllString(s, "#") },
		Run: func(_ *testing.T, line string) (string, error) {
			args := strings.Fields(line)
			if args[0] != "btcore" {
				return "", fmt.Errorf("expected btcore")
			}
			code, out, errs := execute(args[1:]...)
			if code > cli.Short {
				return out, fmt.Errorf("exit code %d: %s", code, errs)
			}
			if out == "" {
				out = errs
			}
			return out, nil
		},
	}.Test(t)
}
