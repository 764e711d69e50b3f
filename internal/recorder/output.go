//go:build linux

package recorder

import (
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// output writes a recording, compressed by zstd. The file is readable up to the last flush.
type output struct {
	file    io.WriteCloser
	z       *zstd.Encoder
	plain   int64 // bytes before compression
	packed  int64 // bytes of the file
	pending int   // bytes since the last flush
	flushed time.Time
	err     error // the first one; nothing is written after it
}

// Limits for the time and size of text that is not flushed.
const (
	flushAfter = time.Second
	flushBytes = 4 << 20
)

func newOutput(f io.WriteCloser) (*output, error) {
	o := &output{file: f, flushed: time.Now()}
	var err error
	o.z, err = zstd.NewWriter(counter{o}, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20))
	return o, err
}

// counter writes to the file and counts.
type counter struct{ o *output }

func (c counter) Write(p []byte) (int, error) {
	n, err := c.o.file.Write(p)
	c.o.packed += int64(n)
	return n, err
}

func (o *output) write(text []byte) {
	if o.err != nil || len(text) == 0 {
		return
	}
	_, o.err = o.z.Write(text)
	o.plain += int64(len(text))
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

// close ends the recording and returns the first error.
func (o *output) close() error {
	if err := o.z.Close(); o.err == nil {
		o.err = err
	}
	if err := o.file.Close(); o.err == nil {
		o.err = err
	}
	return o.err
}
