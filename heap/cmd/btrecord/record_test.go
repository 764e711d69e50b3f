//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// shared is a directory for what is built once.
var shared string

// TestMain runs the command instead of the tests if it is asked to: tests need a process
// of its own.
func TestMain(m *testing.M) {
	if os.Getenv("LWSBT_TEST_BTRECORD") != "" {
		os.Unsetenv("LWSBT_TEST_BTRECORD")
		main()
	}
	var err error
	if shared, err = os.MkdirTemp("", "btrecord"); err != nil {
		panic(err)
	}
	if err := os.Chmod(shared, 0o755); err != nil { // another user runs the programs in it
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", shared) // of the library
	code := m.Run()
	os.RemoveAll(shared)
	os.Exit(code)
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

func modes(t testing.TB) string { return compile(t, "gcc", "modes.c", "-O1", "-pthread") }

// btrecord returns a command that runs btrecord, at most for a minute.
func btrecord(t testing.TB, args ...string) *exec.Cmd {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), "LWSBT_TEST_BTRECORD=1")
	return c
}

// run is a run of btrecord.
type run struct {
	file      string // the recording
	code      int
	out, errs string
}

// recorded records a program. Flags end before "--".
func recorded(t testing.TB, args ...string) run {
	t.Helper()
	r := run{file: filepath.Join(t.TempDir(), "rec")}
	var out, errs bytes.Buffer
	c := btrecord(t, append([]string{"-o", r.file}, args...)...)
	c.Stdout, c.Stderr = &out, &errs
	c.Run()
	r.code, r.out, r.errs = c.ProcessState.ExitCode(), out.String(), errs.String()
	return r
}

// read returns the dumps of a recording.
func read(t testing.TB, file string) []*profile.Dump {
	t.Helper()
	return readPaths(t, file, true)
}

// readPaths returns the dumps of a recording, in which call paths are complete if whole is true.
func readPaths(t testing.TB, file string, whole bool) []*profile.Dump {
	t.Helper()
	r, err := heaplog.Open(context.Background(), heaplog.Files(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []*profile.Dump
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if lost := d.Loss; !d.Complete() || lost != (profile.Loss{}) && (whole || lost != profile.Loss{NoOuter: lost.NoOuter}) {
			t.Errorf("%s: dump %s is not complete: %+v", file, d.Why, d.Loss)
		}
		list = append(list, d)
	}
	return list
}

// through returns what the call paths through a function hold.
func through(d *profile.Dump, function string) (v profile.Value) {
	for a := range d.Allocations() {
		for f := range a.Frames() {
			if f.Func == function {
				v.Bytes += a.Bytes
				v.Count += a.Count
				break
			}
		}
	}
	return v
}

func TestExitStatus(t *testing.T) {
	script := filepath.Join(t.TempDir(), "not-executable")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"true"}, 0},
		{[]string{"false"}, 1},
		{[]string{"sh", "-c", "exit 42"}, 42},
		{[]string{"sh", "-c", "kill -KILL $$"}, 128 + 9},
		{[]string{"sh", "-c", "kill -SEGV $$"}, 128 + 11},
		{[]string{"/no/such/program"}, 127},
		{[]string{"no-such-program"}, 127},
		{[]string{script}, 126},
		{[]string{compile(t, "gcc", "module.c", "-static", "-DFN=main")}, 125},
	} {
		r := recorded(t, append([]string{"--"}, test.args...)...)
		if test.code != 125 && r.code != test.code || test.code == 125 && !strings.Contains(r.errs, "static program") {
			t.Errorf("%v: exit status %d, want %d: %s", test.args, r.code, test.code, r.errs)
		}
	}
	if r := recorded(t, "-o", "/dev/full", "--", "true"); r.code != 125 || !strings.Contains(r.errs, "no space left") {
		t.Errorf("full device: exit status %d: %s", r.code, r.errs)
	}
	compilers := t.TempDir()
	for _, name := range []string{"cc", "gcc", "clang"} {
		if err := os.Symlink("/bin/false", filepath.Join(compilers, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", compilers)
	if r := recorded(t, "--", "/bin/true"); r.code != 125 || !strings.Contains(r.errs, "cannot build the library") {
		t.Errorf("no library: exit status %d: %s", r.code, r.errs)
	}
}

// However a process ends, all that it allocated is recorded.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		mode  string
		code  int
		count uint64
	}{
		{"churn", 0, 1250}, {"_exit", 0, 1250}, {"quick_exit", 0, 1250}, {"exit_group", 0, 1250},
		{"crash", 128 + 11, 1250}, {"kill", 128 + 9, 1250}, {"abort", 128 + 6, 1250},
		{"vfork", 0, 200}, {"execfails", 0, 200}, {"close", 0, 1313}, {"rawfork", 0, 2500},
	} {
		t.Run(test.mode, func(t *testing.T) {
			for _, flag := range []string{"--events", "--at-peak"} {
				r := recorded(t, flag, "--", modes(t), test.mode)
				if r.code != test.code {
					t.Fatalf("exit status %d, want %d: %s", r.code, test.code, r.errs)
				}
				dumps := read(t, r.file)
				last := dumps[len(dumps)-1]
				if last.Why != "exit" {
					t.Errorf("the last dump is of %q", last.Why)
				}
				if got, want := through(last, "churn"), (profile.Value{Bytes: 100 * test.count, Count: test.count}); got != want {
					t.Errorf("%s: %+v is live, want %+v", flag, got, want)
				}
			}
		})
	}
}

