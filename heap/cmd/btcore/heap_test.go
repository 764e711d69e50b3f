package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// deadProgram is [deadOf] for heap/core/testdata/heap.c. It returns the addresses of its blocks by kind.
func deadProgram(t *testing.T, flags ...string) (core, exe string, blocks map[string][]uint64) {
	t.Helper()
	core, exe, text := deadOf(t, "gcc", "../../core/testdata/heap.c", flags...)
	blocks = map[string][]uint64{}
	for _, line := range strings.Split(text, "\n") {
		var addr, size uint64
		var label string
		if n, _ := fmt.Sscanf(line, "live %x %d %s", &addr, &size, &label); n == 3 {
			if label != "kept" {
				label = "leaked"
			}
			blocks[label] = append(blocks[label], addr)
		}
	}
	return core, exe, blocks
}

// deadOf compiles a program with device/ and has gdb write a core file of it. It returns the program's output, too.
func deadOf(t *testing.T, compiler, program string, flags ...string) (core, exe, out string) {
	t.Helper()
	src, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	exe, core = filepath.Join(dir, "app"), filepath.Join(dir, "core")
	args := append([]string{"-g", "-O2", "-w", "-fexceptions", "-DON_DEVICE", "-I", filepath.Join(src, "device/include"), "-o", exe, program}, flags...)
	for _, name := range strings.Fields("choose encode decode line head event parse heap trim alloc dump") {
		args = append(args, filepath.Join(src, "device/src", name+".c"))
	}
	tool(t, compiler, args...)
	truth := filepath.Join(dir, "truth.txt")
	said := tool(t, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run > "+truth,
		"-ex", "generate-core-file "+core, exe)
	text, err := os.ReadFile(truth)
	if _, e := os.Stat(core); err != nil || e != nil {
		t.Skipf("gdb cannot make core files here: %s", said)
	}
	return core, exe, string(text)
}

// records returns the addresses of the ~m# lines of a recording in increasing order,
// and checks the lines around them.
func records(t *testing.T, out string) (list []uint64) {
	t.Helper()
	var begin, end codec.Header
	bytes := uint64(0)
	for _, line := range strings.Split(out, "\n") {
		var h codec.Header
		switch {
		case strings.HasPrefix(line, codec.LeadInHeader):
			if err := codec.ParseHeader(&h, []byte(line)); err != nil {
				t.Fatal(err)
			}
			switch h.Verb {
			case codec.VerbBegin:
				begin = h
			case codec.VerbEnd:
				end = h
			}
		case strings.HasPrefix(line, codec.LeadIn):
			var s codec.Stack
			var u codec.User
			blob, err := codec.Decoder{}.ParseLine(nil, []byte(line))
			if err == nil {
				err = codec.Decoder{}.Decode(&s, &u, blob)
			}
			if err != nil {
				t.Fatal(err)
			}
			addr, ok := u.Get(codec.TagAddress)
			if !ok || len(s.PCs) == 0 {
				t.Fatalf("%s: no address, or no stack", line)
			}
			bytes += s.Size
			list = append(list, addr)
		}
	}
	for _, h := range []codec.Header{begin, end} {
		n, _ := h.Uint("n")
		b, _ := h.Uint("b")
		if n != uint64(len(list)) || b != bytes {
			t.Errorf("%+v, but %d records of %d bytes", h, len(list), bytes)
		}
	}
	if why, _ := begin.Get("why"); why != "image" {
		t.Errorf("why=%s", why)
	}
	slices.Sort(list)
	return list
}

