package main

import (
	"cmp"
	"io"
	"os"
	"strings"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// draw draws the latest state on a terminal, until the log ends or an interrupt.
func (l *live) draw(out *os.File) error {
	name := "standard input"
	switch {
	case l.Serial != "":
		name = l.Serial
	case len(l.files) == 1 && l.files[0] != cli.Stdio:
		name = l.files[0]
	}
	show := func(st *state) error {
		text, err := l.screen(st, name, cli.Width(out), cli.Height(out))
		if err == nil {
			_, err = io.WriteString(out, "\x1b[H\x1b[J"+text) // the upper left corner, and what is below it is erased
		}
		return err
	}
	latest, ended := make(chan recent, 1), make(chan error, 1)
	go func() { ended <- l.feed(latest) }()
	var st *state
	failed := show(&state{found: &growth.Leaks{}})
	for r := range latest {
		if failed == nil {
			st, failed = l.judge(r)
		}
		if failed == nil {
			failed = show(st)
		}
		if failed != nil {
			l.stopReading()
		}
	}
	switch err := <-ended; {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case st == nil:
		l.note("no dump yet")
		return nil
	}
	return l.checkLimit(st.found)
}

// feed reads the log, and puts what it has so far into latest, in place of what was not taken.
func (l *live) feed(latest chan recent) error {
	defer close(latest)
	r := recent{keep: lookedBack}
	return l.read(func(u heaplog.Update) error {
		r.add(u)
		select {
		case <-latest:
		default:
		}
		latest <- r.clone()
		return nil
	})
}

// screen returns what the terminal shows: the last dump or report, what btheap leaks prints, and the largest call
// paths, as far as it is high enough. Each line ends with a line feed.
func (l *live) screen(st *state, name string, width, height int) (string, error) {
	var b strings.Builder
	b.WriteString("btheap live: " + cli.Fit(name, max(4, width-len("btheap live: "))) + "\n")
	switch {
	case len(st.dumps) > 0 || st.last != nil:
		b.WriteString(st.line() + "\n\n")
		l.writeText(&b, st.found)
	case st.open != nil:
		b.WriteString("no whole dump yet: " + cli.Count(st.open.Records, "record") + "\n")
	default:
		b.WriteString("no dump yet\n")
	}
	if l.dumps = st.dumps; len(st.dumps) > 0 {
		if err := l.writeLargest(&b); err != nil {
			return "", err
		}
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		text := strings.TrimRight(line, "\n")
		words := strings.TrimLeft(text, " ")
		indent := text[:len(text)-len(words)]
		for i, part := range cli.Wrap(printable.Text(words), max(1, width-len(indent)-2)) {
			if i > 0 {
				part = "  " + part
			}
			lines = append(lines, cut(indent+part, width))
		}
	}
	if most := height - 1; len(lines) > most {
		lines = append(lines[:max(0, most-1)], cut("(more than the terminal shows: --focus, --ignore)", width))
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// cut cuts a line at the width of the terminal.
func cut(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return line
}

// siteName returns the function of a call site, or else its known part.
func siteName(s profile.Site) string { return cmp.Or(s.Func, s.String()) }
