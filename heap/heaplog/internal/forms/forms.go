// Package forms reads what other systems print about their heaps to a log, as values: the blocks of heap
// traces as the items that a recording has, and numbers of bytes as samples with an identity. What it
// knows of systems are tables; a file has a system that needs state.
package forms

import (
	"bytes"
	"regexp"

	"github.com/lwsbt/lwsbt/codec/recording"
)

const (
	// maxTraceLine is a length in bytes: longer lines belong to no trace.
	maxTraceLine = 4 << 10
	// maxLine is the number of bytes of a line that is read.
	maxLine = 64 << 10
)

// Line is a line of text that no trace has, without its end. A longer one is cut to 64 KiB and a byte.
type Line struct {
	Text   []byte
	Number int64 // from 1
}

// Item is an item of a log, or one that the lines of a trace are. The latter are ~h# headers, events, and
// KindDecoded with user fields. Their place is that of their line, and their Text is no part of the log.
type Item struct {
	*recording.Item
	Lines []Line // that end in a text, or before it
}

// Reader returns the items of a log, and those that lines of heap traces are, behind the text of the line.
// A log may have records of several systems, each of which is read as what it is. Lines need not
// be whole: a serial log loses characters, and loggers put times in front and colors around.
type Reader struct {
	src     *recording.Reader
	queue   []Item // that are not returned yet
	line    []byte // the line so far
	record  bool   // it has a record of its own
	carried bool   // the last line has ended by a carriage return
	lines   []Line // ended in the text that is being read
	err     error
	state
}

// NewReader returns a Reader.
func NewReader(src *recording.Reader) *Reader {
	r := &Reader{src: src}
	r.place = src.Place()
	return r
}

// Next returns the next item. An Item and all it refers to are valid until the next one. After the last
// one, it returns the error of the recording.Reader.
func (r *Reader) Next() (Item, error) {
	for {
		switch {
		case len(r.queue) > 0:
			it := r.queue[0]
			r.queue = r.queue[1:]
			return it, nil
		case r.err != nil:
			return Item{}, r.err
		}
		it, err := r.src.Next()
		switch {
		case err != nil:
			if r.err = err; len(r.line) > 0 && !r.record { // the last line has no line feed
				r.endLine(r.line)
			}
			r.flush()
			r.closeEndless()
			r.text(&recording.Item{Place: r.place})
		case it.Kind == recording.KindText && r.endsRecord(it):
			return Item{Item: it}, nil
		case it.Kind == recording.KindText:
			r.text(it)
		default:
			if it.Kind != recording.KindIdle {
				r.emit()
				r.record, r.line = true, r.line[:0]
			}
			if len(r.out) == 0 {
				return Item{Item: it}, nil
			}
			r.queue, r.out = append(r.out, Item{Item: it}), nil
		}
	}
}

// endsRecord takes the line feed behind a record, which most text between records is, and reports whether the text is
// that.
func (r *Reader) endsRecord(it *recording.Item) bool {
	if !r.record || len(r.out)+len(r.lines) > 0 || len(it.Text) != 1 || it.Text[0] != '\n' {
		return false
	}
	r.place = it.Place
	r.place.Line, r.place.Offset = r.place.Line+1, r.place.Offset+1
	r.line, r.carried, r.record = r.line[:0], false, false
	return true
}

// text reads text between records. A carriage return ends a line, too: some logs have no other ends of
// lines. The records of a line come behind its text, and before the line feed.
func (r *Reader) text(it *recording.Item) {
	rest := *it
	r.place = it.Place
	for text := it.Text; ; {
		n := bytes.IndexAny(text, "\r\n")
		if n < 0 {
			r.add(text)
			break
		}
		line := text[:n]
		if len(r.line) > 0 {
			r.add(line)
			line = r.line
		}
		if !r.record && (len(line) > 0 || !r.carried) {
			r.endLine(line)
		}
		if len(r.out) > 0 {
			r.pass(&rest, len(rest.Text)-len(text)+n)
		}
		r.line, r.carried, r.record = r.line[:0], text[n] == '\r', false
		r.place.Offset += int64(n + 1)
		if text[n] == '\n' {
			r.place.Line++
		}
		text = text[n+1:]
	}
	r.pass(&rest, len(rest.Text))
	r.place.Offset = it.Offset + int64(len(it.Text))
}

// pass puts the first n bytes of a text into the queue, and what is of their lines.
func (r *Reader) pass(rest *recording.Item, n int) {
	if part := rest.Text[:n]; n > 0 || len(r.lines) > 0 {
		r.queue = append(r.queue, Item{&recording.Item{Place: rest.Place, Text: part}, r.lines})
		rest.Line += int64(bytes.Count(part, []byte{'\n'}))
		rest.Offset += int64(n)
		rest.Text, r.lines = rest.Text[n:], nil
	}
	r.queue, r.out = append(r.queue, r.out...), nil
}

// add adds to a line that has no end yet.
func (r *Reader) add(part []byte) {
	if !r.record {
		r.line = append(r.line, part[:min(len(part), maxLine+1-len(r.line))]...)
	}
}

// endLine passes a line to the forms that it may have, or else to who reads samples.
func (r *Reader) endLine(text []byte) {
	taken := false
	if len(text) <= maxTraceLine && len(text) > 0 {
		text = plain(text)
		line := bytes.TrimSpace(text)
		var found bool
		if found, taken = r.match(line); !found {
			if r.others++; r.others == maxOthers+1 {
				r.closeEnded()
			}
			taken = r.inside != nil && r.inside(line)
		}
	}
	if !taken {
		r.lines = append(r.lines, Line{bytes.Clone(text), r.place.Line})
	}
}

// escapes are the sequences of terminals: control sequences, strings such as the title of a window, and others.
// (ECMA-48, 5.3, 5.4 and 5.6)
var escapes = regexp.MustCompile(`(?s)\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_].*?(?:\a|\x1b\\|$)|[ -/]*.?)`)

// plain returns text without the escape sequences of terminals.
func plain(text []byte) []byte {
	if bytes.IndexByte(text, '\x1b') < 0 {
		return text
	}
	return escapes.ReplaceAll(text, nil)
}
