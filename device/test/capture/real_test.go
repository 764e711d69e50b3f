package capture

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// Real programs, one on one machine; with LWSBT_FULL=1, each on some machines, with -update all.
func TestRealPrograms(t *testing.T) {
	readSources(t)
	for _, j := range sampledJobs(t) {
		t.Run(j.String(), func(t *testing.T) {
			if tool := j.machine.missing(false); tool != "" {
				t.Skipf("%s is not installed", tool)
			}
			if _, missing := j.program.sources(); missing != "" {
				t.Skip(missing)
			}
			plain, table, err := j.run()
			if err != nil {
				t.Fatal(err)
			}
			want(t, "no table", plain)
			if j.backend.reads() {
				want(t, "table", table)
			}
		})
	}
}

// sampledJobs returns one of nine with LWSBT_FULL=all: each machine has two programs, each program
// all levels. With LWSBT_FULL=1, each second machine has one of the four that compile in seconds.
func sampledJobs(t *testing.T) (jobs []realJob) {
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range realBackends() {
		for _, m := range b.realMachines() {
			n++
			for i, p := range realPrograms {
				if figures.Update() {
					for _, level := range realLevels {
						jobs = append(jobs, realJob{machine: m, backend: b, level: level, program: p, dir: dir})
					}
					continue
				}
				k := (i + n) % 3
				light := b.name == "fp" && m.name == "x86-64" && p.name == "cjson"
				// sqlite3 takes a minute to compile, and duktape half of one.
				quick := map[string]int{"cjson": 0, "expat": 1, "lua": 2, "zlib": 3}
				at, isQuick := quick[p.name]
				if light || cmdtest.All() && i%3 == n%3 && p.name != "sqlite3" || cmdtest.Full() && !cmdtest.All() && isQuick && n%2 == 0 && at == n/2%4 {
					jobs = append(jobs, realJob{machine: m, backend: b, level: realLevels[k], program: p, dir: dir})
				}
			}
		}
	}
	return jobs
}

func want(t *testing.T, what string, c count) {
	t.Helper()
	if c.fatal != "" || c.captures < 20 || c.recall() < 99 || c.wrong > 0 || c.differing > 0 {
		t.Errorf("%s: %d stacks, %.2f %% found, %d false frames, %d differing, %s: want 20, 99, 0, 0\n\ttrue    %s",
			what, c.captures, c.recall(), c.wrong, c.differing, c.fatal, c.worst)
	}
}

// Frames beyond main that do not start the program are false.
func TestCompareToEnd(t *testing.T) {
	symbols := testSymbols("hook", "main", "__libc_start_main", "stale")
	hook, main, start, stale := uint64(0x104), uint64(0x204), uint64(0x304), uint64(0x404)
	for _, tt := range []struct {
		name         string
		got          []uint64
		found, wrong int
	}{
		{"to main", []uint64{hook, main}, 2, 0},
		{"to what calls main", []uint64{hook, main, start}, 2, 0},
		{"beyond", []uint64{hook, main, start, stale}, 2, 1},
		{"a stale one in place of it", []uint64{hook, main, stale, stale}, 2, 2},
		{"short", []uint64{hook}, 1, 0},
	} {
		var c count
		c.compareToEnd([]frame{{hook, "hook"}, {main, "main"}}, tt.got, symbols)
		if c.found != tt.found || c.wrong != tt.wrong {
			t.Errorf("%s: found %d, wrong %d: want %d, %d", tt.name, c.found, c.wrong, tt.found, tt.wrong)
		}
	}
}

// Each program that is measured has a driver.
func TestDrivers(t *testing.T) {
	var names []string
	for _, p := range realPrograms {
		names = append(names, p.name)
		if _, err := os.Stat(filepath.Join("real", p.name+".c")); err != nil {
			t.Error(err)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("%v: want them sorted", names)
	}
}

// testSymbols returns functions of 0x10 bytes from 0x100, 0x200 and so on.
func testSymbols(names ...string) *symbolTable {
	s := &symbolTable{}
	for i, name := range names {
		s.symbols = append(s.symbols, elf.Symbol{Name: name, Value: uint64(i+1) << 8, Size: 0x10})
	}
	return s
}
