package device

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Random allocations, held to a model, and every kind of damage: test/heap.c.
func TestHeap(t *testing.T) {
	each(t, func(t *testing.T, b build) {
		if b.word != "" {
			t.Skip("the heap's words are the machine's")
		}
		program := b.make(t, "heap")
		seeds, operations := 1, "400"
		if full() {
			seeds, operations = 3, "1000"
		}
		for seed := range seeds {
			argv := b.argv(program, strconv.Itoa(seed), operations)
			out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "ok: "+operations+" operations") {
				t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
			}
		}
	})
}

// 8 threads allocate, resize, free and dump under ThreadSanitizer: test/threads.c.
func TestThreads(t *testing.T) {
	b := build{cc: "gcc", cflags: "-O1 -g -fsanitize=thread"}
	rounds := "500"
	if full() {
		rounds = "5000"
	}
	out, err := exec.Command(b.make(t, "threads"), rounds).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// libFuzzer finds nothing in 10 seconds: test/fuzz.c.
func TestFuzz(t *testing.T) {
	if !full() {
		t.Skip("LWSBT_FULL is not set")
	}
	for _, word := range []string{"", "32"} {
		fuzz := build{cc: "clang", cflags: "-O1 -g", word: word}.make(t, "fuzz")
		cmd := exec.Command(fuzz, "-max_len=400", "-max_total_time=10", "-seed=1", "-print_final_stats=1")
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "stat::number_of_executed_units") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// gcc's static analysis, and all warnings of gcc and clang, find nothing.
func TestWarnings(t *testing.T) {
	sources, err := filepath.Glob("src/*.c")
	if err != nil || len(sources) < 10 {
		t.Fatalf("%d sources: %v", len(sources), err)
	}
	for _, cc := range []string{"gcc", "clang"} {
		t.Run(cc, func(t *testing.T) {
			need(t, cc)
			options := []string{"-O2"}
			if full() {
				options = append(options, "-Os -DLWSBT_TINY")
			}
			if full() && cc == "gcc" {
				options = append(options, "-O2 -fanalyzer", "-Os -fanalyzer -DLWSBT_SMALL")
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
