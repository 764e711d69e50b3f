package device

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

const cortexM3 = "-std=c99 -Os -mthumb -mcpu=cortex-m3 -ffunction-sections -fdata-sections -Iinclude"

var libraryParts = []string{"choose", "encode", "line", "head", "decode", "heap", "trim", "alloc", "dump", "paths", "device", "paths_head", "profile", "profile_blocks", "profile_dump", "sums"}

// A size is what the linker keeps of the library in a Cortex-M3's program at -Os that calls symbols. Sizes of
// whole firmwares: TestSizes of heap/devicetest.
type size struct {
	what, symbols string
	most          int // bytes
}

var sizes = []size{
	{"encoder and `~m#` lines", "lwsbt_encode lwsbt_line", 900},
	{"encoder, `~m#` and `~b#` lines", "lwsbt_encode lwsbt_line lwsbt_line_decoded", 1100},
	{"decoder", "lwsbt_decode", 650},
	{"`~p#` lines", "lwsbt_paths_add lwsbt_paths_flush", 960},
}

// cortexObjects returns the objects of src/ for a Cortex-M3, with the call graph of each beside it. They are compiled
// once for all tests.
var cortexObjects = sync.OnceValues(func() (objects []string, err error) {
	sources, err := filepath.Glob("src/*.c")
	if err != nil || len(sources) < 20 {
		return nil, fmt.Errorf("%d sources: %v", len(sources), err)
	}
	for _, source := range sources {
		object := filepath.Join(programs, strings.TrimSuffix(filepath.Base(source), ".c")+".o")
		compile := append(strings.Fields(cortexM3+" -fcallgraph-info=su"), "-c", source, "-o", object)
		if out, err := exec.Command("arm-none-eabi-gcc", compile...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %v\n%s", source, err, out)
		}
		objects = append(objects, object)
	}
	return objects, nil
})

