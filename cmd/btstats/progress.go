package main

import (
	"fmt"
	"io"
	"time"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// progress shows the progress of a long read, if standard error is a terminal.
type progress struct {
	out   io.Writer // nil if standard error is not a terminal
	start time.Time
	last  time.Time
	shown bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func newProgress(stderr io.Writer) *progress {
	p := &progress{start: time.Now()}
	if cli.IsTerminal(stderr) {
		p.out = stderr
	}
	return p
}

// due reports whether it is time for the next progress line.
func (p *progress) due(now time.Time) bool {
	return p.out != nil && now.Sub(p.start) >= progressAfter && now.Sub(p.last) >= progressEvery
}

func (p *progress) show(now time.Time, s heaplog.Summary) {
	p.last, p.shown = now, true
	done := ""
	if s.Size > 0 {
		done = fmt.Sprintf(" %d%%,", 100*s.Stored/s.Size)
	}
	mb := float64(s.Bytes) / 1e6
	fmt.Fprintf(p.out, "\r\x1b[K%.40s:%s %.0f MB, %.0f MB/s", cli.Printable(s.At.File), done, mb, mb/now.Sub(p.start).Seconds())
}

func (p *progress) done() {
	if p.shown {
		io.WriteString(p.out, "\r\x1b[K")
		p.shown = false
	}
}
