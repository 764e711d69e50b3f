//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func modes(t testing.TB) string { return compile(t, "gcc", "modes.c", "-O1", "-pthread") }

// run runs modes.c by a shell line, in which $P is the program, and returns what it
// wrote. It must not fail; LWSBT_OUT is out.
func shell(t *testing.T, out, line string) (stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	c := exec.Command("/bin/sh", "-c", line)
	c.Env = append(os.Environ(), "P="+modes(t), "OUT="+out, "LWSBT_EVENTS=1",
		"PRELOAD=env LWSBT_OUT="+out+" LD_PRELOAD="+buildLibrary(t, "gcc"))
	c.Stdout, c.Stderr = &o, &e
	if err := c.Run(); err != nil {
		t.Errorf("%s: %v\n%s%s", line, err, o.String(), e.String())
	}
	return o.String(), e.String()
}

// Whatever is wrong with the output, the program runs on, the reason is said, and
// what was recorded is whole lines.
func TestOutputFails(t *testing.T) {
	small := t.TempDir()
	mounted := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "none", small).Run() == nil
	if mounted {
		defer exec.Command("umount", small).Run()
	}
	for _, test := range []struct {
		name, out, line, want string
		part                  bool // something was recorded
	}{
		{"full disk", filepath.Join(small, "rec"), `$PRELOAD $P churn 50000`, "no space left on device", true},
		{"full device", "/dev/full", `$PRELOAD $P churn`, "no space left on device", false},
		{"file size limit", "", `ulimit -f 128; $PRELOAD $P churn 50000`, "file size limit reached", true},
		{"few descriptors", "", `ulimit -n 4; $PRELOAD $P descriptor-later 50000`, "", true},
		{"no descriptor left", "", `ulimit -n 4; $PRELOAD $P descriptor 50000`, "too many open files", false},
		{"no such directory", "/nonexistent/rec", `$PRELOAD $P churn`, "no such file or directory", false},
		{"a directory", "/tmp", `$PRELOAD $P churn`, "cannot open the recording", false},
		{"no recording", "", `echo precious >$OUT; $PRELOAD $P churn; grep -q precious $OUT`, "not a recording", false},
		{"pipe closed", "", `mkfifo $OUT.p; exec 3<>$OUT.p; head -c 100000 <&3 >$OUT & exec 3<&-; $PRELOAD env LWSBT_OUT=$OUT.p $P churn 50000`, "broken pipe", false},
		{"pipe that nobody reads", "", `mkfifo $OUT; $PRELOAD $P churn`, "nobody reads it", false},
		{"write forbidden", "", `$PRELOAD $P seccomp-write; echo done`, "", true},
		{"descriptors closed", "", `$PRELOAD $P close 50000`, "", true},
		{"another directory", "", `cd ${OUT%/*}; $PRELOAD env LWSBT_OUT=rec $P chdir 50000`, "", true},
		{"stderr closed", "/nonexistent/rec", `$PRELOAD $P churn 2>&-`, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.out == "" {
				test.out = filepath.Join(t.TempDir(), "rec")
			} else if strings.HasPrefix(test.out, small) && !mounted {
				t.Skip("cannot mount a small tmpfs")
			}
			stdout, stderr := shell(t, test.out, test.line)
			if !strings.HasSuffix(stdout, "done\n") {
				t.Errorf("the program did not run on: %q %q", stdout, stderr)
			}
			if !strings.Contains(stderr, test.want) {
				t.Errorf("said %q, want %q", stderr, test.want)
			}
			if n := strings.Count(stderr, "\n"); n > 2 {
				t.Errorf("%d lines said:\n%s", n, stderr)
			}
			if test.part {
				if r := readRecording(t, test.out); len(r.events) < 100 {
					t.Errorf("%d events were recorded", len(r.events))
				}
			}
		})
	}
	t.Run("another file on its descriptor", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "rec")
		shell(t, out, "$PRELOAD $P reuse 50000 "+out+".other")
		if info, err := os.Stat(out + ".other"); err != nil || info.Size() != 0 {
			t.Errorf("the program's file was written to: %v", err)
		}
		checkEvents(t, readRecording(t, out))
	})
	t.Run("no memory for tables", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "rec")
		stdout, _ := shell(t, out, "$PRELOAD $P seccomp-mmap 200000")
		if !strings.HasSuffix(stdout, "done\n") {
			t.Errorf("%q", stdout)
		}
		readRecording(t, out)
	})
}

