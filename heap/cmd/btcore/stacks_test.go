package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// stacksProgram crashes in a signal handler, below a callback of the C library.
const stacksProgram = `
#include <signal.h>
#include <stdlib.h>
#include <string.h>
volatile int zero, sink;
__attribute__((noinline)) void boom(int n) { char b[100]; memset(b, n, sizeof b); sink = b[n]; if (n > 2) abort(); sink = n; }
__attribute__((noinline)) void handler(int sig) { boom(sig); sink++; }
__attribute__((noinline)) int compare(const void *a, const void *b) { if (*(int *)b == 7) raise(SIGUSR1); return *(int *)a - *(int *)b; }
__attribute__((noinline)) int deep(int n) { int v[] = {3, 7, 1, n}; if (n > 0) { int r = deep(n - 1); return r + sink; } qsort(v, 4, 4, compare); return v[0] + sink; }
#ifdef ALTERNATE
static char stack[1 << 16];
static void handlers(void) {
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
}
#else
static void handlers(void) { signal(SIGUSR1, handler); }
#endif
int main(void) { handlers(); return deep(5) + zero; }
`

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmdtest.Need(t, name)
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func btcore(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := cli.Run(command(), args, strings.NewReader(""), &stdout, &stderr); got != code {
		t.Fatalf("btcore %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout.String(), stderr.String())
	}
	return stdout.String()
}

var gdbFrame = regexp.MustCompile(`(?m)^#\d+\s+(?:0x([0-9a-f]+) in )?(\S+) \(`)

// ourFrames returns the addresses and functions that btcore stacks prints.
func ourFrames(out string) (pcs []uint64, names []string) {
	for _, m := range regexp.MustCompile(`(?m)^  0x([0-9a-f]+)  \S+\s+(\S+)`).FindAllStringSubmatch(out, -1) {
		var pc uint64
		fmt.Sscanf(m[1], "%x", &pc)
		pcs, names = append(pcs, pc), append(names, m[2])
	}
	return pcs, names
}

func TestStacksOfACore(t *testing.T) {
	dir := t.TempDir()
	src, exe, bare, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "p"), filepath.Join(dir, "bare"), filepath.Join(dir, "core")
	if err := os.WriteFile(src, []byte(stacksProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"-O2", "-static"}, {"-O2", "-static", "-DALTERNATE"},
		{"-O2", "-no-pie", "-static", "-m32"}, {"-O2", "-no-pie", "-static", "-DALTERNATE", "-m32"}} {
		cc := "gcc"
		if flags[len(flags)-1] == "-m32" {
			cc, flags = "i686-linux-gnu-gcc", flags[:len(flags)-1]
		}
		t.Run(cc+strings.Join(flags, ""), func(t *testing.T) {
			cmdtest.NeedToRun(t, cc)
			tool(t, cc, append(flags, "-g", "-fomit-frame-pointer", "-o", exe, src)...)
			out := tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "handle SIGUSR1 nostop noprint pass",
				"-ex", "run", "-ex", "generate-core-file "+core, "-ex", "bt -past-main", exe)
			var want []string
			for _, m := range gdbFrame.FindAllStringSubmatch(out, -1) {
				if want = append(want, m[2]); m[2] == "main" {
					break
				}
			}
			if len(want) < 12 {
				t.Fatalf("gdb has %d frames, expected more:\n%s", len(want), out)
			}
			text := btcore(t, 0, "stacks", core, "-e", exe)
			pcs, names := ourFrames(text)
			var named []string // gdb calls the trampoline <signal handler called>
			for _, n := range names {
				if !strings.Contains(n, "restore") && n != "??" {
					named = append(named, n)
				}
			}
			var functions []string
			for _, n := range want {
				if !strings.HasPrefix(n, "<") && n != "??" {
					functions = append(functions, n)
				}
			}
			got := strings.Join(named, " ")
			for _, f := range []string{"boom handler", "compare", "deep deep deep deep deep deep main"} {
				if !strings.Contains(strings.Join(functions, " "), f) || !strings.Contains(got, f) {
					t.Errorf("expected %q in both:\ngdb:  %s\nours: %s\n%s", f, strings.Join(functions, " "), got, text)
				}
			}
			tool(t, "objcopy", "--strip-all", "--remove-section", ".eh_frame", "--remove-section", ".eh_frame_hdr", exe, bare)
			other, _ := ourFrames(btcore(t, 0, "stacks", core, "-e", bare))
			if fmt.Sprint(other) != fmt.Sprint(pcs) {
				t.Errorf("without tables and symbols:\n%x\nwith them:\n%x", other, pcs)
			}
		})
	}
}

