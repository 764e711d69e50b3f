package input

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// logWriter writes a log and rotates it.
type logWriter struct {
	t    *testing.T
	path string
	f    *os.File
	all  bytes.Buffer
	n    int
}

func (w *logWriter) check(err error) {
	if err != nil {
		w.t.Error(err)
	}
}

func (w *logWriter) open() {
	var err error
	w.f, err = os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	w.check(err)
}

// lines writes some lines, all different, a write for each.
func (w *logWriter) lines(n int) {
	for range n {
		w.n++
		line := fmt.Sprintf("line %d %s\n", w.n, strings.Repeat("x", w.n%97))
		w.all.WriteString(line)
		_, err := w.f.WriteString(line)
		w.check(err)
	}
}

// rename rotates as most do: the file gets another name, and a new one is made.
func (w *logWriter) rename() {
	w.check(os.Rename(w.path, w.path+".1"))
	w.f.Close()
	w.open()
}

// late is a rotation by another program: it makes the new file at once, and the writer
// writes on to the old one until it is told.
func (w *logWriter) late() {
	w.check(os.Rename(w.path, w.path+".1"))
	w.check(os.WriteFile(w.path, nil, 0o644))
	w.lines(3)
	time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
	w.lines(3)
	w.f.Close()
	w.open()
}

// copyTruncate rotates without another file.
func (w *logWriter) copyTruncate() {
	data, err := os.ReadFile(w.path)
	w.check(err)
	w.check(os.WriteFile(w.path+".1", data, 0o644))
	w.check(os.Truncate(w.path, 0))
}

// However a log is rotated while it is written, each byte of it is read once, and in order, where it was read to its
// end before. A file that was truncated is a note.
func TestFollowRotations(t *testing.T) {
	for name, c := range map[string]struct {
		rotate func(*logWriter)
		times  int
		note   bool
	}{
		"rename":         {(*logWriter).rename, 10, false},
		"late":           {(*logWriter).late, 6, false},
		"copy, truncate": {(*logWriter).copyTruncate, 15, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := &logWriter{t: t, path: filepath.Join(dir, "device.log")}
			for _, other := range []string{"device.log.9000", "device.log.bak", "device.logger.1", "device.log.1.gz"} {
				if err := os.WriteFile(filepath.Join(dir, other), []byte("another file\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			w.open()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var lost []string
			in, err := follow(ctx, w.path, func() error { return nil }, func(text string) { lost = append(lost, text) })
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var mu sync.Mutex
			var got bytes.Buffer
			ended := make(chan error, 1)
			go func() {
				buf := make([]byte, 1000)
				for {
					n, err := in.Read(buf)
					mu.Lock()
					got.Write(buf[:n])
					mu.Unlock()
					if err != nil {
						ended <- err
						return
					}
				}
			}()
			caughtUp := func() {
				for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					mu.Lock()
					n := got.Len()
					mu.Unlock()
					if n >= w.all.Len() {
						return
					}
				}
			}
			times := c.times
			if !cmdtest.Full() {
				times = (times + 2) / 3
			}
			for range times {
				w.lines(1 + rand.IntN(30))
				if c.note { // what was not read in time is gone
					caughtUp()
				}
				c.rotate(w)
				w.lines(1 + rand.IntN(40))
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
				caughtUp()
			}
			w.lines(1)
			w.f.Close()
			caughtUp()
			time.Sleep(100 * time.Millisecond) // nothing comes twice
			stop()
			if err := <-ended; err != io.EOF {
				t.Error(err)
			}
			if len(lost) > 0 != c.note {
				t.Errorf("notes %q", lost)
			}
			if want := w.all.Bytes(); !bytes.Equal(got.Bytes(), want) {
				i := 0
				for i < min(got.Len(), len(want)) && got.Bytes()[i] == want[i] {
					i++
				}
				t.Errorf("%d bytes of %d; they differ at %d:\n got %q\nwant %q", got.Len(), len(want), i,
					got.Bytes()[max(0, i-20):min(got.Len(), i+60)], want[max(0, i-20):min(len(want), i+60)])
			}
		})
	}
}

// A log that was truncated, and has grown beyond where it was read to since, is read
// from its start.
func TestFollowTruncatedAndGrown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "device.log")
	if err := os.WriteFile(path, []byte("old 1\nold 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var lost []string
	in, err := follow(ctx, path, func() error { return nil }, func(text string) { lost = append(lost, text) })
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	buf := make([]byte, 100)
	if n, err := in.Read(buf); err != nil || string(buf[:n]) != "old 1\nold 2\n" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if err := os.WriteFile(path, []byte("new 1\nnew 2\nnew 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(buf); err != nil || string(buf[:n]) != "new 1\nnew 2\nnew 3\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if len(lost) != 1 || !strings.Contains(lost[0], "was truncated: lines that were written to it just before may be lost") {
		t.Errorf("notes %q", lost)
	}
}
