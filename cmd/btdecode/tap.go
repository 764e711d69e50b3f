package main

import (
	"bytes"

	"github.com/lwsbt/lwsbt/symbol"
)

// textWriter is a sink that wants the text between records.
type textWriter interface{ text(p []byte) error }

// markupTap reads the symbolizer markup in the text between records and passes
// the text on. It looks at whole lines, so it keeps the last one until its end,
// up to a length that no line of markup has.
type markupTap struct {
	timeline *symbol.Timeline
	next     textWriter
	failed   func(error)
	line     []byte
}

const maxMarkup = 8 << 10

func (t *markupTap) Write(p []byte) (int, error) {
	n := len(p)
	if t.next != nil {
		if err := t.next.text(p); err != nil {
			return 0, err
		}
	}
	t.feed(p)
	return n, nil
}

// endOfLog ends the last line.
func (t *markupTap) endOfLog() {
	t.element(t.line)
	t.line = t.line[:0]
}

func (t *markupTap) element(line []byte) {
	if err := t.timeline.Markup(line); err != nil {
		t.failed(err)
	}
}

// feed looks for lines with markup. Most text has none: a search for '{' in what
// came is all it costs.
func (t *markupTap) feed(p []byte) {
	for len(p) > 0 {
		if len(t.line) == 0 {
			i := bytes.IndexByte(p, '{')
			if i < 0 {
				return
			}
			p = p[i:]
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			if len(t.line)+len(p) <= maxMarkup {
				t.line = append(t.line, p...)
			} else {
				t.line = t.line[:0]
			}
			return
		}
		if len(t.line) == 0 {
			t.element(p[:end])
		} else {
			t.line = append(t.line, p[:end]...)
			t.endOfLog()
		}
		p = p[end+1:]
	}
}
