package heaplog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
)

// trickle returns a piece of the log at each Read, after a pause in which the pass finds no data.
type trickle struct {
	log   []byte
	piece int
}

func (s *trickle) Read(p []byte) (int, error) {
	if len(s.log) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond)
	n := copy(p, s.log[:min(s.piece, len(s.log))])
	s.log = s.log[n:]
	return n, nil
}

// stopsAfter ranges over an iterator up to the nth value and returns how many there were. Range
// panics if the iterator goes on after a break. With n = 0 it takes all.
func stopsAfter[T any](seq iter.Seq2[T, error], n int) (values int, last error) {
	for _, err := range seq {
		last = err
		if values++; values == n {
			break
		}
	}
	return values, last
}

// iterators are the passes of a Reader.
var iterators = map[string]func(r *heaplog.Reader, n int) (values int, last error){
	"Items":      func(r *heaplog.Reader, n int) (int, error) { return stopsAfter(r.Items(), n) },
	"Dumps":      func(r *heaplog.Reader, n int) (int, error) { return stopsAfter(r.Dumps(), n) },
	"DumpBlocks": func(r *heaplog.Reader, n int) (int, error) { return stopsAfter(r.DumpBlocks(), n) },
	"Moments":    func(r *heaplog.Reader, n int) (int, error) { return stopsAfter(r.Moments(4), n) },
	"Events":     func(r *heaplog.Reader, n int) (int, error) { return stopsAfter(r.Events(), n) },
}

// stoppedLog has text, events, dumps with and without headers, and lines that cannot be read.
func stoppedLog(t *testing.T) string {
	list := records(t, 0, 4)
	dump := "~h#begin 1 u=0 n=2\n" + list[0] + "\n" + list[1] + "\n~h#end 1\n"
	return "I (12) boot\n~h#boot\n" + recorded() + dump + "text\n~m#!\n" + eventLine(codec.EventAllocated, 0x50, 0, 9, 6000, 0x401000) + strings.ReplaceAll(dump, " 1", " 2") +
		strings.Join(list, "\nother\n") + "\n"
}

// A caller that stops is not called again, and the pass ends, wherever it stops and however the
// data comes; so does a pass whose context is done.
func TestIteratorsStop(t *testing.T) {
	log := stoppedLog(t)
	inputs := map[string]func() io.Reader{
		"memory":         func() io.Reader { return strings.NewReader(log) },
		"pipe":           func() io.Reader { return struct{ io.Reader }{strings.NewReader(log)} },
		"one byte":       func() io.Reader { return iotest.OneByteReader(strings.NewReader(log)) },
		"slow, 97 bytes": func() io.Reader { return &trickle{[]byte(log), 97} },
		"slow, 7 bytes":  func() io.Reader { return &trickle{[]byte(log[:200]), 7} },
		"read error": func() io.Reader {
			return io.MultiReader(strings.NewReader(log), iotest.ErrReader(errors.New("broken")))
		},
		"slow, read error": func() io.Reader {
			return io.MultiReader(&trickle{[]byte(log), 97}, iotest.ErrReader(errors.New("broken")))
		},
	}
	for name, run := range iterators {
		for input, source := range inputs {
			t.Run(name+", "+input, func(t *testing.T) {
				t.Parallel()
				with := func(ctx context.Context, n int) (int, error) {
					r, err := heaplog.Open(ctx, heaplog.Stream(source(), "log"), heaplog.Refresh(time.Nanosecond))
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					return run(r, n)
				}
				all, _ := with(t.Context(), 0)
				if all == 0 {
					t.Fatal("no value")
				}
				for n := 1; n <= all; n++ {
					if n > 12 {
						n = all // of many items, the last
					}
					if values, _ := with(t.Context(), n); values > n {
						t.Errorf("stopped after %d, got %d", n, values)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(3*time.Millisecond, cancel)
				defer cancel()
				_, err := with(ctx, 0)
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, heaplog.ErrNoRecord) && !strings.Contains(err.Error(), "broken") &&
					!strings.Contains(err.Error(), "cannot be read again") { // Moments reads twice
					t.Errorf("cancelled: %v", err)
				}
			})
		}
	}
}

// A followed log that is silent yields items of KindIdle; a caller may stop there.
func TestStopsWhileIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(stoppedLog(t)), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, run := range iterators {
		if name == "Moments" || name == "Events" {
			continue // they have no value while no data comes
		}
		r, err := heaplog.Open(t.Context(), heaplog.Follow(path), heaplog.Refresh(time.Nanosecond))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := run(r, 70); n != 70 || err != nil {
			t.Errorf("%s: %d values, %v", name, n, err)
		}
		r.Close()
	}
}

// The iterator of package recording stops, too.
func TestRecordingStops(t *testing.T) {
	log := []byte(stoppedLog(t))
	all := 0
	for range recording.Items(log) {
		all++
	}
	for n := 1; n <= all; n++ {
		values := 0
		for range recording.Items(bytes.Clone(log)) {
			if values++; values == n {
				break
			}
		}
		if values != n {
			t.Errorf("%d items, stopped after %d", values, n)
		}
	}
}
