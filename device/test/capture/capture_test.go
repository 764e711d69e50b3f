package capture

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/device/tools/functions"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// By default, a program for each of two backends is measured, compiled by gcc. With
// LWSBT_FULL=1 each backend is on each of its machines, compiled by gcc or by clang at
// one level, with LWSBT_FULL=all by both.
func TestBackends(t *testing.T) {
	full := cmdtest.Full()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for k, b := range backends {
		for n, name := range b.machines {
			m := machineOf(name)
			for _, clang := range []bool{false, true} {
				for i, level := range levels {
					light := !clang && n == 0 && i == 1+k%4 && (b.name == "fp" || b.name == "unwind")
					sampled := i == (k+n+2*btoi(clang))%len(levels)
					if !light && !(sampled && (cmdtest.All() || full && clang == ((k+n)%2 == 1))) {
						continue
					}
					j := job{machine: m, backend: b, clang: clang, level: level, program: program{seed: uint64(90 + k), n: 40, runs: 30, ids: i%2 == 1}, flags: m.variant(i, clang), dir: dir}
					t.Run(j.String(), func(t *testing.T) {
						if tool := m.missing(clang); tool != "" {
							t.Skipf("%s is not installed", tool)
						}
						if full {
							t.Parallel()
						}
						c, err := j.run()
						if err != nil {
							t.Fatal(err)
						}
						if c.fatal != "" {
							t.Fatal(c.fatal)
						}
						if !b.trusts && c.corrupted == 0 {
							t.Error("no corrupted stack was captured")
						}
						// A backend that is only reported scans the stack: what it finds beyond the
						// true frames are stale words, which differ from one capture to the next.
						if !b.report && (c.recall() < b.recall || c.falsity() > b.wrong || c.differing > 0) {
							t.Errorf("%.2f %% found, %.2f %% false, %d differing: want %g, %g, 0\n\ttrue    %s", c.recall(), c.falsity(), c.differing, b.recall, b.wrong, c.worst)
						}
					})
				}
			}
		}
	}
}

// Programs in which a backend lost most stacks at one form of prologue.
func TestLostBefore(t *testing.T) {
	cmdtest.Long(t)
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, backend, machine, level, flags string
		seed                                 uint64
	}{
		// Code for a Cortex-M0 pushes r8 to r11 after it moved them to other registers, lr
		// among them.
		{"push of high registers", "thumb", "cortex-m0", "-O3", "-fno-stack-protector", 2},
		// The return address is saved before the loop, the stack pointer is lowered after it.
		{"loop that probes a large frame", "thumb", "cortex-m3", "-O1", "-fno-stack-protector -fstack-clash-protection", 1},
		{"loop that probes a large frame", "arm", "arm", "-O1", "-fno-stack-protector -fstack-clash-protection", 1},
		{"movw of a Cortex-M23", "thumb", "cortex-m0", "-O2", "-fno-stack-protector -mcpu=cortex-m23", 38},
		{"signed return addresses", "scan", "aarch64", "-O2", "-fno-stack-protector -mbranch-protection=standard", 1},
	} {
		t.Run(tt.name+" "+tt.machine, func(t *testing.T) {
			m := machineOf(tt.machine)
			if tool := m.missing(false); tool != "" {
				t.Skipf("%s is not installed", tool)
			}
			b := backends[slices.IndexFunc(backends, func(b backend) bool { return b.name == tt.backend && !b.table })]
			c, err := job{machine: m, backend: b, level: tt.level, program: program{seed: tt.seed, n: 40, runs: 60, ids: true}, flags: f(tt.flags), dir: dir}.run()
			if err != nil || c.fatal != "" {
				t.Fatal(err, c.fatal)
			}
			if c.expected < 1000 || c.recall() < 95 || !b.report && c.falsity() > b.wrong {
				t.Errorf("%.2f %% of %d frames found, %.2f %% false: want 95, %g\n\ttrue    %s", c.recall(), c.expected, c.falsity(), b.wrong, c.worst)
			}
		})
	}
}

