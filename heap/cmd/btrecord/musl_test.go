//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Programs of musl have as many allocations and frees in their recordings as a preloaded library counts
// that does nothing else, and print what they print alone.
func TestMusl(t *testing.T) {
	counter := compile(t, "musl-gcc", "count.c", "-O1", "-fPIC", "-shared", "-w")
	input := os.Args[0] // of some size
	for _, c := range []struct{ source, args string }{
		{"linux/musl.c", ""},
		{"linux/threads.c", "50 100"},
		{"lifetimes.c", ""},
		{"paths.c", "8"},
		{"paths.c", "8 keep"},
		{"linux/waits.c", "0"},
		{"musl/words.c", input},
		{"musl/interpreter.c", "300"},
		{"musl/pools.c", "500"},
		{"musl/files.c", "/usr/include"},
	} {
		t.Run(strings.TrimSuffix(c.source, ".c")+" "+strings.ReplaceAll(c.args, "/", "_"), func(t *testing.T) {
			program := append([]string{compile(t, "musl-gcc", c.source, "-O1", "-fno-builtin", "-w", "-pthread", "-Wl,--build-id")}, strings.Fields(c.args)...)
			alone := exec.Command(program[0], program[1:]...)
			alone.Env = append(os.Environ(), "LD_PRELOAD="+counter)
			var errs strings.Builder
			alone.Stderr = &errs
			want, err := alone.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, errs.String())
			}
			var allocs, frees uint64
			_, counted, _ := strings.Cut(errs.String(), "counted ")
			if _, err := fmt.Sscan(counted, &allocs, &frees); err != nil || allocs == 0 {
				t.Fatalf("%q: %v", errs.String(), err)
			}
			r := recorded(t, append([]string{"--"}, program...)...)
			if r.code != 0 || r.out != string(want) {
				t.Errorf("exit status %d, %d bytes of output, alone %d: %s", r.code, len(r.out), len(want), r.errs)
			}
			counts := fmt.Sprintf("%s, %s, peak", printable.Count(allocs, "allocation"), printable.Count(frees, "free"))
			if !strings.Contains(r.errs, counts) {
				t.Errorf("the other library counts %s: %s", counts, r.errs)
			}
			dumps := read(t, r.file)
			last := dumps[len(dumps)-1]
			var all uint64
			for a := range last.Allocations() {
				all += a.Count
			}
			if whole := through(last, "main").Count + through(last, "run").Count + through(last, "runs").Count; whole != all {
				t.Errorf("%d of %d blocks have a whole call path", whole, all)
			}
		})
	}
}

func TestMuslStatic(t *testing.T) {
	program := compile(t, "musl-gcc", "lifetimes.c", "-O1", "-w", "-static")
	if r := recorded(t, "-q", "--", program); r.code != 125 || !strings.Contains(r.errs, "is a static program") {
		t.Errorf("exit status %d: %s", r.code, r.errs)
	}
}
