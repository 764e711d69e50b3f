package input

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// growing reads a recording that btrecord still writes. At the end of the file it waits for
// more. A recording is never rotated or truncated.
type growing struct {
	f    *os.File
	ctx  context.Context
	idle func() error
}

// Read returns io.EOF when the context is done and the file has been read to its end.
func (g *growing) Read(p []byte) (int, error) {
	for {
		n, err := g.f.Read(p)
		if n > 0 || err != io.EOF {
			return n, err
		}
		ends := g.ctx.Err() != nil
		if err := g.idle(); err != nil || ends {
			return 0, cmp.Or(err, io.EOF)
		}
		select {
		case <-g.ctx.Done():
		case <-time.After(followPoll):
		}
	}
}

// isRecording reports whether a file is compressed by zstd, or is empty and has the name of a
// recording, to which btrecord writes after a second.
func isRecording(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return strings.HasSuffix(path, ".rec")
	}
	return compressionOf(f) == "zstd"
}

// growingSource opens a recording.
func growingSource(path string, h *Hooks) (*Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := newSource(&growing{f, h.Ctx, h.Idle}, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.R, s.closes = unended{s.R, h.Ctx}, append(s.closes, f.Close)
	return s, nil
}

// unended is a reader whose data may end anywhere once the context is done.
type unended struct {
	io.Reader
	ctx context.Context
}

func (u unended) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) && u.ctx.Err() != nil {
		err = io.EOF
	}
	return n, err
}
