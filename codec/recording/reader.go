package recording

import (
	"bytes"
	"io"
	"iter"
)

const (
	// bufSize is the size of the buffer of a Reader in bytes. It is larger than the longest
	// record, and fits a processor's cache.
	bufSize = 256 << 10
	// minBuf is the size of the buffer for a short log.
	minBuf = 16 << 10
	// maxEmpty is the number of reads in a row that may return no data.
	maxEmpty = 100
)

// Items returns the items of a log that is in memory.
func Items(log []byte) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		var s Scanner
		for len(log) > 0 {
			it, n := s.Next(log, false)
			if log = log[n:]; !yield(it) {
				return
			}
		}
	}
}

// Reader returns the items of logs that an io.Reader reads, one log after the other. Set the
// options before the first call of Reset.
type Reader struct {
	// Always32 reads all blobs as those of an encoder with 32-bit words, whatever headers say.
	Always32 bool
	Bare     bool                   // a line that is only base64 is a record, too
	Only     func(line []byte) bool // reports whether a line counts; nil: all do. It gets up to 256 KiB of a line

	scanner    Scanner
	src        io.Reader
	buf        []byte
	start, end int   // of the data in buf
	err        error // of src

	inLine bool // the next data continues a line, for Only and Bare
	keep   bool // Only accepts that line
	part   int  // bytes of a line, or of a part of it, that are read next; 0 if none are chosen
	open   bool // the line goes on after the part
	bareAt int  // index in buf of a bare record; -1 if there is none
}

// Reset begins a log.
func (r *Reader) Reset(src io.Reader, name string) {
	r.scanner.Always32 = r.Always32
	r.scanner.Begin(name)
	r.src, r.err = src, nil
	r.start, r.end, r.part, r.inLine, r.bareAt = 0, 0, 0, false, -1
	if r.buf == nil {
		r.buf = make([]byte, minBuf)
	}
}

// Place returns the place of the next item.
func (r *Reader) Place() Place { return r.scanner.Place() }

// Next returns the next item. After the last one, it returns the error of the io.Reader, which
// is io.EOF at the end of the log. Text is returned as it comes; a record when it is complete.
func (r *Reader) Next() (*Item, error) {
	for {
		if it := r.item(); it != nil {
			return it, nil
		}
		if r.err != nil {
			return nil, r.err
		}
		r.fill()
	}
}

// fill reads more data.
func (r *Reader) fill() {
	full := r.end == len(r.buf)
	r.end = copy(r.buf, r.buf[r.start:r.end])
	r.start, r.part = 0, 0
	if full && len(r.buf) < bufSize {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for range maxEmpty {
		var n int
		n, r.err = r.src.Read(r.buf[r.end:])
		if r.end += n; n > 0 || r.err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// item returns the next item in the buffer, nil if its end is not there.
func (r *Reader) item() (it *Item) {
	n, more := 0, r.err == nil
	if r.Only == nil && !r.Bare {
		it, n = r.scanner.Next(r.buf[r.start:r.end], more)
		r.start += n
		return it
	}
	if r.part == 0 && !r.nextPart(more) {
		return nil
	}
	part := r.buf[r.start : r.start+r.part]
	switch {
	case r.bareAt == r.start:
		it, n = r.scanner.record(KindBareBlob, part, false)
	case r.bareAt > r.start:
		it, n = r.scanner.text(part[:r.bareAt-r.start])
	default:
		it, n = r.scanner.Next(part, r.open)
	}
	r.start += n
	if r.part -= n; n == 0 {
		r.part = 0 // with more data, the rest is another part
	}
	return it
}

// nextPart chooses the next line, or the next part of a line that is longer than the buffer. It
// skips lines that Only rejects. It returns false if the end of the line is not in the buffer.
func (r *Reader) nextPart(more bool) bool {
	for r.start < r.end {
		line := r.buf[r.start:r.end]
		r.open = more
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, r.open = line[:i+1], false
		}
		begins := !r.inLine
		if begins && r.open && len(line) < bufSize {
			return false
		}
		r.bareAt = -1
		if begins {
			r.keep = r.Only == nil || r.Only(bytes.TrimRight(line, "\r\n"))
			if lead, found := bareText(line); found && r.Bare && !r.open {
				r.bareAt = r.start + lead
			}
		}
		r.inLine = line[len(line)-1] != '\n'
		if r.keep {
			r.part = len(line)
			return true
		}
		r.scanner.skip(line)
		r.start += len(line)
	}
	return false
}