// A program that a process executes goes on in its recording.
func TestExec(t *testing.T) {
	for _, mode := range []string{"exec", "rawexec", "execveat", "longname"} {
		r := recorded(t, "--", modes(t), mode)
		var counts []uint64
		for _, d := range read(t, r.file) {
			counts = append(counts, through(d, "churn").Count)
		}
		want := []uint64{100, 200}
		if mode == "longname" {
			want[0] = 0
		}
		if r.code != 0 || !slices.Equal(counts, want) {
			t.Errorf("%s: exit status %d, %v blocks, want %v: %s", mode, r.code, counts, want, r.errs)
		}
	}
}

// btrecord says that a process executed a program that cannot be recorded.
func TestExecOfStatic(t *testing.T) {
	cmdtest.Long(t)
	program := compile(t, "gcc", "attach.c", "-static", "-pthread")
	c := btrecord(t, "-o", filepath.Join(t.TempDir(), "rec"), "--", "env", "sh", "-c", "exec "+program)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "keep 1 1")
	if answer, err := bufio.NewReader(out).ReadString('\n'); answer != "ok\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	time.Sleep(3 * time.Second)
	in.Close() // ends the program with 7
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 125 || !strings.Contains(errs.String(), "executed "+program) || !strings.Contains(errs.String(), "ended with status 7") {
		t.Errorf("exit status %d: %s", code, errs.String())
	}
	if r := recorded(t, "--", "env", "sh", "-c", "exec sleep 2"); strings.Contains(r.errs, "executed") {
		t.Errorf("a program that is recorded: %s", r.errs)
	}
}

// A child is recorded if that is wanted, and begins with no blocks.
func TestChildren(t *testing.T) {
	r := recorded(t, "--", modes(t), "fork")
	if files, _ := filepath.Glob(r.file + ".*"); len(files) != 0 {
		t.Errorf("without --children: %v", files)
	}
	for _, test := range []struct {
		mode  string
		flags []string
		want  []uint64 // live in the dumps of the child
	}{
		{"fork", nil, []uint64{200}},
		{"inherit", nil, []uint64{0}},
		{"inherit", []string{"--events"}, []uint64{0}},
	} {
		r := recorded(t, append(append([]string{"--children"}, test.flags...), "--", modes(t), test.mode)...)
		pid, _, _ := strings.Cut(r.out, "\n")
		if r.code != 0 || pid == "" {
			t.Fatalf("%+v: exit status %d: %s", test, r.code, r.errs)
		}
		var counts []uint64
		for _, d := range read(t, r.file+"."+pid) {
			counts = append(counts, through(d, "churn").Count)
		}
		if !slices.Equal(counts, test.want) {
			t.Errorf("%+v: the child has %v", test, counts)
		}
		dumps := read(t, r.file)
		if n := through(dumps[len(dumps)-1], "churn").Count; n != 100 {
			t.Errorf("%+v: the parent has %d blocks, want 100", test, n)
		}
	}
}

// The dump of the peak equals the live blocks at the peak according to the events.
func TestAtPeak(t *testing.T) {
	r := recorded(t, "--events", "--at-peak", "--", modes(t), "peak")
	for _, d := range read(t, r.file) {
		if got := through(d, "main"); d.Why == "peak" && (got.Count != 1000 || got.Bytes != 1000_000) {
			t.Errorf("%+v at the peak, want 1,000 blocks of 1,000 bytes", got)
		} else if d.Why == "peak" {
			return
		}
	}
	t.Error("no dump of the peak")
}

// Requests and intervals write dumps; a recording that is turned off and on begins again.
func TestControl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rec")
	c := btrecord(t, "--start-off", "-o", file, "--", modes(t), "wait")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 6)
	if _, err := out.Read(ready); err != nil {
		t.Fatal(err)
	}
	pid := ""
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.Process.Pid))
	for _, file := range files {
		children, _ := os.ReadFile(file)
		pid += strings.TrimSpace(string(children))
	}
	if pid == "" {
		t.Skip("this kernel does not tell children")
	}
	for _, request := range []string{"on", "dump", "off", "on", "on"} {
		ctl := btrecord(t, "ctl", pid, request)
		if text, err := ctl.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", request, err, text)
		}
	}
	in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	var why []string
	for _, d := range read(t, file) {
		why = append(why, d.Why)
		if n := through(d, "churn").Count; n != 0 {
			t.Errorf("%d blocks that were allocated while it was off", n)
		}
	}
	if got := strings.Join(why, " "); got != "request off exit" {
		t.Errorf("dumps of %s", got)
	}
	if err := btrecord(t, "ctl", fmt.Sprint(os.Getpid()), "dump").Run(); err == nil {
		t.Error("a dump of a process that is not recorded")
	}
}

