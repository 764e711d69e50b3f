package input

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// Stream is a log that can be read only once. The part that must be read twice is copied to
// a temporary file first.
type Stream struct {
	src   io.Reader
	name  string
	pump  *pump
	copy  *temporary // nil if nothing was copied
	size  int64      // of copy, in bytes
	Ended bool       // the log ends with copy
	spent bool       // the data after copy has been read
}

// open returns the log from its beginning.
func (s *Stream) open(h *Hooks) (*Source, error) {
	switch {
	case s.spent:
		return nil, fmt.Errorf("%s: was read, and cannot be read again", s.name)
	case s.copy == nil:
		s.spent = true
		return newSource(s.pumped(h), s.name)
	}
	head := io.NewSectionReader(s.copy.File, 0, s.size)
	if s.Ended || h.Survey {
		return newSource(head, s.name)
	}
	s.spent = true
	return newSource(io.MultiReader(head, s.pumped(h)), s.name)
}

func (s *Stream) pumped(h *Hooks) *pump {
	if s.pump == nil {
		s.pump = newPump(h.Ctx, s.src)
	}
	s.pump.idle = h.Idle
	return s.pump
}

// Close removes the copy. It closes the log if Open opened it.
func (s *Stream) Close() error {
	if s.copy != nil {
		s.copy.remove()
	}
	if p, ok := s.src.(*pipe); ok {
		return p.Close()
	}
	return nil
}

// silence is how long a stream must be silent before the data read so far counts as all
// that is available.
const silence = 80 * time.Millisecond

// Spool copies the available data of the stream, or with all the whole stream. With first,
// Spool waits for the first data, because the first log of a pass may begin at any time.
func (s *Stream) Spool(h *Hooks, all, first bool) (err error) {
	if s.copy != nil || s.spent {
		return nil
	}
	p := s.pumped(h)
	p.idle = nil
	if s.copy, err = newTemporary(); err != nil {
		return err
	}
	for {
		var silent <-chan time.Time
		if !all {
			silent = time.After(silence)
		}
		late := p.next(silent)
		n, err := s.copy.Write(p.rest.data)
		p.rest.data = nil
		if s.size += int64(n); err != nil {
			return err
		}
		switch {
		case late && (!p.asked.Load() || first && s.size == 0): // on a busy machine, the read may not have started yet
		case late:
			return nil
		case p.rest.err == io.EOF:
			s.Ended = true
			return nil
		case p.rest.err != nil:
			return nil // the next reader of the stream gets the error
		}
	}
}

// pumpSize is the size of a read, in bytes.
const pumpSize = 256 << 10

// pump reads ahead in its own goroutine, since a read may block forever. When the context
// is done, it returns io.EOF.
type pump struct {
	src     io.Reader
	done    <-chan struct{}
	idle    func() error // called when no data is available; may be nil
	full    chan piece
	empty   chan []byte
	rest    piece
	started bool
	asked   atomic.Bool // a read of src is in progress
}

type piece struct {
	buf  []byte
	data []byte
	err  error
}

func newPump(ctx context.Context, src io.Reader) *pump {
	p := &pump{src: src, done: ctx.Done(), full: make(chan piece, 2), empty: make(chan []byte, 2)}
	p.empty <- make([]byte, pumpSize)
	p.empty <- make([]byte, pumpSize)
	return p
}

// run reads until the end, or until the context is done.
func (p *pump) run() {
	for nothing := 0; ; { // successive reads without data
		var buf []byte
		select {
		case <-p.done:
			return
		case buf = <-p.empty:
		}
		p.asked.Store(true)
		n, err := p.src.Read(buf)
		p.asked.Store(false)
		if nothing++; n > 0 {
			nothing = 0
		} else if nothing == 100 && err == nil {
			err = io.ErrNoProgress
		}
		if p.full <- (piece{buf, buf[:n], err}); err != nil { // never blocks: full has capacity for each buffer
			return
		}
	}
}

func (p *pump) Read(b []byte) (int, error) {
	for len(p.rest.data) == 0 {
		if p.rest.err != nil {
			return 0, p.rest.err
		}
		if !p.next(now) {
			continue
		}
		if p.idle != nil {
			if err := p.idle(); err != nil {
				return 0, err
			}
		}
		p.next(time.After(followPoll))
	}
	n := copy(b, p.rest.data)
	p.rest.data = p.rest.data[n:]
	return n, nil
}

// now is a timeout that has expired.
var now = func() chan time.Time { c := make(chan time.Time); close(c); return c }()

// next waits for the next piece or for timeout. late reports that timeout came first.
func (p *pump) next(timeout <-chan time.Time) (late bool) {
	if !p.started {
		p.started = true
		go p.run()
	}
	if p.rest.err != nil {
		return false
	}
	if p.rest.buf != nil {
		p.empty <- p.rest.buf
		p.rest = piece{}
	}
	select {
	case p.rest = <-p.full:
	default: // data that is available comes first
		select {
		case p.rest = <-p.full:
		case <-timeout:
			return true
		case <-p.done:
			select {
			case p.rest = <-p.full: // it has just arrived
			case <-time.After(followPoll):
				p.rest.err = io.EOF
			}
		}
	}
	if p.rest.err != nil {
		select {
		case <-p.done:
			p.rest.err = io.EOF // an interrupt may have closed src
		default:
		}
	}
	return false
}

// temporary is a temporary file that is removed however the program ends.
type temporary struct {
	*os.File
	named bool
}

func newTemporary() (*temporary, error) {
	f, err := os.CreateTemp("", "lwsbt")
	if err != nil {
		return nil, err
	}
	t := &temporary{f, true}
	if runtime.GOOS != "windows" { // an open file needs no name
		t.named = os.Remove(f.Name()) != nil
	}
	return t, nil
}

func (t *temporary) remove() {
	t.Close()
	if t.named {
		os.Remove(t.Name())
	}
}