// However a process ends, what it allocated until then is there.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		mode string
		dump bool
	}{{"churn", true}, {"_exit", true}, {"quick_exit", true}, {"vfork", true}, {"execfails", true}, {"rawfork", true},
		{"crash", false}, {"kill", false}, {"abort", false}} {
		t.Run(test.mode, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "rec")
			c := exec.Command(modes(t), test.mode)
			c.Env = append(os.Environ(), "LWSBT_OUT="+out, "LWSBT_EVENTS=1", "LD_PRELOAD="+buildLibrary(t, "gcc"))
			if err := c.Run(); (err == nil) != test.dump {
				t.Fatal(err)
			}
			r := readRecording(t, out)
			if len(r.boots) != 1 {
				t.Errorf("%d processes in one recording", len(r.boots))
			}
			if !test.dump {
				if len(r.events) < 10000 {
					t.Errorf("%d events", len(r.events))
				}
				return
			}
			checkEvents(t, r)
			want := map[string]int{"churn": 1250, "_exit": 1250, "quick_exit": 1250, "vfork": 200, "execfails": 200, "rawfork": 2500}[test.mode]
			got := 0
			for _, b := range r.last(t).blocks {
				if b.size == 100 {
					got++
				}
			}
			if got != want {
				t.Errorf("%d blocks, want %d", got, want)
			}
		})
	}
}

func count100(d recordedDump) (n int) {
	for _, b := range d.blocks {
		if b.size == 100 {
			n++
		}
	}
	return n
}

// Each process has a recording of its own, if children are wanted; and a program
// that it executes goes on in it.
func TestForkAndExec(t *testing.T) {
	library := buildLibrary(t, "gcc")
	out := filepath.Join(t.TempDir(), "rec")
	stdout, _ := runPreloaded(t, library, []string{"LWSBT_OUT=" + out, "LWSBT_EVENTS=1"}, "", modes(t), "fork")
	if pid, _, _ := strings.Cut(stdout, "\n"); pid == "" {
		t.Error("the program did not print the number of its child")
	}
	if files, _ := filepath.Glob(out + "*"); len(files) != 1 {
		t.Errorf("without children: %v", files)
	}
	r := readRecording(t, out)
	checkEvents(t, r)
	if n := count100(r.last(t)); n != 100 {
		t.Errorf("the parent has %d blocks, want 100", n)
	}

	out = filepath.Join(t.TempDir(), "rec")
	stdout, _ = runPreloaded(t, library, []string{"LWSBT_OUT=" + out, "LWSBT_CHILDREN=1"}, "", modes(t), "fork")
	pid, _, _ := strings.Cut(stdout, "\n")
	if n := count100(readRecording(t, out).last(t)); n != 100 {
		t.Errorf("the parent has %d blocks, want 100", n)
	}
	r = readRecording(t, out+"."+pid)
	if n := count100(r.dumps[0]); n != 100 {
		t.Errorf("the child inherits %d blocks, want 100", n)
	}
	if n := count100(r.last(t)); n != 300 {
		t.Errorf("the child has %d blocks, want 300", n)
	}
	if got, _ := r.boots[0].Get("pid"); got != pid {
		t.Errorf("the child is process %s, want %s", got, pid)
	}

	for _, children := range []string{"0", "1"} {
		out = filepath.Join(t.TempDir(), "rec")
		runPreloaded(t, library, []string{"LWSBT_OUT=" + out, "LWSBT_CHILDREN=" + children}, "", modes(t), "exec")
		r = readRecording(t, out)
		if len(r.boots) != 2 || len(r.dumps) != 2 {
			t.Fatalf("%d programs and %d dumps, want 2 and 2", len(r.boots), len(r.dumps))
		}
		if a, b := count100(r.dumps[0]), count100(r.dumps[1]); a != 100 || b != 200 {
			t.Errorf("%d and %d blocks, want 100 and 200", a, b)
		}
	}
}

// A relative path is of the directory in which the program started.
func TestRelativeOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "100 %p")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	library, program := buildLibrary(t, "gcc"), modes(t)
	c := exec.Command(program, "chdirexec")
	c.Dir = dir
	c.Env = append(os.Environ(), "LWSBT_OUT=rec%%", "LD_PRELOAD="+library)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := readRecording(t, filepath.Join(dir, "rec%"))
	if len(r.boots) != 2 || len(r.dumps) != 2 {
		t.Errorf("%d programs and %d dumps, want 2 and 2", len(r.boots), len(r.dumps))
	}
}