func TestHeapOfACore(t *testing.T) {
	core, exe, blocks := deadProgram(t)
	kept, leaked := blocks["kept"], blocks["leaked"]
	all := append(slices.Clone(kept), leaked...)
	for _, l := range [][]uint64{kept, leaked, all} {
		slices.Sort(l)
	}
	if len(kept) < 100 || len(leaked) != 11 {
		t.Fatalf("the program has %d and %d blocks", len(kept), len(leaked))
	}
	cases := 3 // each reads the core file
	if cmdtest.Full() {
		cases = 8
	}
	for _, c := range []struct {
		args string
		want []uint64
	}{
		{"--record", all},
		{"--only leaked", leaked},
		{"--only reachable", kept},
		{"--carve --record", all},
		{"--owner lwsbt_heap --record", all},
		{"--record -e " + exe, all},
		{"--only damaged", nil},
		{"--only uncertain", nil},
	}[:cases] {
		code, out, errs := execute(append([]string{"heap", core}, strings.Fields(c.args)...)...)
		if got := records(t, out); code != cli.OK || !slices.Equal(got, c.want) {
			t.Errorf("heap %s: exit code %d, %d records, want %d; %s", c.args, code, len(got), len(c.want), errs)
		}
		if !strings.Contains(out, "{{{module:0:"+exe+":elf:") {
			t.Errorf("heap %s: the program is not among the modules", c.args)
		}
	}
	// Contents of a block are not printed.
	for _, args := range [][]string{{"--leaks"}, {"--damage"}, {"--leaks", "--damage"}, nil} {
		if _, out, errs := execute(append([]string{"heap", core}, args...)...); strings.Contains(out+errs, "hunter2") {
			t.Errorf("heap %v prints the contents of a block", args)
		}
	}
	code, out, _ := execute("heap", core, "--leaks")
	for _, want := range []string{"11 blocks leaked, ", "  leak_some", "in 7 blocks", "in 4 blocks, 3 in a cycle: ", ", and 1 reachable only from these", "103 blocks reachable"} {
		if !strings.Contains(out, want) || code != cli.OK {
			t.Errorf("--leaks: exit code %d, no %q in\n%s", code, want, out)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--only lost", cli.Usage, `--only "lost": expected reachable, doubtful, uncertain, leaked, damaged`},
		{"--only leaked --leaks", cli.Usage, "--only is for recordings"},
		{"--owner none", cli.Usage, "--owner none: no variable of this name"},
		{"--owner 0x10", cli.Usage, "the owner at 0x10 is not in the image"},
		{"--ram nowhere", cli.Usage, "no such file"},
		{"--ram x=" + exe, cli.Usage, "expected 0xADDR=FILE"},
		{"-o " + core, cli.Usage, "same file as the input"},
		{"-o /nowhere/at/all", cli.Failed, "/nowhere/at/all"},
		{core, cli.Usage, "2 core files, expected one"},
	} {
		code, _, errs := execute(append([]string{"heap", core}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("heap %s: exit code %d, %q; want %d, %q", c.args, code, errs, c.code, c.want)
		}
	}
	if code, _, errs := execute("heap"); code != cli.Usage || !strings.Contains(errs, "no image") {
		t.Errorf("heap without arguments: exit code %d, %q", code, errs)
	}

	// Of a truncated core file, btcore prints the blocks that it has, and reports that
	// others are missing.
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, data[:len(data)-len(data)/3], 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := execute("heap", cut)
	if code == cli.OK || !strings.Contains(errs, "cut") {
		t.Errorf("a cut core file: exit code %d, %q", code, errs)
	}

	// Another file with the name of the program is not used: neither its symbols nor
	// its data.
	if err := exec.Command("cp", "/bin/true", exe).Run(); err != nil {
		t.Skip(err)
	}
	code, out, errs = execute("heap", "--carve", "--record", core)
	if got := records(t, out); code != cli.OK || !slices.Equal(got, all) || !strings.Contains(errs, "found by its blocks") {
		t.Errorf("another file instead of the program: exit code %d, %d records; %s", code, len(got), errs)
	}
	if _, out, _ = execute("heap", "--carve", core, "--leaks"); strings.Contains(out, "leak_some") {
		t.Error("names of a program that is gone")
	}
}

// For an image without a list of blocks, the error names the programs that have one.
func TestHeapOfAnotherProgram(t *testing.T) {
	ram := filepath.Join(t.TempDir(), "ram.bin")
	if err := os.WriteFile(ram, make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs := execute("heap", "--ram", "0x20000000="+ram, "-e", exe)
	if code != cli.Usage || !strings.Contains(errs, "no heap in this image: no list of libwebsockets or device/, and no heap of freertos") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestHeapHelp checks that help fits 80 columns.
func TestHeapHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"heap", "--help"}, {"stacks", "--help"}, {"functable", "--help"}} {
		code, out, _ := execute(args...)
		if code != cli.OK || !strings.Contains(out, "Exit codes:") {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
		if m := regexp.MustCompile(`(?m)^ {20,}(\S+ ?\S*)\n {20,}\S`).FindStringSubmatch(out); m != nil {
			t.Errorf("%v: %q stands alone in a line", args, m[1])
		}
		for _, line := range strings.Split(out, "\n") {
			if len(line) > 80 {
				t.Errorf("%v: over 80 columns: %s", args, line)
			}
		}
	}
}

// TestCountedByPath reads a program whose blocks are in no list, since device/ counts them by call path: they are those of its
// allocator, glibc. The program prints its live blocks.
func TestCountedByPath(t *testing.T) {
	cmdtest.Long(t)
	src, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	exe, core, truth := filepath.Join(dir, "app"), filepath.Join(dir, "core"), filepath.Join(dir, "truth.txt")
	args := []string{"-g", "-O2", "-w", "-fexceptions", "-DON_DEVICE", "-I", filepath.Join(src, "device/include"),
		"-o", exe, filepath.Join(src, "heap/core/testdata/profile.c")}
	for _, name := range strings.Fields("choose encode decode line head event parse heap trim alloc dump paths packet profile profile_blocks profile_dump sums device paths_head") {
		args = append(args, filepath.Join(src, "device/src", name+".c"))
	}
	tool(t, "gcc", args...)
	gdb := tool(t, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run > "+truth,
		"-ex", "generate-core-file "+core, exe)
	text, err := os.ReadFile(truth)
	if _, e := os.Stat(core); err != nil || e != nil {
		t.Skipf("gdb cannot make core files here: %s", gdb)
	}
	code, out, errs := execute("heap", core, "--blocks", "--json", "-e", exe)
	if code != cli.OK || !strings.Contains(errs, "table counts blocks by call path: its log has the table") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	var found []jsonBlock
	for line := range strings.Lines(out) {
		var b jsonBlock
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		found = append(found, b)
	}
	live := 0
	for line := range strings.Lines(string(text)) {
		var addr, size uint64
		if n, _ := fmt.Sscanf(line, "live %x %d", &addr, &size); n < 2 {
			continue
		}
		live++
		if !slices.ContainsFunc(found, func(b jsonBlock) bool {
			start, err := strconv.ParseUint(b.Addr, 0, 64)
			return err == nil && start < addr && addr+size <= start+b.Size && b.State != "leaked"
		}) {
			t.Errorf("the block at %#x of %d bytes is in none that is held", addr, size)
		}
	}
	if live < 100 {
		t.Errorf("%d live blocks", live)
	}
}
