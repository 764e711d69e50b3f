package heaplog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
)

// Dumps of a recording are read while it is written, each before the next is there. The
// recording may end anywhere when the reader is cancelled.
func TestFollowRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.rec")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	dump := func(n int) {
		write(fmt.Sprintf("~h#begin %d n=1 b=%d\n~b#size: %d, 0x1040\n~h#end %d n=1 b=%d\n", n, n+1, n+1, n, n+1))
	}
	write("~h#boot prog=demo w=32\n")
	dump(0)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := heaplog.Open(ctx, heaplog.Follow(path))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for d, err := range r.Dumps() {
		if err != nil {
			if n == 5 && ctx.Err() == context.Canceled {
				break
			}
			t.Fatal(err)
		}
		if !d.Complete() || d.Total.Bytes != uint64(n+1) {
			t.Errorf("dump %d: %+v, complete %t", n, d.Total, d.Complete())
		}
		switch n++; {
		case n < 5:
			dump(n)
		default: // the frame of zstd does not end
			cancel()
		}
	}
	if n != 5 || context.Cause(ctx) != context.Canceled {
		t.Errorf("%d dumps, %v", n, context.Cause(ctx))
	}
}
