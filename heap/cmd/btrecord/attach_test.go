//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// needPtrace skips a test where GDB cannot attach to a process, or cannot call functions in it.
func needPtrace(t *testing.T) {
	t.Helper()
	if why := noCalls(t); why != "" {
		t.Skip(why)
	}
}

// noCalls returns why GDB cannot call functions in processes here, "" if it can.
func noCalls(t *testing.T) string {
	t.Helper()
	cmdtest.Need(t, "gdb")
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	out, _ := exec.Command("gdb", "-nx", "-batch", "-p", fmt.Sprint(c.Process.Pid), "-ex", "call (int)getpid()").CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("not permitted")):
		return "ptrace is not permitted here"
	case bytes.Contains(out, []byte(oldGDB)):
		return "gdb cannot call functions on this processor: " + oldGDB
	}
	return ""
}

// oldGDB is in the error of a GDB that does not know all registers of the processor.
const oldGDB = "Couldn't write extended state status"

// told is a running testdata/attach.c.
type told struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func tell(t *testing.T) *told {
	c := exec.Command(compile(t, "gcc", "attach.c", "-O1", "-pthread", "-ldl"))
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
	t.Cleanup(func() { c.Process.Kill() })
	return &told{t, c, in, bufio.NewReader(out)}
}

func (p *told) do(command string) {
	p.t.Helper()
	fmt.Fprintln(p.in, command)
	if line, err := p.out.ReadString('\n'); line != "ok\n" {
		p.t.Fatalf("%s: %q, %v", command, line, err)
	}
}

// attachment is a btrecord that attached.
type attachment struct {
	t    *testing.T
	cmd  *exec.Cmd
	errs *bufio.Reader
	file string
}

func attachTo(t *testing.T, pid int, flags ...string) *attachment {
	t.Helper()
	a := &attachment{t: t, file: filepath.Join(t.TempDir(), "rec")}
	a.cmd = btrecord(t, append([]string{"--pid", fmt.Sprint(pid), "-o", a.file}, flags...)...)
	errs, err := a.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a.errs = bufio.NewReader(errs)
	if line, _ := a.errs.ReadString('\n'); !strings.Contains(line, "recording process") {
		t.Fatalf("%q, expected that it attached", line)
	}
	return a
}

// detach interrupts btrecord and returns the last dump.
func (a *attachment) detach() *profile.Dump {
	a.t.Helper()
	a.cmd.Process.Signal(os.Interrupt)
	return a.end("off")
}

// end waits for the end of btrecord and returns the last dump, which has the given reason.
func (a *attachment) end(why string) *profile.Dump {
	a.t.Helper()
	errs, _ := io.ReadAll(a.errs)
	if err := a.cmd.Wait(); err != nil || bytes.Contains(errs, []byte("hooks stay")) {
		a.t.Fatalf("%v: %s", err, errs)
	}
	dumps := read(a.t, a.file)
	if len(dumps) == 0 || dumps[len(dumps)-1].Why != why {
		a.t.Fatalf("%d dumps, the last not of %q: %s", len(dumps), why, errs)
	}
	return dumps[len(dumps)-1]
}

// What a process does while btrecord is attached is recorded, no more and no less: not
// what it did before, also of modules that it loads later, more than once, and until its end.
func TestAttach(t *testing.T) {
	needPtrace(t)
	before, _ := filepath.Glob(filepath.Join(os.TempDir(), "*lwsbt*.so"))
	module := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_module")
	p := tell(t)
	p.do("keep 30 1000")
	modes := [][]string{{"--events"}, nil, {"--addresses"}}
	if !cmdtest.Full() {
		modes = modes[:1]
	}
	for _, flags := range modes {
		a := attachTo(t, p.cmd.Process.Pid, flags...)
		if out, err := btrecord(t, "--pid", fmt.Sprint(p.cmd.Process.Pid), "-o", a.file+"2").CombinedOutput(); err == nil || !strings.Contains(string(out), "is recorded by process") {
			t.Errorf("attaching again: %v: %s", err, out)
		}
		if out, err := btrecord(t, "ctl", fmt.Sprint(p.cmd.Process.Pid), "dump").CombinedOutput(); err != nil {
			t.Errorf("ctl: %v: %s", err, out)
		}
		p.do("drop 10") // of before
		p.do("keep 500 64")
		p.do("drop 100")
		p.do("load " + module)
		d := a.detach()
		p.do("keep 20 50")
		p.do("drop 20")
		if got, want := through(d, "keep"), (profile.Value{Bytes: 400 * 64, Count: 400}); got != want {
			t.Errorf("%v: %+v, want %+v", flags, got, want)
		}
		if got, want := through(d, "of_module"), (profile.Value{Bytes: 777, Count: 1}); got != want {
			t.Errorf("%v: of the module %+v, want %+v", flags, got, want)
		}
	}
	a := attachTo(t, p.cmd.Process.Pid)
	p.do("keep 5 8")
	fmt.Fprintln(p.in, "keep x")
	p.in.(io.Closer).Close()
	if got := through(a.end("exit"), "keep"); got != (profile.Value{Bytes: 40, Count: 5}) {
		t.Errorf("%+v, want 5 blocks", got)
	}
	p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("the program ended with %d, want 7", code)
	}
	if now, _ := filepath.Glob(filepath.Join(os.TempDir(), "*lwsbt*.so")); len(now) > len(before) {
		t.Errorf("left over: %v, before %v", now, before)
	}
}

