//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// soon fails if f lasts: a FIFO that nobody writes to holds what opens it.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The recording of a process is found among other files without opening a FIFO.
func TestRecordingOf(t *testing.T) {
	proc := t.TempDir() + "/"
	os.Mkdir(proc+"fd", 0o700)
	fifo(t, proc+"control")
	rec := filepath.Join(proc, "app.rec")
	if err := os.WriteFile(rec, []byte("~h#boot w=64\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Symlink(proc+"control", proc+"fd/10")
	os.Symlink(rec, proc+"fd/1000")
	soon(t, func() {
		if got := recordingOf(proc); got != rec {
			t.Errorf("%q, want %q", got, rec)
		}
	})
}

// A recording into a FIFO ends with the program.
func TestSummaryOfPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	fifo(t, path)
	soon(t, func() {
		if got, _, err := summary(path); got != "not a regular file, so its contents are not checked" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// What the environment of another process says is not a signal number until it was checked.
func TestCaught(t *testing.T) {
	proc := t.TempDir() + "/"
	if err := os.WriteFile(proc+"status", []byte("Name:\tx\nSigCgt:\t8000000000000200\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[syscall.Signal]bool{-1 << 40: false, -1: false, 0: false, 1: false, 9: false, 10: true, 64: true, 65: false, 1 << 40: false} {
		if caught(proc, s) != want {
			t.Errorf("signal %d: %v, want %v", int(s), !want, want)
		}
	}
}

// The end of a dump is looked for where the recording had ended: what is before that is
// not read, as it is looked at again and again.
func TestDumpSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rec")
	const before = 64 << 20
	end := "~h#end 1 n=5 b=50\n"
	for _, test := range []struct {
		more string
		want uint32
	}{{"", 0}, {"~h#end 2 n=6 b=60", 0}, {"~h#end 2 n=6 b=60\n", 2}, {"~m#AAAA\n~h#end 3 n=7\n~h#end 4 n=7\n", 3}} {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte(end+test.more), before-int64(len(end)))
		f.Close()
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		got := uint32(0)
		if h := dumpSince(path, before); h != nil {
			got = h.Number
		}
		runtime.ReadMemStats(&is)
		if n := is.TotalAlloc - was.TotalAlloc; n > before/2 {
			t.Errorf("%q: it took %d bytes", test.more, n)
		}
		if got != test.want {
			t.Errorf("%q: dump %d, want %d", test.more, got, test.want)
		}
	}
}

// A signal that no program can catch would end or stop it, and dump nothing.
func TestSignalsThatCannotBeCaught(t *testing.T) {
	for _, n := range []string{"9", "19"} {
		out := filepath.Join(t.TempDir(), "rec")
		var stderr strings.Builder
		code := cli.Run(command(), []string{"--signal", n, "-o", out, "--", "true"}, nil, io.Discard, &stderr)
		if code != cli.Usage || !strings.Contains(stderr.String(), "no program can catch it") {
			t.Errorf("--signal %s: exit code %d, %s", n, code, stderr.String())
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("--signal %s: a recording was made", n)
		}
	}
}
