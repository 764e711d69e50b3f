package main

import (
	"fmt"
	"io"
	"time"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// progress tells of reading a log that takes long, if standard error is a terminal.
type progress struct {
	in    *dump.Input
	out   io.Writer // nil where nobody looks
	bytes int64
	start time.Time
	last  time.Time
	shown bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func newProgress(in *dump.Input, stderr io.Writer) *progress {
	p := &progress{in: in, start: time.Now()}
	if cli.IsTerminal(stderr) {
		p.out = stderr
	}
	return p
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.bytes += int64(n)
	if p.out != nil {
		p.show(time.Now())
	}
	return n, err
}

func (p *progress) show(now time.Time) {
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	done := ""
	if p.in.Size > 0 {
		done = fmt.Sprintf(" %d%%,", 100*p.in.Stored()/p.in.Size)
	}
	mb := float64(p.bytes) / 1e6
	fmt.Fprintf(p.out, "\r\x1b[K%.40s:%s %.0f MB, %.0f MB/s", cli.Printable(p.in.Name), done, mb, mb/now.Sub(p.start).Seconds())
}

func (p *progress) done() {
	if p.shown {
		io.WriteString(p.out, "\r\x1b[K")
		p.shown = false
	}
}