// A fork comes at any moment of other threads: the child does not wait for what they
// hold.
func TestForkOfThreads(t *testing.T) {
	library := buildLibrary(t, "gcc")
	out := filepath.Join(t.TempDir(), "rec")
	const forks = 200
	if stdout, stderr := runPreloaded(t, library, []string{"LWSBT_OUT=" + out, "LWSBT_CHILDREN=1"}, "", modes(t), "forks", strconv.Itoa(forks)); !strings.HasSuffix(stdout, "done\n") {
		t.Fatalf("%q %q", stdout, stderr)
	}
	files, _ := filepath.Glob(out + ".*")
	if len(files) != forks {
		t.Errorf("%d recordings of children, want %d", len(files), forks)
	}
	for _, f := range files {
		readRecording(t, f)
	}
}

// Sizes and alignments that are none get what they get without us.
func TestEdges(t *testing.T) {
	want, err := exec.Command(modes(t), "edges").Output()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "rec")
	got, _ := runPreloaded(t, buildLibrary(t, "gcc"), []string{"LWSBT_OUT=" + out, "LWSBT_EVENTS=1"}, "", modes(t), "edges")
	if got != string(want) || strings.Count(got, "\n") < 100 {
		t.Errorf("recorded:\n%s\notherwise:\n%s", got, want)
	}
	r := readRecording(t, out)
	checkEvents(t, r)
}

// Dumps come when they are asked for, at the peak, and every so often.
func TestDumps(t *testing.T) {
	library := buildLibrary(t, "gcc")
	why := func(r *recorded) (list string) {
		for _, d := range r.dumps {
			w, _ := d.begin.Get("why")
			list += w + " "
		}
		return list
	}
	t.Run("peak", func(t *testing.T) {
		r, _, _ := record(t, library, []string{"LWSBT_AT_PEAK=1"}, "", modes(t), "peak")
		d := r.dumps[len(r.dumps)-2]
		if w, _ := d.begin.Get("why"); w != "peak" || len(d.blocks) < 1000 || d.bytes() < 1000000 {
			t.Errorf("%s: %d blocks", why(r), len(d.blocks))
		}
		peak, _ := r.totals[len(r.totals)-1].Uint("peak")
		if b := d.bytes(); b > peak || b < peak-peak/100-4096 {
			t.Errorf("the dump has %d bytes, the peak is %d", b, peak)
		}
	})
	t.Run("interval", func(t *testing.T) {
		start := time.Now()
		r, _, _ := record(t, library, []string{"LWSBT_INTERVAL=0.1"}, "", modes(t), "slow")
		took := time.Since(start) // 0.4 s or more
		if n := strings.Count(why(r), "interval "); n < 2 || n > int(took/(100*time.Millisecond)) {
			t.Errorf("in %v: %s", took, why(r))
		}
		for i := 1; i < len(r.dumps); i++ {
			if len(r.dumps[i].blocks) < len(r.dumps[i-1].blocks) {
				t.Errorf("dump %d has %d blocks, after %d", i, len(r.dumps[i].blocks), len(r.dumps[i-1].blocks))
			}
		}
	})
	t.Run("signals", func(t *testing.T) {
		r, _, _ := record(t, library, []string{"LWSBT_EVENTS=1"}, "", modes(t), "signals", "5000")
		if strings.Count(why(r), "signal ") < 3 {
			t.Errorf("dumps: %s", why(r))
		}
		checkEvents(t, r)
	})
	t.Run("request", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "rec")
		c := exec.Command(modes(t), "wait")
		c.Env = append(os.Environ(), "LWSBT_OUT="+out, "LD_PRELOAD="+library)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(stdout, make([]byte, 6))
		for i := range 2 {
			text, err := requestDump(c.Process.Pid, time.Minute)
			if err != nil || !strings.HasPrefix(text, fmt.Sprintf("%s: dump %d, ", out, i)) {
				t.Errorf("%q %v", text, err)
			}
		}
		in.Close()
		io.Copy(io.Discard, stdout)
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		if r := readRecording(t, out); why(r) != "signal signal exit " || count100(r.dumps[0]) != 1250 {
			t.Errorf("%s %d", why(r), count100(r.dumps[0]))
		}
		if _, err := requestDump(os.Getpid(), time.Minute); cli.Code(err) != cli.Usage {
			t.Errorf("a process that is not recorded: %v", err)
		}
	})
}