// measure returns bytes of .text and read-only data, without the C library.
func (s size) measure(t *testing.T) int {
	t.Helper()
	const cc = "arm-none-eabi-gcc"
	objects, err := cortexObjects()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := strings.Fields("-nostdlib -Wl,--gc-sections,--unresolved-symbols=ignore-all -o " + dir + "/elf")
	for _, symbol := range strings.Fields(s.symbols) {
		link = append(link, "-Wl,-u,"+symbol, "-Wl,-e,"+symbol)
	}
	link = append(append(strings.Fields(cortexM3), link...), objects...)
	if out, err := exec.Command(cc, link...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return text(t, dir+"/elf")
}

// text returns what arm-none-eabi-size says of a file.
func text(t *testing.T, name string) int {
	t.Helper()
	out, err := exec.Command("arm-none-eabi-size", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.Atoi(strings.Fields(strings.Split(string(out), "\n")[1])[0])
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return size
}

const figuresFile = "../FIGURES.md"

// gcc122 reports whether gcc for Arm is version 12.2, whose sizes FIGURES.md has.
func gcc122(t *testing.T) bool {
	t.Helper()
	version, err := exec.Command("arm-none-eabi-gcc", "-dumpversion").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(version), "12.2.")
}

// The sizes of parts:
//
//	LWSBT_FULL=1 go test ./device -run Size [-update]
func TestSize(t *testing.T) {
	cmdtest.Long(t)
	need(t, "arm-none-eabi-gcc", "arm-none-eabi-size")
	table := "| | bytes |\n| --- | ---: |\n"
	for _, s := range sizes {
		n := s.measure(t)
		table += fmt.Sprintf("| %s | %d |\n", s.what, n)
		if n < 400 || n > s.most {
			t.Errorf("%s: %d bytes, want 400 to %d", s.what, n, s.most)
		}
	}
	if gcc122(t) {
		figures.Check(t, figuresFile, "code", table)
	}
}

// Bytes of stack on a Cortex-M3: of no function more than 400, and of each call with
// all that it calls in the library, without capture, locks and the allocator below:
//
//	LWSBT_FULL=1 go test ./device -run Stack -v [-update]
func TestStackUsage(t *testing.T) {
	cmdtest.Long(t)
	need(t, "arm-none-eabi-gcc")
	if _, err := cortexObjects(); err != nil {
		t.Fatal(err)
	}
	usage, calls := map[string]int{}, map[string][]string{}
	for _, part := range libraryParts {
		readCallGraph(t, filepath.Join(programs, part+".ci"), usage, calls)
	}
	if len(usage) < 40 {
		t.Fatalf("%d functions, want all", len(usage))
	}
	for f, bytes := range usage {
		if bytes > 400 {
			t.Errorf("%s takes %d bytes of stack, want at most 400", f, bytes)
		}
	}
	var deepest func(f string, above []string) (int, []string)
	deepest = func(f string, above []string) (int, []string) {
		for _, a := range above {
			if a == f {
				t.Fatalf("recursion: %s", append(above, f))
			}
		}
		most, path := 0, []string(nil)
		for _, g := range calls[f] {
			if n, p := deepest(g, append(above, f)); n > most {
				most, path = n, p
			}
		}
		return usage[f] + most, append([]string{fmt.Sprintf("%s %d", f, usage[f])}, path...)
	}
	table := "| call | bytes of stack |\n| --- | ---: |\n"
	for _, f := range []struct {
		name string
		most int
	}{{"lwsbt_encode", 200}, {"lwsbt_line", 100}, {"lwsbt_decode", 250}, {"lwsbt_heap_malloc", 420},
		{"lwsbt_heap_calloc", 440}, {"lwsbt_heap_realloc", 450}, {"lwsbt_heap_free", 300}, {"lwsbt_dump", 450},
		{"lwsbt_profile_malloc", 310}, {"lwsbt_profile_free", 110}, {"lwsbt_profile_dump", 410}, {"lwsbt_dump_paths", 450}} {
		n, path := deepest(f.name, nil)
		t.Logf("%-18s %4d bytes: %s", f.name, n, strings.Join(path, ", "))
		if n > f.most || n < 8 {
			t.Errorf("%s takes %d bytes of stack, want at most %d", f.name, n, f.most)
		}
		table += fmt.Sprintf("| `%s` | %d |\n", f.name, n)
	}
	if gcc122(t) {
		figures.Check(t, figuresFile, "stacks", table)
	}
}

var (
	graphNode = regexp.MustCompile(`^node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes`)
	graphEdge = regexp.MustCompile(`^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"`)
)

func readCallGraph(t *testing.T, name string, usage map[string]int, calls map[string][]string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// a static function's name has its file's before it, and a colon
	base := func(s string) string { return s[strings.LastIndexByte(s, ':')+1:] }
	for in := bufio.NewScanner(f); in.Scan(); {
		if m := graphNode.FindStringSubmatch(in.Text()); m != nil {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			usage[base(m[1])] = max(usage[base(m[1])], n)
		} else if m := graphEdge.FindStringSubmatch(in.Text()); m != nil {
			calls[base(m[1])] = append(calls[base(m[1])], base(m[2]))
		}
	}
}

// Instructions of an allocation of 12 frames on a Cortex-M3, counted by qemu:
//
//	go test ./device -run Instructions -v
//
// BACKEND is a capture function, such as scan or unwind. For prologue readers, see
// TestInstructions of heap/devicetest, whose frames have different addresses.
// OTHER names an archive or object files to compare with, that have a function
// void *another_allocate(size_t size, void *(*below)(size_t)).
func TestInstructions(t *testing.T) {
	cmdtest.Long(t)
	need(t, "arm-none-eabi-gcc", "qemu-system-arm")
	elf := filepath.Join(t.TempDir(), "instructions.elf")
	args := strings.Fields("-std=gnu99 -Os -mthumb -mcpu=cortex-m3 -funwind-tables -ffunction-sections -Iinclude" +
		" -nostartfiles --specs=nosys.specs -T test/cortexm3/board.ld test/cortexm3/instructions.c -o " + elf)
	for _, part := range libraryParts {
		args = append(args, "src/"+part+".c")
	}
	if other := os.Getenv("OTHER"); other != "" {
		args = append(append(args, "-DOTHER"), strings.Fields(other)...)
	}
	backend := os.Getenv("BACKEND")
	if backend == "" && cmdtest.Full() {
		backend = "unwind" // which ends at the reset value of lr
	}
	if backend != "" {
		args = append(args, "-DBACKEND=lwsbt_capture_"+backend, "src/capture_"+backend+".c")
		if _, err := os.Stat("src/capture_functions.c"); err == nil {
			args = append(args, "src/capture_functions.c")
		}
	}
	if out, err := exec.Command("arm-none-eabi-gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command("qemu-system-arm", strings.Fields("-M mps2-an385 -icount shift=0 -semihosting -nographic -monitor none -serial none -kernel "+elf)...).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-system-arm: %v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	var n, frames int
	if _, err := fmt.Sscanf(string(out), "ours, frames given: %d instructions, %d frames", &n, &frames); err != nil || frames != 12 {
		t.Fatalf("%d frames: %v", frames, err)
	}
	if backend != "" && !strings.Contains(string(out), " 0 outside the code") {
		t.Errorf("%s captured what is no address of the code", backend)
	}
	if n < 500 || n > 3900 {
		t.Errorf("%d instructions without capture, want at most 3900", n)
	}
}
