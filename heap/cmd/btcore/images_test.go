package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestImages reads RAM of boards with allocators of others. The ELF files have only symbols and sections. In each, 699 blocks
// are in use.
func TestImages(t *testing.T) {
	for _, c := range []struct {
		name, args string
		code       int
		want, not  []string
	}{
		// .ccm, 48 bytes of another memory, holds 99 blocks; 279 are leaked.
		{"ccm", "--leaks", cli.Short, []string{"0 blocks leaked", "378 blocks uncertain", ".ccm, 0x21800000 to 0x21800030, 48 bytes, writable: add it by --ram 0x21800000=FILE"}, nil},
		{"ccm", "--leaks --ram 0x21800000=ccm-ccm.bin", cli.OK, []string{"279 blocks leaked, 26,208 bytes"}, []string{"not in the image"}},
		// Three regions of heap_5; free blocks took the place of the end marks in the list.
		{"heap5", "--leaks", cli.OK, []string{"in 699 blocks", "proven: "}, nil},
		// A freed block's link was overwritten by "user".
		{"uaf", "--damage", cli.Short, []string{"1 damaged place in a heap of 699 blocks", "0x200151c0, a link in freed memory", `the text "user`, "is free: it was written after it was freed"},
			[]string{"proven", "past\n  its end"}},
		{"uaf", "--leaks", cli.Short, []string{"279 blocks leaked, 26,208 bytes"}, nil},
		// Three heaps of ESP-IDF; the contents look like blocks of libwebsockets.
		{"phantom", "--leaks", cli.OK, []string{"in 239 blocks", "in 223 blocks", "in 238 blocks"}, []string{"call stack"}},
	} {
		t.Run(c.name+" "+c.args, func(t *testing.T) {
			dir := filepath.Join("testdata", "images")
			args := append([]string{"heap", "--ram", "0x20000000=" + filepath.Join(dir, c.name+".bin.gz"), "-e", filepath.Join(dir, c.name+".elf")},
				strings.Fields(strings.ReplaceAll(c.args, "=ccm", "="+filepath.Join(dir, "ccm")))...)
			code, out, errs := execute(args...)
			compareOutput(t, code, c.code, out+errs, c.want, c.not)
		})
	}
}

// TestEachBlock compares the state of each block of an image with the table that the program wrote: phantom.txt has the 230 blocks
// that it had leaked, with their requested sizes. "old": by its table of pointers, no variable or block that it still had
// leads to the block, but a word of RAM does that lies in one of these blocks beyond the requested bytes, or that
// it wrote only in part. Such a block may be uncertain or doubtful. The others are found.
func TestEachBlock(t *testing.T) {
	dir := filepath.Join("testdata", "images")
	text, err := os.ReadFile(filepath.Join(dir, "phantom.txt"))
	if err != nil {
		t.Fatal(err)
	}
	leaked := map[string]bool{} // whether an old word leads to the block
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		leaked[f[0]] = len(f) == 3
	}
	_, out, errs := execute("heap", "--ram", "0x20000000="+filepath.Join(dir, "phantom.bin.gz"), "-e", filepath.Join(dir, "phantom.elf"), "--blocks", "--json")
	counts := map[string]int{}
	for line := range strings.Lines(out) {
		var b jsonBlock
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		old, leak := leaked[b.Addr]
		switch {
		case !leak && b.State == "leaked", leak && b.State == "reachable", leak && !old && b.State != "leaked":
			t.Errorf("%s is %s; leaked: %v, an old word leads to it: %v", b.Addr, b.State, leak, old)
		case leak:
			counts[b.State]++
			delete(leaked, b.Addr)
		default:
			counts["others"]++
		}
	}
	// All, with a block of ESP-IDF itself. 189 is a measured number: fewer would be a loss.
	if len(leaked) > 0 || counts["others"] != 699-230+1 || counts["leaked"] < 189 {
		t.Errorf("%v; %d leaks are in no block; %s", counts, len(leaked), errs)
	}
	t.Log(counts)
}

