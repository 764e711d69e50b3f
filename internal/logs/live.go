package logs

import (
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/lwsbt/lwsbt/dump"
)

// interruptible returns a reader of src that ends with io.EOF once the user
// interrupts the command, though a read of src may not return then.
func (r *Reader) interruptible(src io.Reader) *pump {
	p := &pump{src: src, done: r.ctx.Done(), full: make(chan piece), empty: make(chan []byte, 2)}
	p.empty <- make([]byte, pumpSize)
	p.empty <- make([]byte, pumpSize)
	return p
}

// pumpSize is how much is read at once.
const pumpSize = 256 << 10

// pump reads ahead in a goroutine of its own, so that its reader can wait for
// something else, too.
type pump struct {
	src     io.Reader
	done    <-chan struct{}
	full    chan piece
	empty   chan []byte
	rest    piece
	started bool
	asked   atomic.Bool // src, and it has not answered
}

type piece struct {
	buf  []byte
	data []byte
	err  error
}

func (p *pump) run() {
	for buf := range p.empty {
		p.asked.Store(true)
		n, err := p.src.Read(buf)
		p.asked.Store(false)
		select {
		case p.full <- piece{buf, buf[:n], err}:
		case <-p.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *pump) Read(b []byte) (int, error) {
	n, _, err := p.read(b, nil)
	return n, err
}

// read is Read that gives up when timeout fires.
func (p *pump) read(b []byte, timeout <-chan time.Time) (n int, late bool, err error) {
	if !p.started {
		p.started = true
		go p.run()
	}
	for len(p.rest.data) == 0 {
		if p.rest.err != nil {
			return 0, false, p.rest.err
		}
		if p.rest.buf != nil {
			p.empty <- p.rest.buf
			p.rest.buf = nil
		}
		select {
		case p.rest = <-p.full:
		case <-p.done:
			p.rest = piece{err: io.EOF}
		case <-timeout:
			return 0, true, nil
		}
	}
	n = copy(b, p.rest.data)
	p.rest.data = p.rest.data[n:]
	return n, false, nil
}

// flushing calls flush before each read, which may wait for ever: by then the
// scanner has handed on all it could.
type flushing struct {
	io.Reader
	flush func() error
}

func (f flushing) Read(p []byte) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}

// idle is for how long a live input has to be silent before what was read is
// taken for all there is for now.
const idle = 80 * time.Millisecond

// spool copies what live sources hold now to temporary files, so that it can be
// read twice; what comes later is read in the final pass alone. With all, it waits
// for their ends. A pass that is not the final one reads what was copied.
func (r *Reader) spool(all bool) error {
	for i := range r.sources {
		s := &r.sources[i]
		if !s.live || s.stream == nil {
			continue
		}
		f, err := tempFile()
		if err != nil {
			return err
		}
		r.cleanup = append(r.cleanup, f.remove)
		src := r.interruptible(s.stream)
		size, ended, err := copyNow(f, src, all, i == 0)
		if err != nil {
			return err
		}
		r.partial = r.partial || !ended
		s.live = !ended
		s.open = func() (*dump.Input, error) {
			head := io.NewSectionReader(f.File, 0, size)
			if ended || !r.final {
				return dump.NewInput(head, s.name)
			}
			return dump.NewInput(io.MultiReader(head, src), s.name)
		}
	}
	return nil
}

// copyNow copies src until it ends or, unless all is asked for, is silent. With first,
// nothing is printed before what src has: it may begin at any time.
func copyNow(w io.Writer, src *pump, all, first bool) (size int64, ended bool, err error) {
	buf := make([]byte, pumpSize)
	for {
		var silent <-chan time.Time
		if !all {
			silent = time.After(idle)
		}
		n, late, err := src.read(buf, silent)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return size, false, err
			}
			size += int64(n)
		}
		switch {
		case late && (!src.asked.Load() || first && size == 0): // on a busy machine, not yet asked
		case late:
			return size, false, nil
		case err == io.EOF:
			return size, true, nil
		case err != nil:
			return size, false, err
		}
	}
}

// temporary is a temporary file that leaves nothing behind, however the command ends.
type temporary struct {
	*os.File
	named bool
}

func tempFile() (*temporary, error) {
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