// A core file that is cut before its registers is called cut.
func TestStacksOfACutCore(t *testing.T) {
	cmdtest.NeedToRun(t, "gcc")
	dir := t.TempDir()
	src, exe, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "p"), filepath.Join(dir, "core")
	if err := os.WriteFile(src, []byte("#include <stdlib.h>\nint main(void) { abort(); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "gcc", "-static", "-o", exe, src)
	tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "run", "-ex", "generate-core-file "+core, exe)
	text, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	ends := map[uint64]string{10: "is cut: 10 bytes", 63: "cut: the file ends in its program headers", 100: "cut: the file ends in its program headers"}
	for _, p := range f.Progs {
		if p.Type == elf.PT_NOTE {
			ends[p.Off+8] = "cut:"
		}
	}
	for end, want := range ends {
		if err := os.WriteFile(core, text[:end], 0o644); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := cli.Run(command(), []string{"stacks", core, "-e", exe}, nil, &out, &errs); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%d bytes: exit code %d, expected 2 and %q: %s", end, code, want, errs.String())
		}
	}
}

// Inlined calls in split debug files are read, and without the files are said to be missing.
func TestStacksOfSplitDebugInformation(t *testing.T) {
	cmdtest.NeedToRun(t, "gcc")
	dir := t.TempDir()
	src, exe, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "p"), filepath.Join(dir, "core")
	if err := os.WriteFile(src, []byte("#include <stdlib.h>\nstatic inline void stop(void) { abort(); }\nint main(void) {\n\tstop();\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "gcc", "-static", "-O2", "-g", "-gsplit-dwarf", "-o", exe, src)
	tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "run", "-ex", "generate-core-file "+core, exe)
	code, out, errs := execute("stacks", core, "-e", exe)
	compareOutput(t, code, cli.OK, out+errs, []string{"inlined", src + ":4\n"}, []string{"missing"})
	files, err := filepath.Glob(filepath.Join(dir, "*.dwo"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	code, out, errs = execute("stacks", core, "-e", exe)
	compareOutput(t, code, cli.Short, out+errs, []string{"inlined calls are missing", "no file " + files[0]}, []string{src + ":4"})
}

// filteredProgram has the core file without the contents of mapped files (core(5)).
const filteredProgram = `
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) int deep(int n) { if (!n) abort(); return deep(n - 1) + sink; }
int main(void) {
	int f = open("/proc/self/coredump_filter", O_WRONLY);
	if (f < 0 || write(f, "0x1", 3) != 3)
		return 1;
	sink = (int)write(1, "", 0);
	return deep(5);
}
`

// Where the image does not have the beginning of a program, its load address follows from the mappings.
func TestStacksWithoutHeaders(t *testing.T) {
	cmdtest.NeedToRun(t, "gcc")
	dir := t.TempDir()
	src, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "core")
	if err := os.WriteFile(src, []byte(filteredProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"-pie"}, {"-no-pie"}} {
		exe := filepath.Join(dir, "p"+flags[0])
		tool(t, "gcc", append(flags, "-g", "-O1", "-fno-optimize-sibling-calls", "-o", exe, src)...)
		out := tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "generate-core-file "+core,
			"-ex", "info sharedlibrary", exe)
		libc := regexp.MustCompile(`\S*/libc[-.]\S*so\S*`).FindString(out)
		if libc == "" {
			t.Fatalf("no C library in\n%s", out)
		}
		text := btcore(t, 0, "stacks", core, "-e", exe, "-e", libc)
		_, names := ourFrames(text)
		if got := strings.Join(names, " "); !strings.Contains(got, "abort deep deep deep deep deep deep main ") {
			t.Errorf("%v: abort, 6 times deep and main are expected:\n%s", flags, text)
		}
	}
}

