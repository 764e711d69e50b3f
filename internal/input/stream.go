package input

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Stream is a log that can be read only once. The part that must be read twice is copied to
// a temporary file first.
type Stream struct {
	src   io.Reader
	name  string
	pump  *pump
	copy  *os.File // temporary, nil if nothing was copied
	size  int64    // of copy, in bytes
	Ended bool     // the log ends with copy
	spent bool     // the data after copy has been read
}

// open returns the log from its beginning.
func (s *Stream) open(h *Hooks) (*Source, error) {
	if s.spent {
		return nil, fmt.Errorf("%s: was read, and cannot be read again", s.name)
	}
	var parts []io.Reader
	if s.copy != nil {
		parts = append(parts, io.NewSectionReader(s.copy, 0, s.size))
	}
	if s.copy == nil || !s.Ended && !h.Survey {
		s.spent = true
		parts = append(parts, s.pumped(h))
	}
	return newSource(io.MultiReader(parts...)), nil
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
		s.copy.Close()
		os.Remove(s.copy.Name())
	}
	if p, ok := s.src.(*pipe); ok {
		return p.Close()
	}
	return nil
}

// silence is how long a stream must be silent before the data read so far counts as all
// that is available.
const silence = 80 * time.Millisecond

// Spool copies the available data of the stream. With first, Spool waits for the first data,
// because the first log of a pass may begin at any time.
func (s *Stream) Spool(h *Hooks, first bool) (err error) {
	if s.copy != nil || s.spent {
		return nil
	}
	p := s.pumped(h)
	p.idle = nil
	if s.copy, err = os.CreateTemp("", "lwsbt"); err != nil {
		return err
	}
	os.Remove(s.copy.Name()) // it is gone however the program ends; some systems cannot remove an open file
	for {
		late := p.next(time.After(silence))
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
	src    io.Reader
	done   <-chan struct{}
	idle   func() error // called when no data is available; may be nil
	pieces chan piece
	rest   piece
	asked  atomic.Bool // a read of src is in progress
}

type piece struct {
	data []byte
	err  error
}

func newPump(ctx context.Context, src io.Reader) *pump {
	p := &pump{src: src, done: ctx.Done(), pieces: make(chan piece)}
	go p.run()
	return p
}

// run reads until the end, or until the context is done. It reads into one buffer while the receiver uses
// the other one.
func (p *pump) run() {
	bufs := [2][]byte{make([]byte, pumpSize), make([]byte, pumpSize)}
	for i := 0; ; i++ {
		select {
		case <-p.done: // also where the receiver takes data faster than it comes, as from /dev/zero
			return
		default:
		}
		var next piece
		n := 0
		p.asked.Store(true)
		for try := 0; try < 100 && n == 0 && next.err == nil; try++ {
			n, next.err = p.src.Read(bufs[i%2])
		}
		p.asked.Store(false)
		if n == 0 && next.err == nil {
			next.err = io.ErrNoProgress
		}
		next.data = bufs[i%2][:n]
		select {
		case p.pieces <- next:
		case <-p.done:
			select {
			case p.pieces <- next: // it has just arrived
			case <-time.After(followLast):
				return
			}
		}
		if next.err != nil {
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
	if p.rest.err != nil {
		return false
	}
	select {
	case p.rest = <-p.pieces:
	default: // data that is available comes first
		select {
		case p.rest = <-p.pieces:
		case <-timeout:
			return true
		case <-p.done:
			select {
			case p.rest = <-p.pieces: // it has just arrived
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
