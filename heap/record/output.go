//go:build linux

package record

import (
	"cmp"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// output writes a recording, compressed by zstd. The file is readable up to the last flush.
type output struct {
	name    string // of the process
	file    io.WriteCloser
	z       *zstd.Encoder
	pending int // bytes since the last flush
	flushed time.Time
	err     error // the first one; nothing is written after it
}

// Limits for the time and size of text that is not flushed.
const (
	flushAfter = time.Second
	flushBytes = 4 << 20
)

// newOutput returns an output to f. err is the error of creating f.
func newOutput(f io.WriteCloser, err error) *output {
	o := &output{file: f, flushed: time.Now(), err: err}
	if err == nil {
		o.z, o.err = zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	}
	return o
}

func (o *output) write(text []byte) {
	if o.err != nil || len(text) == 0 {
		return
	}
	_, o.err = o.z.Write(text)
	if o.pending += len(text); o.pending >= flushBytes {
		o.flush()
	}
}

func (o *output) flush() {
	if o.err == nil && o.pending > 0 {
		o.err = o.z.Flush()
		o.pending = 0
	}
	o.flushed = time.Now()
}

// close ends the recording, and frees its buffers. The error, if any, is in err.
func (o *output) close() {
	if o.z != nil {
		o.err = cmp.Or(o.err, o.z.Close(), o.file.Close())
		o.z, o.file = nil, nil
	}
}
