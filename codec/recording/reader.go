package recording

import (
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
// option before the first call of Reset.
type Reader struct {
	// Always32 reads all blobs as those of an encoder with 32-bit words, whatever headers say.
	Always32 bool

	scanner    Scanner
	src        io.Reader
	buf        []byte
	start, end int   // of the data in buf
	err        error // of src
}

// Reset begins a log.
func (r *Reader) Reset(src io.Reader, name string) {
	r.scanner.Always32 = r.Always32
	r.scanner.Begin(name)
	r.src, r.err = src, nil
	r.start, r.end = 0, 0
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
		if it, n := r.scanner.Next(r.buf[r.start:r.end], r.err == nil); it != nil {
			r.start += n
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
	r.start = 0
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
