//go:build unix

package input

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A FIFO is refused, and one that takes the log's name is not opened: both would wait
// for a writer.
func TestFollowFIFO(t *testing.T) {
	dir := t.TempDir()
	fifo, log := filepath.Join(dir, "fifo"), filepath.Join(dir, "log")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	within := func(what string, f func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { f(); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: waits", what)
		}
	}
	within("a FIFO", func() {
		in, err := follow(t.Context(), fifo, nil, nil)
		if err == nil {
			in.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("a FIFO: error %v", err)
		}
	})
	if err := os.WriteFile(log, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	in, err := follow(ctx, log, func() error { return nil }, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := os.Rename(fifo, log); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(500*time.Millisecond, stop)
	within("a log that a FIFO replaced", func() {
		if text, err := io.ReadAll(in); err != nil || string(text) != "one\n" {
			t.Errorf("read %q, %v", text, err)
		}
	})
}
