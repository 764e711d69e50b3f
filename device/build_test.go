package device

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// programs is where programs are built, once for all tests.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if programs, err = os.MkdirTemp("", "device"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// A build is a compiler with options, and what runs its programs.
type build struct {
	name    string
	cc      string
	run     string // an emulator, or ""
	cflags  string
	ldflags string
	word    string // LWSBT_WORD_BITS, or "" for the machine's own
	two     bool   // amalgamation/lwsbt.c in place of src/
	light   bool   // runs without LWSBT_FULL
	all     bool   // runs only if LWSBT_FULL is all
}

const sanitizers = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"

// builds are those that the library is held to SPEC.md on. They have each value of what can make a difference, and
// each pair of these that can make another one:
//
//   - words of 32 and 64 bits, in both byte orders, and words other than the machine's own with each;
//   - gcc and clang, each with sanitizers and without, from -O0 to -O3;
//   - the files of src/ and the two files, each with sanitizers, with -Os and with other words.
//
// Other machines with the same words and byte order have the same code here. What reads the machine's own code is
// in test/capture. Those that run with LWSBT_FULL=1 have each word and byte order, both compilers, sanitizers, and src/
// and the two files; all have the pairs.
var builds = []build{
	{name: "x86_64", cc: "gcc", cflags: "-O2", light: true},
	{name: "x86_64-two-files", cc: "gcc", cflags: "-O3", two: true, all: true},
	{name: "x86_64-clang", cc: "clang", cflags: "-Os", all: true},
	{name: "x86_64-asan", cc: "gcc", cflags: sanitizers, all: true},
	{name: "x86_64-two-files-asan", cc: "clang", cflags: sanitizers + " -fsanitize=implicit-conversion,local-bounds", two: true},
	{name: "x86_64-two-files-word32", cc: "clang", cflags: "-O2", word: "32", two: true, all: true},
	{name: "x86_64-word32-asan", cc: "gcc", cflags: sanitizers, word: "32"},
	{name: "i686-word64", cc: "i686-linux-gnu-gcc", run: "qemu-i386", cflags: "-O2", ldflags: "-static", word: "64", all: true},
	{name: "thumb-two-files", cc: "arm-linux-gnueabihf-gcc", run: "qemu-arm", cflags: "-Os -mthumb", ldflags: "-static", two: true},
	{name: "riscv64", cc: "riscv64-linux-gnu-gcc", run: "qemu-riscv64", cflags: "-O0", ldflags: "-static", all: true},
	{name: "mips", cc: "mips-linux-gnu-gcc", run: "qemu-mips", cflags: "-O2", ldflags: "-static"},
	{name: "ppc-two-files-word64", cc: "powerpc-linux-gnu-gcc", run: "qemu-ppc", cflags: "-O2", ldflags: "-static", word: "64", two: true, all: true},
	{name: "s390x", cc: "s390x-linux-gnu-gcc", run: "qemu-s390x", cflags: "-O2", ldflags: "-static"},
}

// need skips the test unless all programs are installed. It also reads the sources,
// so that go test does not take its cached result for that of changed ones.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, pattern := range []string{"*/*.h", "include/lwsbt/*.h", "*/*.c", "Makefile", "../examples/wrap/*.c"} {
		readAll(t, pattern)
	}
	cmdtest.Need(t, programs...)
}

// readAll reads all files of a pattern, of which there must be some.
func readAll(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	for _, f := range files {
		read(t, f)
	}
}

// make builds a target of Makefile, and returns the program's path. It skips the
// test if something to build or run it with is missing.
func (b build) make(t *testing.T, target string) string {
	t.Helper()
	need(t, "make", b.cc)
	if b.run != "" {
		need(t, b.run)
	}
	b.name, b.run, b.light = "", "", false // which make no difference
	once, _ := made.LoadOrStore(madeKey{b, target}, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp(programs, target)
		if err != nil {
			return "", err
		}
		args := []string{"-s", target, "CC=" + b.cc, "CFLAGS=" + b.cflags, "LDFLAGS=" + b.ldflags,
			"OUT=" + dir, "WORD=" + b.word}
		if b.two {
			args = append(args, "TWO_FILES=1")
		}
		if out, err := exec.Command("make", args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("make %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return filepath.Join(dir, target), nil
	}))
	program, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// made has functions that build a program and return its path, by madeKey.
var made sync.Map

type madeKey struct {
	build  build
	target string
}

// argv returns the command that runs program.
func (b build) argv(program string, args ...string) []string {
	argv := append([]string{program}, args...)
	if b.run != "" {
		argv = append([]string{b.run}, argv...)
	}
	return argv
}

// each runs a test for every build, or for those that are light, several at a time.
func each(t *testing.T, test func(t *testing.T, b build)) {
	eachOf(t, builds, test)
}

// eachHeap is each for builds that have the heap: its words are the machine's.
func eachHeap(t *testing.T, test func(t *testing.T, b build)) {
	eachOf(t, slices.DeleteFunc(slices.Clone(builds), func(b build) bool { return b.word != "" }), test)
}

func eachOf(t *testing.T, builds []build, test func(t *testing.T, b build)) {
	for _, b := range builds {
		if !cmdtest.Full() && !b.light || b.all && !cmdtest.All() {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// Each header can be included alone, in C99 and C++, and the codec's declares nothing of the heap.
func TestHeaders(t *testing.T) {
	need(t, "gcc", "g++")
	parts, err := filepath.Glob("include/lwsbt/*.h")
	if err != nil || len(parts) != 8 {
		t.Fatalf("%v: %v, want 8", parts, err)
	}
	for _, header := range append(parts, "include/lwsbt.h", "amalgamation/lwsbt.h") {
		for _, cc := range []string{"gcc -std=c99 -x c", "g++ -std=c++11 -x c++"} {
			args := strings.Fields(cc + " -Wall -Wextra -pedantic -Werror -fsyntax-only -Iinclude -")
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdin = strings.NewReader("#include \"" + strings.TrimPrefix(header, "include/") + "\"\nint unused;\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", header, cc, err, out)
			}
		}
	}
	cmd := exec.Command("gcc", strings.Fields("-std=c99 -fsyntax-only -x c -Iinclude -")...)
	cmd.Stdin = strings.NewReader("#include \"lwsbt/codec.h\"\nstruct lwsbt_heap { int own; };\nstruct lwsbt_capture_ctx { int own; };\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("lwsbt/codec.h declares what is not the codec's: %v\n%s", err, out)
	}
}
