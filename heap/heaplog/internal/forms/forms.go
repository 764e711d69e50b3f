// Package forms reads what other systems print about their heaps to a log. It adds a record of
// SPEC.md to the end of each line that shows an allocation, and headers where a trace begins and
// ends, and where a line tells how much is free. All other text stays as it is, so that lines keep
// their numbers:
//
//	12 bytes (@ 0x3fcaa114, Internal) allocated CPU 0 ccount 0x04371de8 caller 0x40376183:0x403761b8 ~m#…
//
// A log may have records of several systems, each of which is read as what it is. Lines need not
// be whole: a serial log loses characters, and loggers put times in front and colors around.
package forms

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
)

// maxLine is a length in bytes: longer lines belong to no trace.
const maxLine = 4 << 10

// Reader adds records to a log. Text is passed on as it comes, except behind a record of which a
// later line decides whether it counts.
type Reader struct {
	src       io.Reader
	buf       []byte // of src
	line      []byte // the line so far
	long      bool   // the line is too long
	only      string // the system to read, "" for all
	heapLines form   // of the lines that the user names; its expr is nil if there are none
	state
	err error
}

// NewReader returns a Reader of the traces of one system, or with "" of all. Lines that match heapLine
// are reports on a heap by its groups; it may be nil.
func NewReader(src io.Reader, system string, heapLine *regexp.Regexp) (*Reader, error) {
	if system != "" && !slices.Contains(Names(), system) {
		return nil, fmt.Errorf("system %q, expected one of %q", system, Names())
	}
	return &Reader{src: src, only: system, heapLines: form{system: Own, expr: heapLine}}, nil
}

// named reads a line that the user has named.
func (r *Reader) named(text []byte) bool {
	if r.heapLines.expr == nil {
		return false
	}
	several := 1 // an expression that names no heaps has one
	if r.heapLines.expr.SubexpIndex("heap") >= 0 {
		several = maxHeaps
	}
	for _, groups := range r.heapLines.expr.FindAllSubmatchIndex(text, several) {
		r.reported = false
		r.heapLine(match{&r.heapLines, text, groups})
		r.before = stats{}
	}
	return r.reported
}

// Names returns the names of the systems.
func Names() (names []string) {
	for i := range forms {
		if !slices.Contains(names, forms[i].system) {
			names = append(names, forms[i].system)
		}
	}
	return names
}

// Systems returns the names of the systems of which something was read.
func (r *Reader) Systems() []string { return r.systems }

// Notes returns what the log tells besides: a full buffer, a failed allocation.
func (r *Reader) Notes() []string { return r.notes }

// Skipped returns the number of lines that look like an allocation but could not be read.
func (r *Reader) Skipped() int64 { return r.skipped }

// Read reads the log with the records.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.ready()) == 0 && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, 64<<10)
		}
		n, err := r.src.Read(r.buf[:min(len(r.buf), max(len(p), 1))])
		r.read += int64(n)
		r.add(r.buf[:n])
		if r.parts && len(r.out)-r.lastPart > maxHeld {
			r.flushStats()
		}
		if r.err = err; err != nil {
			r.endLine(r.line) // the last line may have no end
			r.finish()
		}
	}
	n := copy(p, r.ready())
	if r.taken(n); len(r.out) > r.from {
		return n, nil
	}
	return n, r.err
}

// add passes data on, and its lines to their forms. A carriage return ends a line, too: some logs
// have no other ends of lines.
func (r *Reader) add(data []byte) {
	next := -1 // the next line feed, if it is not negative
	for len(data) > 0 {
		if next < 0 {
			if next = bytes.IndexByte(data, '\n'); next < 0 {
				next = len(data)
			}
		}
		i := next
		if cr := bytes.IndexByte(data[:i], '\r'); cr >= 0 {
			i = cr
		}
		r.out = append(r.out, data[:i]...)
		line := data[:i]
		if r.long = r.long || len(r.line)+i > maxLine; !r.long && (len(r.line) > 0 || i == len(data)) {
			r.line = append(r.line, line...)
			line = r.line
		}
		if i == len(data) {
			return
		}
		r.endLine(line)
		r.out = append(r.out, data[i])
		data, next = data[i+1:], next-i-1
	}
}

// endLine passes the current line to the forms that it may have. It may change the line.
func (r *Reader) endLine(text []byte) {
	long := r.long
	r.line, r.long = r.line[:0], false
	if long || len(text) == 0 || isRecord(text) {
		return
	}
	text = bytes.TrimSpace(plain(text))
	r.reported, r.before = false, r.stats
	if r.named(text) {
		return
	}
	if !r.match(text, r.only) {
		if r.other(); r.inside != nil {
			r.inside(text)
			return
		}
	}
	r.consider(text)
}

// isRecord reports whether a line has a record of SPEC.md.
func isRecord(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '~')
		if i < 0 || i+2 >= len(text) {
			return false
		}
		if text[i+2] == '#' && bytes.IndexByte([]byte("mbehpv"), text[i+1]) >= 0 {
			return true
		}
		text = text[i+1:]
	}
}

// plain returns text without the escape sequences of terminals. It may change the text.
func plain(text []byte) []byte {
	from := bytes.IndexByte(text, '\x1b')
	if from < 0 {
		return text
	}
	to := from
	for i := from; i < len(text); i++ {
		if text[i] != '\x1b' {
			text[to] = text[i]
			to++
			continue
		}
		if i+1 < len(text) && text[i+1] == '[' {
			i++
		}
		for i+1 < len(text) && (text[i+1] >= '0' && text[i+1] <= '?' || text[i+1] == ' ') {
			i++
		}
		i++ // the letter that ends the sequence
	}
	return text[:to]
}
