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

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Records come out while the log grows, and an interrupt ends it well.
func TestFollow(t *testing.T) {
	path := tempFile(t, "grows.log", "boot "+readmeLine+"\n")
	var out, errs cmdtest.Buffer
	done := make(chan int)
	go func() { done <- run([]string{"--follow", path}, nil, &out, &errs) }()
	wait := func(n int) {
		t.Helper()
		for range 6000 {
			if strings.Count(out.String(), readmeDecoded+"\n") == n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%q, want %d records; %s", out.String(), n, errs.String())
	}
	wait(1)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("later " + readmeLine[:12])
	time.Sleep(50 * time.Millisecond)
	f.WriteString(readmeLine[12:] + "\n")
	wait(2)
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-done:
		if code != 0 {
			t.Errorf("exit code %d; %s", code, errs.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("an interrupt does not end it")
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

// -j: addresses are relative to a section, as -j of addr2line has them.
func TestSection(t *testing.T) {
	exe, _ := example(t)
	for _, c := range []struct {
		section string
		code    int
		says    string
	}{{".text", 0, ""}, {".nope", 2, "no section .nope"}} {
		// heap_alloc's frame is some way into .text; find it by its symbol.
		var found bool
		for off := uint64(1); off < 0x600 && !found; off++ {
			rec := line(t, codec.MachineExact64, 1, off)
			out, errs, code := command(rec, "-q", "-e", exe, "-j", c.section, "--adjust", "none", "-F", "addr2line", "-f", "-s")
			if code != c.code || !strings.Contains(errs, c.says) {
				t.Fatalf("-j %s: exit code %d, %q", c.section, code, errs)
			}
			if code != 0 {
				break
			}
			found = strings.HasPrefix(out, "heap_alloc\nheaplog.c:")
		}
		if c.code == 0 && !found {
			t.Errorf("-j %s: heap_alloc is nowhere", c.section)
		}
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