// A backend that is wrong must be found wrong: here, frames that are missing,
// doubled, out of order or invented.
func TestCompareFindsFaults(t *testing.T) {
	symbols := &symbolTable{symbols: []elf.Symbol{
		{Name: "f_1", Value: 0x100, Size: 0x10}, {Name: "f_2.part.0", Value: 0x200, Size: 0x10},
		{Name: "other", Value: 0x300, Size: 0x10}, {Name: "main", Value: 0x400, Size: 0x10},
	}}
	truth := []frame{{0x104, "f_1"}, {0, "f_2"}, {0x404, "main"}}
	for _, tt := range []struct {
		name         string
		got          []uint64
		found, wrong int
	}{
		{"all", []uint64{0x104, 0x208, 0x404}, 3, 0},
		{"beyond main", []uint64{0x104, 0x208, 0x404, 0x308}, 3, 0},
		{"one missing", []uint64{0x104, 0x404}, 2, 0},
		{"the rest missing", []uint64{0x104}, 1, 0},
		{"an invented one", []uint64{0x104, 0x304, 0x208, 0x404}, 3, 1},
		{"an invented one after the last", []uint64{0x104, 0x304}, 1, 1},
		{"another address of the function", []uint64{0x108, 0x208, 0x404}, 2, 1},
		{"another function", []uint64{0x104, 0x304, 0x404}, 2, 1},
		{"twice", []uint64{0x104, 0x104, 0x208, 0x404}, 3, 1},
		{"out of order", []uint64{0x208, 0x104, 0x404}, 2, 1},
		{"nothing", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c count
			c.compare(truth, tt.got, symbols)
			if c.expected != 3 || c.found != tt.found || c.wrong != tt.wrong {
				t.Errorf("expected %d, found %d, wrong %d: want 3, %d, %d", c.expected, c.found, c.wrong, tt.found, tt.wrong)
			}
		})
	}
}

// A function that ended in a call is on the stack if the one it called returns to it.
func TestPresent(t *testing.T) {
	symbols := &symbolTable{symbols: []elf.Symbol{
		{Name: "f_1", Value: 0x100, Size: 0x10}, {Name: "f_2", Value: 0x200, Size: 0x10}, {Name: "f_3", Value: 0x300, Size: 0x10},
	}}
	stack := []entered{{"f_3", 0x204, false}, {"f_2", 0x104, true}, {"f_1", 0, false}}
	frames, err := present(stack, symbols)
	if want := []frame{{0, "f_3"}, {0x204, "f_2"}, {0x104, "f_1"}}; err != nil || !slices.Equal(frames, want) {
		t.Errorf("called: %v, %v, want %v", frames, err, want)
	}
	stack[0].ra = 0x104
	frames, err = present(stack, symbols)
	if want := []frame{{0, "f_3"}, {0x104, "f_1"}}; err != nil || !slices.Equal(frames, want) {
		t.Errorf("gone: %v, %v, want %v", frames, err, want)
	}
	recursive := []entered{{"f_3", 0x204, false}, {"f_2", 0x204, true}, {"f_2", 0x104, false}, {"f_1", 0, false}}
	frames, err = present(recursive, symbols)
	if want := []frame{{0, "f_3"}, {0x204, "f_2"}, {0x104, "f_1"}}; err != nil || !slices.Equal(frames, want) {
		t.Errorf("gone, of one that called itself: %v, %v, want %v", frames, err, want)
	}
	stack[0].ra = 0x304
	if frames, err = present(stack, symbols); err == nil {
		t.Errorf("a return address in a function that was not entered: %v, want an error", frames)
	}
}

// The table agrees with what nm lists, which reads the same file by other code.
func TestTableAgainstNm(t *testing.T) {
	cmdtest.Need(t, "gcc", "nm")
	dir := t.TempDir()
	exe := filepath.Join(dir, "a")
	src := filepath.Join(dir, "a.c")
	if err := os.WriteFile(src, []byte(`int three(int a) { return a * 3; } int main(void) { return three(1); }`), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-o", exe, "-no-pie", "-I../../include", "-DLWSBT_FUNCTIONS_MAX=1024", src, "../../src/capture_functions.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	table, err := functions.Patch(exe)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nm", exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := nmFunctions(string(out))
	for _, name := range []string{"main", "three"} {
		if !slices.Contains(table.Start, uint32(want[name]-table.Base)) {
			t.Errorf("%s at 0x%x is not in the table: %x from 0x%x", name, want[name], table.Start, table.Base)
		}
	}
	if !slices.IsSorted(table.Start) || table.Start[0] != 0 {
		t.Errorf("starts %x: want them sorted, from 0", table.Start)
	}
	again, err := functions.Patch(exe)
	if err != nil || !slices.Equal(again.Start, table.Start) {
		t.Errorf("patched once more: %v, %v", again, err)
	}
}

func nmFunctions(out string) map[string]uint64 {
	found := map[string]uint64{}
	for line := range strings.Lines(out) {
		var at uint64
		var kind, name string
		if n, _ := fmt.Sscanf(line, "%x %s %s", &at, &kind, &name); n == 3 && strings.EqualFold(kind, "t") {
			found[name] = at
		}
	}
	return found
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