// calledProgram ends in a function that the C library calls. The core file has the memory of FILTER.
const calledProgram = `
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int compare(const void *a, const void *b) { __builtin_trap(); return a < b; }
int main(void) {
	int list[2] = {2, 1}, f = open("/proc/self/coredump_filter", O_WRONLY);
	if (f < 0 || write(f, FILTER, 3) != 3)
		return 1;
	qsort(list, 2, sizeof list[0], compare);
	return list[0];
}
`

// If a stack ends early because a file or the stack itself is missing, that is said.
func TestStacksSayWhyTheyEnd(t *testing.T) {
	cmdtest.NeedToRun(t, "gcc")
	dir := t.TempDir()
	src, exe, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "p"), filepath.Join(dir, "core")
	if err := os.WriteFile(src, []byte(calledProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string]string{"0x1": `libc\S*, which was not read: give it by -e`, "0x0": `its stack, at 0x[0-9a-f]+, is not in the image`} {
		tool(t, "gcc", "-g", "-O1", "-DFILTER=\""+filter+"\"", "-o", exe, src)
		tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "generate-core-file "+core, exe)
		var out, errs bytes.Buffer
		code := cli.Run(command(), []string{"stacks", core, "-e", exe}, nil, &out, &errs)
		if code != 1 || !strings.Contains(out.String(), "compare") || !regexp.MustCompile(want).MatchString(errs.String()) {
			t.Errorf("filter %s: exit code %d, expected 1 and %q:\n%s%s", filter, code, want, out.String(), errs.String())
		}
	}
}

// overflowProgram runs out of stack, which its handler does not: that is on another one.
const overflowProgram = `
#include <signal.h>
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) int over(int n) { volatile char b[FRAME]; b[0] = n; return over(n + 1) + b[0]; }
__attribute__((noinline)) static void handler(int sig) { sink = sig; abort(); }
int main(void) {
	static char stack[1 << 16];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	return over(0);
}
`

// A stack that overflowed is found below the handler's, though its stack pointer is in the guard page.
func TestStacksAfterOverflow(t *testing.T) {
	for _, flags := range [][]string{{"-O0", "-DFRAME=200"}, {"-O1", "-fomit-frame-pointer", "-DFRAME=20000", "-fno-optimize-sibling-calls"}} {
		dir := t.TempDir()
		src, exe, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "p"), filepath.Join(dir, "core")
		if err := os.WriteFile(src, []byte(overflowProgram), 0o644); err != nil {
			t.Fatal(err)
		}
		cmdtest.NeedToRun(t, "gcc")
		tool(t, "gcc", append(flags, "-g", "-static", "-o", exe, src)...)
		tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "handle SIGSEGV nostop noprint pass",
			"-ex", "run", "-ex", "generate-core-file "+core, exe)
		text := btcore(t, 0, "stacks", core, "-e", exe, "--max-frames", "60")
		_, names := ourFrames(text)
		if got := strings.Join(names, " "); !strings.Contains(got, "handler") || strings.Count(got, " over") < 40 {
			t.Errorf("%v: 40 frames of over are expected below handler:\n%s", flags, text)
		}
	}
}

func TestStacksUsage(t *testing.T) {
	dir := t.TempDir()
	ram, regs := filepath.Join(dir, "ram.bin"), filepath.Join(dir, "regs")
	os.WriteFile(ram, make([]byte, 64), 0o644)
	os.WriteFile(regs, []byte("pc 0x100\n"), 0o644)
	btcore(t, 2, "stacks")
	btcore(t, 2, "stacks", "--ram", "0x1000="+ram)
	btcore(t, 2, "stacks", "--ram", "0x1000="+ram, "--regs", regs)
	btcore(t, 2, "stacks", "--ram", "0x1000="+ram, "--max-frames", "0")
}