// All threads are in malloc, or wait for a lock.
func TestAttachStorm(t *testing.T) {
	cmdtest.Long(t)
	needPtrace(t)
	p := tell(t)
	p.do("storm 4")
	p.do("join")
	for range 3 {
		d := attachTo(t, p.cmd.Process.Pid, "--duration", "200ms").end("off")
		if got := through(d, "storm"); got.Count > 4 || d.Total.Count != got.Count {
			t.Errorf("%+v of %+v live, of 4 threads with one block each", got, d.Total)
		}
	}
	if err := p.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program has ended: %v", err)
	}
}

// --duration is how long events are recorded, however long gdb takes to stop the process.
func TestAttachDuration(t *testing.T) {
	cmdtest.Long(t)
	needPtrace(t)
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Fatal(err)
	}
	slow := t.TempDir()
	if err := os.WriteFile(filepath.Join(slow, "gdb"), []byte("#!/bin/sh\nsleep 2\nexec "+gdb+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", slow+":"+os.Getenv("PATH"))
	p := tell(t)
	p.do("storm 1")
	a := attachTo(t, p.cmd.Process.Pid, "--events", "--duration", "500ms")
	a.end("off")
	r, err := heaplog.Open(t.Context(), heaplog.Files(a.file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var first, last uint64 // µs
	n := 0
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range it.Events {
			if n++; n == 1 {
				first = e.Time
			}
			last = e.Time
		}
	}
	if n < 1000 || last-first < 300_000 || last-first > 1_500_000 {
		t.Errorf("%d events in %d µs, want those of 500,000 µs", n, last-first)
	}
}

// An interpreter that imports modules while btrecord is attached prints what it should.
func TestAttachPython(t *testing.T) {
	cmdtest.Long(t)
	needPtrace(t)
	cmdtest.Need(t, "python3")
	script := `
import time
print("ready", flush=True)
time.sleep(3)
import json, decimal
keep = [bytearray(10000) for i in range(100)]
print(len(json.dumps({str(i): i for i in range(10000)})), decimal.Decimal(2).sqrt(), flush=True)
time.sleep(0.1)`
	c := exec.Command("python3", "-c", script)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	text := bufio.NewReader(out)
	text.ReadString('\n')
	a := attachTo(t, c.Process.Pid, "--interval", "50ms")
	rest, _ := io.ReadAll(text)
	if err := c.Wait(); err != nil || string(rest) != "137780 1.414213562373095048801688724\n" {
		t.Errorf("it printed %q, %v", rest, err)
	}
	a.end("exit")
	var most uint64
	for _, d := range read(t, a.file) {
		most = max(most, through(d, "main").Bytes, d.Total.Bytes)
	}
	if most < 1_000_000 {
		t.Errorf("at most %d bytes were live, and the script has 1,000,000 at once", most)
	}
}

// A GDB that cannot call functions does not harm the process: what the program waits for still
// comes.
func TestAttachOldGDB(t *testing.T) {
	if why := noCalls(t); !strings.Contains(why, oldGDB) {
		t.Skip("gdb can call functions on this processor")
	}
	p := tell(t)
	p.do("keep 1 8")
	c := btrecord(t, "--pid", fmt.Sprint(p.cmd.Process.Pid), "-o", filepath.Join(t.TempDir(), "rec"))
	out, _ := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != notRecorded || !strings.Contains(string(out), "a newer gdb may") {
		t.Errorf("exit status %d, want %d: %s", code, notRecorded, out)
	}
	p.do("keep 1 8")
}

func TestAttachErrors(t *testing.T) {
	static := exec.Command(compile(t, "gcc", "attach.c", "-static", "-pthread"))
	in, err := static.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := static.Start(); err != nil {
		t.Fatal(err)
	}
	defer static.Wait()
	defer in.Close()
	time.Sleep(50 * time.Millisecond) // until it is executed
	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--pid", "0"}, 2, "expected the PID of a process"},
		{[]string{"--pid", "1", "--", "true"}, 2, "expected no program"},
		{[]string{"--pid", "1", "--duration", "-1s"}, 2, "expected a time"},
		{[]string{"--duration", "1s", "--", "true"}, 2, "with --pid"},
		{[]string{"--pid", "99999999"}, 127, "no process 99999999"},
		{[]string{"--pid", fmt.Sprint(static.Process.Pid)}, 125, "static program"},
	} {
		c := btrecord(t, test.args...)
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.text) {
			t.Errorf("%v: exit status %d, want %d: %s", test.args, code, test.code, out)
		}
	}
}

// A process all of whose threads wait for a semaphore is recorded; a process that is stopped is not, and the
// message says why.
func TestAttachWaiting(t *testing.T) {
	needPtrace(t)
	start := func() *exec.Cmd {
		c := exec.Command(compile(t, "gcc", "semaphore.c", "-O1", "-pthread"))
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		bufio.NewReader(out).ReadString('\n')
		return c
	}
	c := start()
	a := attachTo(t, c.Process.Pid)
	c.Process.Signal(syscall.SIGUSR1)
	c.Wait()
	if got := through(a.end("exit"), "allocate"); got != (profile.Value{Bytes: 7700, Count: 100}) {
		t.Errorf("%+v, want 100 blocks of 77 bytes", got)
	}
	c = start()
	c.Process.Signal(syscall.SIGSTOP)
	for status := []byte{}; !bytes.Contains(status, []byte("T (stopped)")); {
		status, _ = os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	}
	if r := recorded(t, "--pid", fmt.Sprint(c.Process.Pid)); r.code != 125 || !strings.Contains(r.errs, "is stopped") {
		t.Errorf("exit status %d: %s", r.code, r.errs)
	}
}
