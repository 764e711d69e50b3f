package heaplog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// input is a log named by the options.
type input struct {
	name string
	size int64 // in bytes as stored; -1 if it is not known
	live bool  // another program may still write it; it ends when the context is done
	open func(*hooks) (*source, error)
	// stream is not nil if the log can be read only once.
	stream *stream
}

// hooks are the functions and settings that a pass gives its inputs.
type hooks struct {
	ctx    context.Context
	survey bool         // another pass follows
	idle   func() error // called when no data is available; an error ends reading
	note   func(string) // called if lines may be lost
}

// errStopped is the error of hooks.idle when the caller has ended the iteration.
var errStopped = errors.New("stopped")

// fileInput returns the input of a file.
func fileInput(path string) (*input, error) {
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
	return &input{name: path, size: info.Size(), open: func(*hooks) (*source, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		s, err := newSource(f, path)
		if err != nil {
			f.Close()
			return nil, err
		}
		s.closes = append(s.closes, f.Close)
		return s, nil
	}}, nil
}

// streamInput returns the input of a reader.
func streamInput(r io.Reader, name string) *input {
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
	return &input{name: name, size: size, open: func(*hooks) (*source, error) {
		if _, err := seeker.Seek(at, io.SeekStart); err != nil {
			return nil, err
		}
		return newSource(r, name)
	}}
}

// pipeInput returns the input of a reader that may block and can be read only once.
func pipeInput(r io.Reader, name string) *input {
	s := &stream{src: r, name: name}
	return &input{name: name, size: -1, live: true, stream: s, open: s.open}
}

// followInput returns the input of a log that another program still writes.
func followInput(path string) (*input, error) {
	if isRecording(path) {
		return &input{name: path, size: -1, live: true, open: func(h *hooks) (*source, error) { return growingSource(path, h) }}, nil
	}
	l, err := follow(context.Background(), path, nil, nil)
	if err != nil {
		return nil, err
	}
	l.Close()
	return &input{name: path, size: -1, live: true, open: func(h *hooks) (*source, error) {
		l, err := follow(h.ctx, path, h.idle, h.note)
		if err != nil {
			return nil, err
		}
		s := &source{name: path, closes: []func() error{l.Close}}
		s.r = counter{l, &s.stored}
		return s, nil
	}}, nil
}

// pipe is a file that is not regular, such as bash's <(…). The first Read opens it, because
// opening a FIFO blocks until there is a writer. It is never opened again: data that was
// read is gone.
type pipe struct {
	path string
	mu   sync.Mutex // guards the fields below
	f    *os.File
	err  error
}

func (p *pipe) Read(b []byte) (int, error) {
	if p.f == nil && p.err == nil {
		f, err := os.Open(p.path)
		p.mu.Lock()
		p.f, p.err = f, err
		p.mu.Unlock()
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.f.Read(b)
}

// Close closes the file. It does not wait for a blocked Read.
func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f != nil {
		p.f.Close()
	}
	return nil
}
