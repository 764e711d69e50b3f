package device

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const (
	wrapFlags    = "-Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc"
	alignedFlags = "-Wl,--wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign"
)

// picolibcMemory is where a program lies on qemu's board, for picolibc's linker script.
const picolibcMemory = "-Wl,--defsym=__flash=0x80000000,--defsym=__flash_size=0x100000 -Wl,--defsym=__ram=0x80100000,--defsym=__ram_size=0x100000,--defsym=__stack_size=0x4000 "

// A wrapping is a C library whose malloc is wrapped, and what the example of
// examples/wrap then leaks, as "function size".
type wrapping struct {
	name string
	cc   string
	args string
	run  string // an emulator with its options, or ""
	want []string
	full bool // under LWSBT_FULL alone
}

var leaks = []string{"leak_malloc 1001", "leak_calloc 1001", "leak_realloc 1002"}
var alignedLeaks = []string{"leak_aligned 1004", "leak_aligned 1024", "leak_aligned 1005"}

var wrappings = []wrapping{
	{name: "glibc", cc: "gcc", args: "-no-pie " + alignedFlags + " -DLWSBT_WRAP_ALIGNED=memalign -DLWSBT_WRAP_PORT=lwsbt_posix_port adapters/posix.c",
		want: slices.Concat(leaks, alignedLeaks)}, // strdup is in libc.so
	{name: "glibc-static", full: true, cc: "gcc", args: "-static " + alignedFlags + " -DLWSBT_WRAP_ALIGNED=memalign -DLWSBT_WRAP_PORT=lwsbt_posix_port adapters/posix.c",
		want: slices.Concat(leaks, alignedLeaks, []string{"strdup 31"})},
	{name: "musl", full: true, cc: "musl-gcc", args: "-static " + alignedFlags + " -DLWSBT_WRAP_ALIGNED=aligned_alloc -DLWSBT_WRAP_PORT=lwsbt_posix_port adapters/posix.c",
		want: slices.Concat(leaks, alignedLeaks, []string{"strdup 31"})},
	{name: "newlib", full: true, cc: "arm-none-eabi-gcc", run: "qemu-arm", args: "-mthumb -march=armv7-a --specs=rdimon.specs " + alignedFlags + " -DLWSBT_WRAP_ALIGNED=memalign",
		want: slices.Concat(leaks, alignedLeaks[:2])}, // strdup and posix_memalign are newlib's own
	{name: "picolibc", full: true, cc: "riscv64-unknown-elf-gcc", run: "qemu-system-riscv32 -M virt -bios none -nographic -semihosting -monitor none -serial none -kernel",
		args: "-march=rv32imac -mabi=ilp32 -mcmodel=medany --specs=picolibc.specs --oslib=semihost --crt0=hosted " + picolibcMemory + alignedFlags + " -DLWSBT_WRAP_ALIGNED=memalign -DLWSBT_WRAP_NESTED",
		want: slices.Concat(leaks, alignedLeaks, []string{"strdup 31"})},
}

var heapSources = strings.Fields("src/choose.c src/encode.c src/line.c src/head.c src/decode.c src/heap.c src/trim.c src/alloc.c src/dump.c adapters/wrap.c")

// The example runs with each C library, and the dump has what it leaks, no more and
// no less, each block by the function that leaked it.
func TestWrap(t *testing.T) {
	for _, w := range wrappings {
		t.Run(w.name, func(t *testing.T) {
			if w.full && !cmdtest.Full() {
				t.Skip("LWSBT_FULL is not set")
			}
			need(t, w.cc)
			program := filepath.Join(t.TempDir(), "wrap")
			args := append(strings.Fields("-std=gnu11 -O2 -g -Wall -Wextra -Werror -Iinclude -DLWSBT_WRAP_CAPTURE=NULL "+wrapFlags+" "+w.args), heapSources...)
			args = append(args, "../examples/wrap/wrap.c", "-o", program)
			if w.name == "newlib" {
				args = append(args, "-DNO_POSIX_MEMALIGN")
			}
			if out, err := exec.Command(w.cc, args...).CombinedOutput(); err != nil {
				if strings.Contains(string(out), ".specs: No such file") {
					t.Skipf("%s is not installed", w.name)
				}
				t.Fatalf("%s %s: %v\n%s", w.cc, strings.Join(args, " "), err, out)
			}
			argv := []string{program}
			if w.run != "" {
				run := strings.Fields(w.run)
				need(t, run[0])
				argv = append(run, argv...)
			}
			checkLeaks(t, argv, program, w.want)
		})
	}
}

