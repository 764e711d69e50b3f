//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// following is btdecode --follow on a log.
type following struct {
	t         *testing.T
	path      string
	out, errs cmdtest.Buffer
	done      chan int
}

func follow(t *testing.T, text string) *following {
	t.Helper()
	f := &following{t: t, path: tempFile(t, "grows.log", text), done: make(chan int)}
	go func() { f.done <- run([]string{"--follow", "--passthrough", f.path}, nil, &f.out, &f.errs) }()
	return f
}

// write appends to the log, and makes it if it is not there.
func (f *following) write(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// want waits until the output is as wanted.
func (f *following) want(text string) {
	f.t.Helper()
	for range 6000 {
		if f.out.String() == text {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("%q, want %q; %s", f.out.String(), text, f.errs.String())
}

// interrupt ends the command, and returns its exit code.
func (f *following) interrupt() int {
	f.t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		f.t.Fatal(err)
	}
	select {
	case code := <-f.done:
		return code
	case <-time.After(time.Minute):
		f.t.Fatal("an interrupt does not end it")
	}
	return 0
}

// Records come out while the log grows, also those that are written in two parts, and an
// interrupt ends it well.
func TestFollow(t *testing.T) {
	f := follow(t, "boot "+readmeLine+"\n")
	want := "boot " + readmeDecoded + "\n"
	f.want(want)
	f.write("later " + readmeLine[:12])
	time.Sleep(50 * time.Millisecond)
	f.write(readmeLine[12:] + "\n")
	want += "later " + readmeDecoded + "\n"
	f.want(want)
	if code := f.interrupt(); code != 0 {
		t.Errorf("exit code %d; %s", code, f.errs.String())
	}
}

// A log that is renamed while a record is written goes on in the file that has its name,
// after the record's rest in the renamed one; a log that is truncated begins again. Of a record
// without an end at the interrupt, the whole frames are printed.
func TestFollowRotated(t *testing.T) {
	f := follow(t, "one "+readmeLine+"\n")
	want := "one " + readmeDecoded + "\n"
	f.want(want)
	old, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	old.WriteString("two " + readmeLine[:12])
	if err := os.Rename(f.path, f.path+".1"); err != nil {
		t.Fatal(err)
	}
	old.WriteString(readmeLine[12:] + "\n")
	f.write("three " + readmeLine + "\n")
	want += "two " + readmeDecoded + "\nthree " + readmeDecoded + "\n"
	f.want(want)
	if err := os.Truncate(f.path, 0); err != nil {
		t.Fatal(err)
	}
	f.write("four\n")
	want += "four\n"
	f.want(want)
	f.write("five " + readmeLine[:12])
	time.Sleep(50 * time.Millisecond)
	if code := f.interrupt(); code != 0 {
		t.Errorf("exit code %d; %s", code, f.errs.String())
	}
	f.want(want + "five ~b#size: 0, 0x406651 [cut: 1 of 4 frames, no size]")
	if !strings.Contains(f.errs.String(), "1 record cut short") || !strings.Contains(f.errs.String(), "was truncated") {
		t.Errorf("stderr %q", f.errs.String())
	}
}

func TestColor(t *testing.T) {
	exe, log := example(t)
	for color, want := range map[string]bool{"always": true, "never": false, "auto": false} { // not a terminal
		out, _, _ := command(log, "-q", "-e", exe, "--color", color)
		if strings.Contains(out, "\x1b[") != want {
			t.Errorf("--color %s: escapes %v, want %v", color, !want, want)
		}
	}
}

func TestOutputFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	if out, errs, code := command(readmeLine, "-o", path); out != "" || code != 0 {
		t.Errorf("%q, %q, exit code %d", out, errs, code)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != readmeDecoded+"\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, errs, code := command(readmeLine, "-o", filepath.Join(path, "in-a-file")); code != 3 || !strings.Contains(errs, "out.txt/in-a-file") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

// A pipe whose reader has gone ends the command quietly.
func TestClosedPipe(t *testing.T) {
	var errs bytes.Buffer
	code := run([]string{"-q"}, strings.NewReader(strings.Repeat(readmeLine+"\n", 10_000)), closedPipe{}, &errs)
	if code != 0 || errs.Len() > 0 {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Err: syscall.EPIPE}
}
