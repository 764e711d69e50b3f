//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func full() bool { return os.Getenv("LWSBT_FULL") != "" }

// shared is a directory for what is built once.
var shared string

func TestMain(m *testing.M) {
	var err error
	if shared, err = os.MkdirTemp("", "btrecord"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(shared)
	os.Exit(code)
}

// buildLibrary returns the library as cc builds it.
func buildLibrary(t testing.TB, cc string, extra ...string) string {
	t.Helper()
	cmdtest.Need(t, cc)
	path := filepath.Join(shared, "liblwsbt-"+strings.NewReplacer("/", "_", " ", "_").Replace(cc+strings.Join(extra, ""))+".so")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := build(cc, append([]string{"-Werror"}, extra...), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile builds a program of testdata, once.
func compile(t testing.TB, cc, source string, flags ...string) string {
	t.Helper()
	cmdtest.Need(t, cc)
	path := filepath.Join(shared, strings.NewReplacer("/", "_", " ", "_").Replace(source+cc+strings.Join(flags, "")))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	args := append(strings.Fields(cc)[1:], "-g", "-o", path, filepath.Join("testdata", source))
	if out, err := exec.Command(strings.Fields(cc)[0], append(args, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, source, err, out)
	}
	return path
}

// record runs a program with the library preloaded, and returns its recording and
// what it printed.
func record(t testing.TB, library string, env []string, stdin string, args ...string) (*recorded, string, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rec")
	out, errs := runPreloaded(t, library, append(env, "LWSBT_OUT="+path), stdin, args...)
	return readRecording(t, path), out, errs
}

func runPreloaded(t testing.TB, library string, env []string, stdin string, args ...string) (string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(append(os.Environ(), env...), "LD_PRELOAD="+library)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return out.String(), errs.String()
}

// functions is the functions of a program by address, as its symbol table has them.
type functions []elf.Symbol

func readFunctions(t testing.TB, path string) functions {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(all, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 })
	sort.Slice(list, func(i, j int) bool { return list[i].Value < list[j].Value })
	return list
}

// name returns the function that a frame "module+0xoffset" returns to, if it is of
// the program.
func (f functions) name(frame, program string) string {
	module, offset, _ := strings.Cut(frame, "+0x")
	if module != filepath.Base(program) {
		return ""
	}
	pc, err := strconv.ParseUint(offset, 16, 64)
	if err != nil {
		return ""
	}
	i := sort.Search(len(f), func(i int) bool { return f[i].Value+f[i].Size > pc-1 })
	if i == len(f) || f[i].Value > pc-1 {
		return ""
	}
	return f[i].Name
}

// A script is operations for testdata/ops.c.
func randomScript(r *rand.Rand, threads bool) (script string, last map[int]string) {
	var b strings.Builder
	live := map[int]bool{}
	last = map[int]string{}
	for range 20 + r.IntN(60) {
		slot := r.IntN(40)
		op := "rymcagpvd"[r.IntN(9)]
		switch {
		case live[slot] && r.IntN(2) == 0:
			op = 'f'
		case live[slot]:
			op = "ry"[r.IntN(2)]
		}
		size := 1 + r.IntN([]int{16, 200, 5000, 300000}[r.IntN(4)])
		var path []byte
		for range r.IntN(9) {
			path = append(path, byte('0'+r.IntN(9)))
		}
		path = append(path, '.')
		letter := op
		if threads && r.IntN(8) == 0 {
			letter = op - 32
		}
		fmt.Fprintf(&b, "%c %d %d %s\n", letter, slot, size, path)
		live[slot] = op != 'f'
		last[slot] = string(path) + string(letter)
	}
	return b.String(), last
}

// wantStack is the program's functions on a stack, innermost first.
func wantStack(path string) []string {
	digits, letter, _ := strings.Cut(path, ".")
	want := []string{"act"}
	for _, d := range slices.Backward([]byte(digits)) {
		want = append(want, "step", "f"+string(d))
	}
	if want = append(want, "step"); letter < "a" {
		return append(want, "thread")
	}
	return append(want, "main")
}

// checkOps holds the last dump of a recording of ops.c against what the program
// printed, address by address, and the stacks against the symbol table.
func checkOps(t *testing.T, r *recorded, out string, last map[int]string, program string, fns functions) {
	t.Helper()
	type slot struct {
		size uint64
		path string
	}
	want := map[uint64]slot{}
	for line := range strings.Lines(out) {
		var n int
		var addr, size uint64
		if _, err := fmt.Sscanf(line, "%d 0x%x %d", &n, &addr, &size); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want[addr] = slot{size, last[n]}
	}
	for _, b := range r.last(t).blocks {
		var names []string
		for _, f := range b.stack {
			if n := fns.name(f, program); n != "" && n != "_start" {
				names = append(names, n)
			}
		}
		w, ok := want[b.addr]
		if !ok {
			if slices.Contains(names, "act") {
				t.Errorf("%#x, %d bytes by %v: is not live", b.addr, b.size, names)
			}
			continue
		}
		delete(want, b.addr)
		if b.size != w.size {
			t.Errorf("%#x has %d bytes, want %d", b.addr, b.size, w.size)
		}
		if stack := wantStack(w.path); !slices.Equal(names, stack) {
			t.Errorf("%#x by %v, want %v\n%v", b.addr, names, stack, b.stack)
		}
	}
	for addr, w := range want {
		t.Errorf("%#x of %d bytes is live, and not in the dump", addr, w.size)
	}
	checkEvents(t, r)
}

// checkEvents holds what the events leave against the last dump.
func checkEvents(t *testing.T, r *recorded) {
	t.Helper()
	if r.events == nil {
		return
	}
	live := r.replay(t)
	for _, b := range r.last(t).blocks {
		if e, ok := live[b.addr]; !ok || e.size != b.size || !slices.Equal(e.stack, b.stack) {
			t.Errorf("%#x of %d bytes is in the dump; by the events: %v %+v", b.addr, b.size, ok, e)
		}
		delete(live, b.addr)
	}
	if len(live) > 0 {
		t.Errorf("%d blocks live by the events are not in the dump", len(live))
	}
}

// Random programs of malloc calls leave exactly the live set they should, each
// block with the stack that it was allocated by.
func TestRandomPrograms(t *testing.T) {
	library := buildLibrary(t, "gcc")
	runs := 60
	if full() {
		runs = 2000
	}
	for _, flags := range [][]string{{"-O2"}, {"-O0"}, {"-Os", "-static-pie"}, {"-O2", "-fomit-frame-pointer", "-no-pie"}} {
		program := compile(t, "gcc", "ops.c", append(flags, "-pthread")...)
		fns := readFunctions(t, program)
		static := slices.Contains(flags, "-static-pie")
		for i := range runs / 4 {
			r := rand.New(rand.NewPCG(uint64(i), 13))
			script, last := randomScript(r, true)
			if static { // nothing is recorded, and all runs on
				path := filepath.Join(t.TempDir(), "rec")
				runPreloaded(t, library, []string{"LWSBT_OUT=" + path}, script, program)
				if _, err := os.Stat(path); err == nil {
					t.Fatal("a recording of a static program")
				}
				break
			}
			env := []string{"LWSBT_CHECK=1"}
			if i%2 == 1 {
				env = append(env, "LWSBT_EVENTS=1")
			}
			rec, out, errs := record(t, library, env, script, program)
			checkOps(t, rec, out, last, program, fns)
			if !strings.Contains(errs, "differed=0 ") || strings.Contains(errs, "checked=0 ") {
				t.Errorf("the unwinder's stacks differ: %s", errs)
			}
			if t.Failed() {
				t.Fatalf("%v, script %d:\n%s", flags, i, script)
			}
		}
	}
}