// C++'s new calls malloc, where the C++ library is linked statically.
func TestWrapNew(t *testing.T) {
	cmdtest.Long(t)
	need(t, "g++", "gcc")
	dir := t.TempDir()
	source := filepath.Join(dir, "new.cc")
	if err := os.WriteFile(source, []byte(`#include <cstdio>
#include <vector>
#include "lwsbt.h"
extern "C" lwsbt_heap lwsbt_wrapped;
static void put(void *arg, const char *text, size_t len) { fwrite(text, 1, len, static_cast<FILE *>(arg)); }
static char buffer[BUFSIZ];
char *volatile kept;
int main()
{
	const lwsbt_out out = { put, stdout };
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	{ std::vector<int> v; for (int i = 0; i < 1000; i++) v.push_back(i); }
	kept = new char[1111];
	lwsbt_dump(&lwsbt_wrapped, &out, 1, "request", LWSBT_KEEP_ADDRESS);
	return lwsbt_wrapped.damaged != 0;
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	var objects []string
	for _, c := range heapSources {
		object := filepath.Join(dir, filepath.Base(c)+".o")
		if out, err := exec.Command("gcc", "-std=gnu11", "-O2", "-Iinclude", "-DLWSBT_WRAP_CAPTURE=NULL", "-c", c, "-o", object).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
		objects = append(objects, object)
	}
	program := filepath.Join(dir, "new")
	args := append([]string{"-O2", "-no-pie", "-static-libstdc++", "-static-libgcc", "-Iinclude", wrapFlags, source, "-o", program}, objects...)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	// The C++ library keeps a block of its own, for exceptions when there is no memory.
	checkLeaks(t, []string{program}, program, []string{"_Znwm 1111"}, 72704)
}

// checkLeaks runs a program, and holds its dump to the leaks wanted, leaving out
// blocks of the sizes in ignore.
func checkLeaks(t *testing.T, argv []string, program string, want []string, ignore ...uint64) {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	records := 0
	var got []string
	for _, line := range lines {
		if !strings.HasPrefix(line, codec.LeadIn) {
			continue
		}
		blob, err := codec.Decoder{}.ParseLine(nil, []byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var s codec.Stack
		if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil || len(s.PCs) == 0 {
			t.Fatalf("%s: %v, %d frames", line, err, len(s.PCs))
		}
		records++
		function := functionAt(t, program, s.PCs[0]-1)
		if strings.HasPrefix(function, "_dl_") || slices.Contains(ignore, s.Size) {
			continue // the C library's own, linked statically
		}
		got = append(got, function+" "+strconv.FormatUint(s.Size, 10))
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("leaks\n got %q\nwant %q\n%s", got, want, out)
	}
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "~h#end 1 n="+strconv.Itoa(records)+" b=") {
		t.Errorf("%d records, and the end says %q", records, last)
	}
}

// functionAt returns the name of the function that addr is in.
func functionAt(t *testing.T, program string, addr uint64) string {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		start := s.Value
		if f.Machine == elf.EM_ARM {
			start &^= 1
		}
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && start <= addr && addr < start+s.Size && !strings.HasPrefix(s.Name, "__strdup") {
			return s.Name
		}
	}
	return "?"
}
