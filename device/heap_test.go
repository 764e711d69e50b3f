package device

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Random allocations, held to a model, and every kind of damage: test/heap.c.
func TestHeap(t *testing.T) {
	eachHeap(t, func(t *testing.T, b build) {
		seeds, operations := 1, 400
		if cmdtest.All() {
			seeds, operations = 3, 1000
		}
		b.runHeap(t, seeds, operations)
	})
}

func (b build) runHeap(t *testing.T, seeds, operations int) {
	t.Helper()
	program := b.make(t, "heap")
	for seed := range seeds {
		argv := b.argv(program, strconv.Itoa(seed), strconv.Itoa(operations))
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), fmt.Sprintf("ok: %d operations", operations)) {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
}

// The options of src/options.h, as it has them.
func options(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("src/options.h")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#define (LWSBT_\w+) .*LWSBT_UNSET`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	if len(names) < 4 {
		t.Fatalf("options %v, want more", names)
	}
	return names
}

// The heap without what options leave out: without all, without all but one, and without one.
func TestHeapOptions(t *testing.T) {
	cmdtest.Long(t)
	sets := []string{"-DLWSBT_TINY", "-DLWSBT_WHOLE_CHUNKS=0", "-DLWSBT_QUARANTINE=5", "-DLWSBT_EXTRAS=0 -DLWSBT_QUARANTINE=3"}
	for i, name := range options(t) {
		if cmdtest.All() {
			sets = append(sets, "-D"+name+"=0", "-DLWSBT_TINY -D"+name+"=1")
		} else if i%4 == 0 {
			sets = append(sets, "-D"+name+"=0")
		}
	}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			build{cc: "gcc", cflags: sanitizers + " " + set}.runHeap(t, 1, 400)
			if strings.HasSuffix(set, "-DLWSBT_TINY") {
				build{cc: "arm-linux-gnueabihf-gcc", run: "qemu-arm", cflags: "-Os -mthumb " + set, ldflags: "-static"}.runHeap(t, 1, 400)
			}
		})
	}
}

// 8 threads allocate, resize, free and dump under ThreadSanitizer: test/threads.c.
func TestThreads(t *testing.T) {
	cmdtest.Long(t)
	b := build{cc: "gcc", cflags: "-O1 -g -fsanitize=thread"}
	out, err := exec.Command(b.make(t, "threads"), "5000").CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// libFuzzer finds nothing in 10 seconds: test/fuzz.c for what is read, test/fuzz_heap.c for calls of
// malloc and its kin.
func TestFuzz(t *testing.T) {
	cmdtest.Long(t)
	for _, test := range []struct{ target, word string }{{"fuzz", ""}, {"fuzz", "32"}, {"fuzz_heap", ""}} {
		t.Run(test.target+test.word, func(t *testing.T) {
			t.Parallel()
			fuzz := build{cc: "clang", cflags: "-O1 -g", word: test.word}.make(t, test.target)
			cmd := exec.Command(fuzz, "-max_len=400", "-max_total_time=10", "-seed=1", "-print_final_stats=1")
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "stat::number_of_executed_units") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// gcc's static analysis, and all warnings of gcc and clang, find nothing.
func TestWarnings(t *testing.T) {
	cmdtest.Long(t)
	sources, err := filepath.Glob("src/*.c")
	if err != nil || len(sources) < 10 {
		t.Fatalf("%d sources: %v", len(sources), err)
	}
	for _, cc := range []string{"gcc", "clang"} {
		t.Run(cc, func(t *testing.T) {
			need(t, cc)
			options := []string{"-O2"}
			if cmdtest.Full() {
				options = append(options, "-Os -DLWSBT_TINY")
			}
			if cmdtest.Full() && cc == "gcc" {
				options = append(options, "-O2 -fanalyzer")
			}
			if cmdtest.All() && cc == "gcc" {
				options = append(options, "-Os -fanalyzer -DLWSBT_FIELDS=0")
			}
			for _, o := range options {
				for _, source := range sources {
					if strings.HasPrefix(filepath.Base(source), "capture") {
						continue // tested where they are
					}
					args := strings.Fields("-std=c99 -Wall -Wextra -Wconversion -pedantic -Werror -Iinclude -c -o /dev/null " + o + " " + source)
					if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
						t.Errorf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, out)
					}
				}
			}
		})
	}
}

// All of src/ compiles for a Cortex-M3, as docs/device.md has it, the capture functions
// of other machines to nothing.
func TestCortexM3(t *testing.T) {
	const cc = "arm-none-eabi-gcc"
	need(t, cc)
	sources, err := filepath.Glob("src/*.c")
	if err != nil || len(sources) < 20 {
		t.Fatalf("%d sources: %v", len(sources), err)
	}
	args := append(strings.Fields("-std=c99 -mthumb -mcpu=cortex-m3 -Wall -Wextra -Werror -Iinclude -fsyntax-only"), sources...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
