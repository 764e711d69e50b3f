package main

import (
	"bytes"

	"github.com/lwsbt/lwsbt/symbol"
)

// textWriter is a sink that wants the text between records.
type textWriter interface{ text(p []byte) error }

// markupTap reads the symbolizer markup in the text between records and passes
// the text on. An element stands in one line; it counts from its end on.
type markupTap struct {
	timeline *symbol.Timeline
	next     textWriter
	failed   func(error)
	begun    []byte // from a '{' on, what may become an element
}

// maxMarkup is more than any element has, in bytes.
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

// endOfLog drops what was begun.
func (t *markupTap) endOfLog() { t.begun = t.begun[:0] }

// feed looks for elements. Most text has none: a search for '{' is all it costs.
func (t *markupTap) feed(p []byte) {
	for len(p) > 0 {
		if len(t.begun) == 0 {
			i := bytes.IndexByte(p, '{')
			if i < 0 {
				return
			}
			p = p[i:]
		}
		end := bytes.IndexAny(p, "}\n")
		if end < 0 {
			end = len(p) - 1
		}
		switch last := p[end]; {
		case last == '\n', len(t.begun)+end >= maxMarkup:
			t.begun = t.begun[:0]
		default:
			t.begun = append(t.begun, p[:end+1]...)
			if bytes.HasSuffix(t.begun, []byte("}}}")) {
				if err := t.timeline.Markup(t.begun); err != nil {
					t.failed(err)
				}
				t.begun = t.begun[:0]
			}
		}
		p = p[end+1:]
	}
}