func TestInterval(t *testing.T) {
	r := recorded(t, "--interval", "50ms", "--", modes(t), "slow")
	var why []string
	for _, d := range read(t, r.file) {
		why = append(why, d.Why)
	}
	// The program takes 400 ms or more: on a busy machine, dumps are late.
	if n := len(why) - 1; n < 2 || why[n] != "exit" || slices.ContainsFunc(why[:n], func(w string) bool { return w != "interval" }) {
		t.Errorf("dumps of %q, want some each 50 ms, and one at the exit", why)
	}
}

// A sample says what all allocations are, within five times the standard error that it
// gives.
func TestSample(t *testing.T) {
	r := recorded(t, "--sample", "16K", "--", modes(t), "sizes")
	dumps := read(t, r.file)
	d := dumps[len(dumps)-1]
	stderr, _ := d.TotalStdErr()
	const want = 13 << 20
	got := through(d, "main").Bytes
	if stderr == 0 || stderr > want/10 || math.Abs(float64(got)-want) > 5*stderr {
		t.Errorf("%d bytes ± %.0f, want %d", got, stderr, want)
	}
}

// Nothing is lost or counted twice where threads free each other's blocks, and fork while
// others allocate.
func TestStress(t *testing.T) {
	cmdtest.Long(t)
	for _, args := range [][]string{{"--events", "--", modes(t), "threads"}, {"--", modes(t), "threads"}, {"--children", "--", modes(t), "forks", "100"}} {
		r := recorded(t, args...)
		if r.code != 0 || strings.Contains(r.errs, "not seen in time") || strings.Contains(r.errs, "lost") {
			t.Errorf("%v: exit status %d: %s", args, r.code, r.errs)
		}
		dumps := read(t, r.file)
		if n := through(dumps[len(dumps)-1], "stress").Count; n != 0 {
			t.Errorf("%v: %d blocks are live, want none", args, n)
		}
		files, _ := filepath.Glob(r.file + ".*")
		if args[0] != "--children" {
			continue
		}
		if len(files) != 100 {
			t.Errorf("%d children are recorded, want 100", len(files))
		}
		for _, file := range files[:min(len(files), 10)] {
			if got := through(read(t, file)[0], "churn").Count; got != 32 {
				t.Errorf("%s: %d blocks, want 32", file, got)
			}
		}
	}
}

// A program runs on without its recorder.
func TestRecorderKilled(t *testing.T) {
	cmdtest.Long(t)
	file := filepath.Join(t.TempDir(), "rec")
	c := btrecord(t, "--events", "-o", file, "--", modes(t), "threads", "300000")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Stdout = w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	time.Sleep(300 * time.Millisecond)
	c.Process.Signal(syscall.SIGKILL)
	c.Wait()
	r.SetReadDeadline(time.Now().Add(30 * time.Second))
	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil || out.String() != "done\n" {
		t.Errorf("the program said %q: %v", out.String(), err)
	}
}

// At one address there is module B, then D, then B elsewhere: each block is of the
// function that allocated it.
func TestModulesComeAndGo(t *testing.T) {
	program := compile(t, "gcc", "xy.c", "-O2")
	b := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_b")
	d := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_d")
	for _, times := range []int{1, 40} {
		for _, flag := range []string{"--events", "--at-peak"} {
			r := recorded(t, flag, "--", program, b, d, fmt.Sprint(times))
			want := map[string]profile.Value{}
			for line := range strings.Lines(r.out) {
				function, _, _ := strings.Cut(line, " ")
				v := want[function]
				want[function] = profile.Value{Count: v.Count + 1}
			}
			if len(want) != 2 {
				t.Fatalf("the program printed %q", r.out)
			}
			dumps := read(t, r.file)
			last := dumps[len(dumps)-1]
			for function, v := range want {
				if got := through(last, function).Count; got != v.Count {
					t.Errorf("%d times, %s: %d blocks by %s, want %d", times, flag, got, function, v.Count)
				}
			}
		}
	}
}

// With --addresses, a dump has the blocks that the program has, with their sizes.
func TestAddresses(t *testing.T) {
	r := recorded(t, "--addresses", "--", modes(t), "addresses")
	want := map[uint64]uint64{}
	for line := range strings.Lines(r.out) {
		var at, size uint64
		if _, err := fmt.Sscanf(line, "block 0x%x %d", &at, &size); err == nil {
			want[at] = size
		}
	}
	if len(want) != 200 {
		t.Fatalf("the program says that it has %d blocks:\n%s%s", len(want), r.out, r.errs)
	}
	h, err := heaplog.Open(t.Context(), heaplog.Files(r.file))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for it, err := range h.Items() {
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range it.Allocs {
			sum := uint64(0)
			for _, b := range a.Blocks {
				if size, ok := want[b.Address]; ok && size == b.Size {
					delete(want, b.Address)
				}
				sum += b.Size
			}
			if uint64(len(a.Blocks)) != a.Count || sum != a.Bytes {
				t.Errorf("%d blocks of %d bytes, want %d of %d", len(a.Blocks), sum, a.Count, a.Bytes)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("%d blocks are not in the recording", len(want))
	}
}