func compareOutput(t *testing.T, code, wantCode int, out string, want, not []string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("exit code %d, want %d", code, wantCode)
	}
	for _, x := range want {
		if !strings.Contains(out, x) {
			t.Errorf("no %q", x)
		}
	}
	for _, x := range not {
		if strings.Contains(out, x) {
			t.Errorf("%q is in it", x)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// dumped compiles a program of testdata/programs, which aborts, and returns the core file of the kernel.
func dumped(t *testing.T, compiler, name string, flags []string, args ...string) (core, exe string) {
	t.Helper()
	cmdtest.Need(t, compiler, "bash")
	dir := t.TempDir()
	exe = filepath.Join(dir, "app")
	tool(t, compiler, append([]string{"-g", "-O1", "-w", "-o", exe, filepath.Join("testdata", "programs", name)}, flags...)...)
	return crashed(t, dir, "./app "+strings.Join(args, " ")), exe
}

// crashed runs a command that aborts, and returns its core file.
func crashed(t *testing.T, dir, command string) string {
	t.Helper()
	c := exec.Command("bash", "-c", "ulimit -c unlimited; exec "+command)
	c.Dir = dir
	c.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.malloc.tcache_count=7")
	out, _ := c.CombinedOutput() // it aborts
	list, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(list) != 1 {
		t.Skipf("the kernel writes no core file here: %s", out)
	}
	return list[0]
}

// TestDamagedPrograms reads core files of programs that damage their heap, or hold blocks by memory that is not in the
// core file. The comments of the programs have the truth.
func TestDamagedPrograms(t *testing.T) {
	for _, c := range []struct {
		compiler, name, args string
		code                 int
		want, not            []string
	}{
		{"gcc", "freed.c", "f", cli.Short, []string{"30 blocks leaked, 9,360 bytes", "143 blocks uncertain", "1 damaged place in", "a link in freed memory", `the text "user name here..`}, []string{"proven"}},
		{"gcc", "freed.c", "t", cli.Short, []string{"30 blocks leaked, 9,360 bytes", "1 damaged place in"}, []string{"uncertain"}},
		{"gcc", "freed.c", "b", cli.Short, []string{"30 blocks leaked, 9,360 bytes", "1 damaged place in"}, []string{"uncertain"}},
		{"gcc", "onebyte.c", "", cli.Short, []string{"0 blocks leaked", "24 blocks reachable", "The bytes go on from the end of the block before it", "24 bytes"}, nil},
		{"musl-gcc", "spare.c", "", cli.OK, []string{"0 blocks leaked"}, nil},
		{"gcc", "absent.c", "absent", cli.Short, []string{"0 blocks leaked", "60 blocks uncertain", "shared.bin, 0x", "a mapping that the core file omits"}, nil},
		{"gcc", "readonly.c", "", cli.Short, []string{"0 blocks leaked", "30 blocks uncertain", "shared.bin, 0x"}, nil},
		{"gcc", "readonly.c", "all", cli.OK, []string{"10 blocks leaked, 1,040 bytes", "20 blocks reachable"}, []string{"uncertain"}},
		{"gcc", "outside.c", "", cli.OK, []string{"42 blocks leaked, 7,248 bytes", "25 blocks uncertain", "the program calls epoll_ctl: a block whose address only the kernel has looks leaked"}, nil},
		{"gcc", "absent.c", "", cli.OK, []string{"20 blocks leaked, 2,080 bytes", "20 blocks reachable"}, []string{"uncertain"}},
	} {
		t.Run(c.name+" "+c.args, func(t *testing.T) {
			core, exe := dumped(t, c.compiler, c.name, nil, strings.Fields(c.args)...)
			code, out, errs := execute("heap", "--leaks", "--damage", core, "-e", exe)
			compareOutput(t, code, c.code, out+errs, c.want, c.not)
		})
	}
}

// TestDeletedTask reads blocks that only the stack of a task has that deleted itself (programs/deleted.c): they may be leaked. The others,
// with four control blocks and stacks, are not.
func TestDeletedTask(t *testing.T) {
	_, out, errs := execute("heap", "--ram", "0x20000000="+filepath.Join("testdata", "images", "deleted.bin.gz"), "-e", filepath.Join("testdata", "images", "deleted.elf"), "--blocks", "--json")
	doubtful, reachable := 0, 0
	for line := range strings.Lines(out) {
		var b jsonBlock
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		switch {
		case b.State == "doubtful" && b.Size == 72:
			doubtful++
		case b.State == "reachable":
			reachable++
		}
	}
	if doubtful != 12 || reachable != 20 {
		t.Errorf("%d doubtful, want 12; %d reachable, want 20\n%s%s", doubtful, reachable, out, errs)
	}
}

// TestOldStacks reads blocks that programs/oldstack.c lost. What is in the unused parts of its tasks' stacks is old; without
// the memory in which the processor's own stack ends, nothing is sure.
func TestOldStacks(t *testing.T) {
	file := filepath.Join("testdata", "images", "old.bin.gz")
	exe := filepath.Join("testdata", "images", "old.elf")
	_, out, errs := execute("heap", "--ram", "0x20000000="+file, "-e", exe, "--blocks", "--json")
	counts := map[string]int{}
	for line := range strings.Lines(out) {
		var b jsonBlock
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		if counts[b.State]++; b.State != "reachable" && b.Size != 120 && b.Size != 200 {
			t.Errorf("%s of %d bytes is %s", b.Addr, b.Size, b.State)
		}
	}
	// 28 are lost. A variable of a function that has not ended may still have one, and the stacks have the addresses of the headers of
	// two: 0x20001770 at 0x2003ff78 and 0x20003560 at 0x20003128, as of arrays of double whose indexes begin with 1.
	if n := counts["leaked"] + counts["doubtful"] + counts["uncertain"]; n < 27 || n > 28 || counts["doubtful"] < 10 || counts["uncertain"] > 2 {
		t.Errorf("%v; %s", counts, errs)
	}
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	ram := make([]byte, 128<<10)
	if r, err := gzip.NewReader(packed); err != nil {
		t.Fatal(err)
	} else if _, err := io.ReadFull(r, ram); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(t.TempDir(), "half.bin")
	write(t, half, ram)
	code, out, errs := execute("heap", "--leaks", "--ram", "0x20000000="+half, "-e", exe)
	compareOutput(t, code, cli.Short, out+errs, []string{"0 blocks leaked", "not in the image: the stack, 0x2003f000 to 0x20040000"}, nil)
}

// TestOverview checks the screen that answers without flags, and that the recording has the same holes.
func TestOverview(t *testing.T) {
	dir := filepath.Join("testdata", "images")
	args := []string{"heap", "--ram", "0x20000000=" + filepath.Join(dir, "ccm.bin.gz"), "--ram", "0x21800000=" + filepath.Join(dir, "ccm-ccm.bin"), "-e", filepath.Join(dir, "ccm.elf")}
	code, out, _ := execute(args...)
	compareOutput(t, code, cli.OK, out, []string{"72,648 bytes in 699 blocks; 115,320 bytes free in 124 holes\n", "Leaked: 26,208 bytes in 279 blocks, 36.1 % of",
		"Largest hole: 46,384 bytes, 40.2 % of", "In the way: 0x20033aa8, 696 bytes, ", "Without it: 53,200.", "  s_timers\n"}, []string{"~m#", "~h#"})
	if n := strings.Count(out, "\n"); n > 24 {
		t.Errorf("%d lines", n)
	}
	code, out, _ = execute(append(args, "--record")...)
	compareOutput(t, code, cli.OK, out, []string{"~h#boot w=32 heap=2000faa8+", " free=115320 largest=46384\n", "\n~h#free name=FreeRTOS"}, nil)
	code, out, _ = execute(append(args, "--blocks", "--json")...)
	compareOutput(t, code, cli.OK, out, []string{`"size":696,"chunk":704,"state":"`, `"holder":"s_timers"`}, nil)
	if n := strings.Count(out, "\n"); n != 699 {
		t.Errorf("%d blocks", n)
	}
}

// TestStoppedInTheAllocator checks the note if the program counter is in a function of the allocator.
func TestStoppedInTheAllocator(t *testing.T) {
	dir, regs := filepath.Join("testdata", "images"), filepath.Join(t.TempDir(), "regs.txt")
	for pc, stopped := range map[string]bool{"0xce4": true, "0xa1c": false} { // in vPortFree, in reset
		if err := os.WriteFile(regs, []byte("pc "+pc+"\nsp 0x2003f000\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, errs := execute("heap", "--ram", "0x20000000="+filepath.Join(dir, "uaf.bin.gz"), "-e", filepath.Join(dir, "uaf.elf"), "--regs", regs)
		if strings.Contains(errs, " stopped in vPortFree: ") != stopped {
			t.Errorf("pc %s: %s", pc, errs)
		}
	}
}

// TestSince compares two core files of a program: the sums of each holder, the largest change first.
func TestSince(t *testing.T) {
	first, exe := dumped(t, "gcc", "grow.c", nil, "10")
	code, before, errs := execute("holds", first, "-e", exe, "--json")
	compareOutput(t, code, cli.OK, before+errs, []string{`"build": "`}, nil)
	file := filepath.Join(t.TempDir(), "before.json")
	write(t, file, []byte(before))
	second, again := dumped(t, "gcc", "grow.c", nil, "25")
	code, out, errs := execute("holds", second, "-e", again, "--since", file)
	compareOutput(t, code, cli.OK, out+errs, []string{
		"\n      +1,560        1,040        2,600       +15  g_list\n      +1,560        1,432        2,992       +15  all\n2 holders without a change.\n"}, nil)
	other, exe := dumped(t, "gcc", "freed.c", nil, "t")
	code, _, errs = execute("holds", other, "-e", exe, "--since", file)
	compareOutput(t, code, cli.Usage, errs, []string{"it is of build "}, nil)
}

// TestUnreadAllocators checks that the error names an allocator that is not read.
func TestUnreadAllocators(t *testing.T) {
	for _, name := range []string{"mimalloc", "tcmalloc"} {
		t.Run(name, func(t *testing.T) {
			list, _ := filepath.Glob("/usr/lib/*/lib" + name + "*.so.*")
			if len(list) == 0 {
				t.Skipf("lib%s is not installed", name)
			}
			t.Setenv("LD_PRELOAD", list[0])
			core, exe := dumped(t, "gcc", "grow.c", nil, "10")
			code, _, errs := execute("heap", core, "-e", exe)
			compareOutput(t, code, cli.Usage, errs, []string{"no heap in this image", "the program has " + name + " (", ", which btcore does not read"}, nil)
		})
	}
}

// TestSanitizer reads a program whose blocks are AddressSanitizer's.
func TestSanitizer(t *testing.T) {
	t.Setenv("ASAN_OPTIONS", "disable_coredump=0:handle_abort=0:detect_leaks=0")
	core, exe := dumped(t, "gcc", "grow.c", []string{"-fsanitize=address"}, "10")
	code, _, errs := execute("heap", core, "-e", exe)
	compareOutput(t, code, cli.Usage, errs, []string{"no heap in this image", "the program has asan (", ", which btcore does not read"}, nil)
}

// TestEndsOfStacks checks stacks through calls whose return address or target is in no code.
func TestEndsOfStacks(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  int
		flags []string
		want  []string
	}{
		{"thread.c", cli.OK, nil, []string{" body  ", " main  ", "prologue      ??  (in libc.so+"}},
		{"noreturn.c", cli.OK, []string{"-O2", "-fno-reorder-functions", "-fno-toplevel-reorder"}, []string{" die  ", " work  ", " _start\n"}},
		{"noreturn.c", cli.OK, []string{"-O2", "-gz", "-fno-asynchronous-unwind-tables", "-fno-reorder-functions"}, []string{" die  ", "cfi           work  "}},
		{"calldata.c", cli.OK, nil, []string{", which was read, but has no code there)", " prologue      f  ", " g  ", " main  "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			compiler := "gcc"
			if c.name == "thread.c" {
				compiler = "musl-gcc"
			}
			core, exe := dumped(t, compiler, c.name, c.flags)
			code, out, errs := execute("stacks", "-s", core, "-e", exe)
			for line := range strings.Lines(out) {
				if utf8.RuneCountInString(line) > 81 {
					t.Errorf("longer than 80 columns: %s", line)
				}
			}
			compareOutput(t, code, c.code, out+errs, c.want, []string{"scan?", "give it by -e", "memset"})
		})
	}
}

// TestGoWithoutTheProgram checks the note on a program of Go: it has no build ID, so that its file is not opened.
func TestGoWithoutTheProgram(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "go", "bash")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "g.go"), []byte("package main\n\nimport \"time\"\n\nfunc f(n int) int {\n\tif n == 0 {\n\t\tpanic(\"x\")\n\t}\n\treturn f(n-1) + 1\n}\n\nfunc main() {\n\ttime.Sleep(200 * time.Millisecond) // threads that begin have no stack yet\n\tf(20)\n}\n"))
	tool(t, "go", "build", "-o", filepath.Join(dir, "g"), filepath.Join(dir, "g.go"))
	c := exec.Command("bash", "-c", "ulimit -c unlimited; GOTRACEBACK=crash exec ./g")
	c.Dir = dir
	out, _ := c.CombinedOutput() // it aborts
	list, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(list) != 1 {
		t.Skipf("the kernel writes no core file here: %.200s", out)
	}
	code, text, errs := execute("stacks", list[0])
	compareOutput(t, code, cli.Short, text+errs, []string{"/g, which was not read: give it by -e"}, nil)
	code, text, errs = execute("stacks", list[0], "-e", filepath.Join(dir, "g"))
	compareOutput(t, code, cli.OK, text+errs, []string{"main.f"}, []string{"give it by -e"})
}

// TestAnotherBuild checks what is said if the ELF file is that of another build.
func TestAnotherBuild(t *testing.T) {
	dir := filepath.Join("testdata", "images")
	for _, c := range []struct{ ram, elf, want, not string }{
		{"ccm", "uaf", "pxEnd is 0x5050505, but ucHeap is at 0x2000fad0 to 0x2003f2d0: the ELF file is not that of this image", "is not in this image"},
		{"heap5", "uaf", "Leaks: cannot tell: FreeRTOS heap_4 is unproven: pxEnd is the end of ucHeap", "A larger request fails"},
	} {
		code, out, errs := execute("heap", "--ram", "0x20000000="+filepath.Join(dir, c.ram+".bin.gz"), "-e", filepath.Join(dir, c.elf+".elf"))
		compareOutput(t, code, cli.Short, out+errs, []string{c.want}, []string{c.not})
	}
}
