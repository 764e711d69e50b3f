// Package input reads logs as they come: files, compressed or not, pipes and other streams, files that
// grow, and logs that are rotated.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// Input is a log.
type Input struct {
	Name string
	Size int64 // in bytes as stored; -1 if it is not known
	Live bool  // another program may still write it; it ends when the context is done
	Open func(*Hooks) (*Source, error)
	// Stream is not nil if the log can be read only once.
	Stream *Stream
}

// Hooks are the functions and settings that a pass gives its inputs.
type Hooks struct {
	Ctx    context.Context
	Survey bool         // another pass follows: of a log that is followed, only what is there now is read
	Idle   func() error // called when no data is available; an error ends reading
	Note   func(string) // called if lines may be lost
}

// ErrStopped is the error of Hooks.Idle when the caller has ended the iteration.
var ErrStopped = errors.New("stopped")

// File returns the input of a file.
func File(path string) (*Input, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		if e, ok := err.(*os.PathError); ok {
			e.Op = "open"
		}
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, expected a log", path)
	case !info.Mode().IsRegular():
		return pipeInput(&pipe{path: path}, path), nil
	}
	return &Input{Name: path, Size: info.Size(), Open: func(*Hooks) (*Source, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return newSource(f, f.Close), nil
	}}, nil
}

// FromReader returns the input of a reader.
func FromReader(r io.Reader, name string) *Input {
	size := int64(-1)
	seeker, ok := r.(io.Seeker)
	if f, isFile := r.(*os.File); isFile {
		info, err := f.Stat()
		if ok = err == nil && info.Mode().IsRegular(); ok {
			size = info.Size()
		}
	}
	if !ok {
		return pipeInput(r, name)
	}
	at, err := seeker.Seek(0, io.SeekCurrent) // another program may have read the bytes before
	if err != nil {
		return pipeInput(r, name)
	}
	return &Input{Name: name, Size: size, Open: func(*Hooks) (*Source, error) {
		if _, err := seeker.Seek(at, io.SeekStart); err != nil {
			return nil, err
		}
		return newSource(r), nil
	}}
}

// pipeInput returns the input of a reader that may block and can be read only once.
func pipeInput(r io.Reader, name string) *Input {
	s := &Stream{src: r, name: name}
	return &Input{Name: name, Size: -1, Live: true, Stream: s, Open: s.open}
}

// Follow returns the input of a log that another program still writes. The log may be a recording of
// btrecord, which is compressed and may end anywhere.
func Follow(path string) (*Input, error) {
	l, err := follow(context.Background(), path, nil, nil)
	if err != nil {
		return nil, err
	}
	l.Close()
	return &Input{Name: path, Size: -1, Live: true, Open: func(h *Hooks) (*Source, error) {
		idle := h.Idle
		if h.Survey { // of what is there now
			idle = func() error { return ErrStopped }
		}
		l, err := follow(h.Ctx, path, idle, h.Note)
		if err != nil {
			return nil, err
		}
		s := newSource(l, l.Close)
		s.Reader = unended{s.Reader, h.Ctx}
		return s, nil
	}}, nil
}

// NewAhead returns a reader of the file with a name. The file is read in another goroutine, so that a pipe
// that stays silent does not block beyond the context.
func NewAhead(ctx context.Context, path string) io.ReadCloser {
	file := &pipe{path: path}
	return struct {
		io.Reader
		io.Closer
	}{newPump(ctx, file), file}
}

// pipe is a file that is not regular, such as bash's <(…). The first Read opens it, because
// opening a FIFO blocks until there is a writer.
type pipe struct {
	path string
	f    atomic.Pointer[os.File]
}

func (p *pipe) Read(b []byte) (int, error) {
	f := p.f.Load()
	if f == nil {
		var err error
		if f, err = os.Open(p.path); err != nil {
			return 0, err
		}
		p.f.Store(f)
	}
	return f.Read(b)
}

// Close closes the file. It does not wait for a blocked Read.
func (p *pipe) Close() error {
	p.f.Load().Close()
	return nil
}