// Many threads: nothing is lost, nothing is there twice. 10^8 allocations under
// LWSBT_FULL=1 without events, which would be some gigabytes.
func TestThreads(t *testing.T) {
	library := buildLibrary(t, "gcc")
	r, _, _ := record(t, library, []string{"LWSBT_EVENTS=1"}, "", modes(t), "threads", "2000")
	if len(r.events) < 24*2000 {
		t.Errorf("%d events", len(r.events))
	}
	threads := map[uint64]bool{}
	for _, e := range r.events {
		threads[e.thread] = true
	}
	if len(threads) != 25 {
		t.Errorf("%d threads, want 25", len(threads))
	}
	checkEvents(t, r)
	n := 100000
	if full() {
		n = 4200000
	}
	r, _, _ = record(t, library, nil, "", modes(t), "threads", strconv.Itoa(n))
	total := r.totals[len(r.totals)-1]
	get := func(key string) uint64 { v, _ := total.Uint(key); return v }
	if get("allocs") < uint64(24*n) || get("allocs") > uint64(24*n+100) {
		t.Errorf("%d allocations, want %d and few more", get("allocs"), 24*n)
	}
	for _, b := range r.last(t).blocks {
		if b.size <= 256 && strings.Contains(strings.Join(b.stack, " "), filepath.Base(modes(t))+"+") && len(b.stack) == 4 {
			t.Errorf("a block of a thread is left: %+v", b)
		}
	}
}

// btrecord runs programs that it cannot record, and says so.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(shared, "cache"))
	static := compile(t, "gcc", "modes.c", "-O1", "-pthread", "-static")
	modes(t)
	t.Chdir(dir)
	setuid := filepath.Join(dir, "setuid")
	text, err := os.ReadFile(modes(t))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(setuid, text, 0o755)
	canOwn := os.Getuid() == 0 && os.Chown(setuid, 65534, 0) == nil && os.Chmod(setuid, 0o755|os.ModeSetuid) == nil
	os.WriteFile("script", []byte("#!/bin/sh\nexec "+modes(t)+" churn 1600\n"), 0o755)
	os.WriteFile("text", []byte("no program\n"), 0o755)
	os.WriteFile("lib.so", text[:100], 0o755)
	// The same for another machine, and with another loader: what an ELF header (at 18)
	// and PT_INTERP have of them.
	foreign := slices.Clone(text)
	binary.NativeEndian.PutUint16(foreign[18:], uint16(elf.EM_SPARCV9)) // for which there is no Go
	os.WriteFile("foreign", foreign, 0o755)
	at := bytes.Index(text, []byte("/ld-"))
	loaderless := slices.Clone(text)
	copy(loaderless[at:], "/no-")
	os.WriteFile("loaderless", loaderless, 0o755)
	emulated, _ := filepath.Glob("/proc/sys/fs/binfmt_misc/qemu-*")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"-- " + modes(t) + " churn 1600", 0, " in 101 allocations at the end"},
		{"-o x%p.rec ./script", 0, "/x%p.rec: "},
		{"-- " + modes(t) + " nonsense", 3, "exit status 8"},
		{"-- " + modes(t) + " crash", 3, "segmentation fault"},
		{"-- " + static + " churn", 3, "is a static program"},
		{"-- ./setuid churn", 3, "setuid"},
		{"-- ./text", 3, ""},
		{"-- ./foreign", 2, "foreign is a program for SPARCV9, and this machine is "},
		{"-- ./loaderless", 2, "its loader is missing"},
		{"-- /nonexistent", 2, "no such program"},
		{"", 2, "expected a program to run"},
		{"--interval 1us -- true", 2, "--interval"},
		{"--library lib.so -- " + modes(t), 2, "lib.so"},
		{"--library lib.so --cc x -- " + modes(t), 2, "--cc has no effect with --library"},
		{"library --sources x --cc cc", 2, "--cc has no effect with --sources"},
		{"library --sources x -o y", 2, "--output has no effect with --sources"},
		{"--library /bin/true -o /nonexistent/y -- " + modes(t), 3, "/nonexistent/y"},
		{"--cc /nonexistent/cc -- true", 3, "no C compiler"},
		{"dump x", 2, "PID"},
		{"dump 1", 2, "process 1"},
		{"library --cc false -o y.so", 3, "cannot build"},
	} {
		if strings.Contains(test.args, "setuid") && !canOwn || len(emulated) > 0 && (strings.Contains(test.args, "foreign") || strings.Contains(test.args, "loaderless")) {
			continue
		}
		var out, errs bytes.Buffer
		code := cli.Run(command(), strings.Fields(test.args), nil, &out, &errs)
		if code != test.code || !strings.Contains(errs.String(), test.want) {
			t.Errorf("btrecord %s: exit code %d, want %d and %q:\n%s", test.args, code, test.code, test.want, errs.String())
		}
	}
	r := readRecording(t, filepath.Base(modes(t))+".rec")
	if n := count100(r.last(t)); n != 100 {
		t.Errorf("%d blocks, want 100", n)
	}
	if n := count100(readRecording(t, "x%p.rec").last(t)); n != 100 {
		t.Errorf("by a script: %d blocks, want 100", n)
	}
}
