package input

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Limits for decompression, in bytes.
const (
	maxZstdWindow = 128 << 20
	maxXZDict     = 128 << 20
)

// Source is an open log. It yields decompressed text, with UTF-16 converted to UTF-8.
type Source struct {
	Compression string // "gzip", "zstd", "xz", or ""
	Stored      int64  // bytes read, before decompression
	R           io.Reader

	name   string
	closes []func() error
}

// newSource detects compression and encoding from the first bytes of r. It reads only the
// bytes that detection needs. An error in reading them is the error of the first Read.
func newSource(r io.Reader, name string) (s *Source, err error) {
	s = &Source{name: name}
	stored := peeker(counter{r, &s.Stored})
	s.Compression, s.R = sniff(stored, compressions), stored
	switch s.Compression {
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(stored, 64<<10))
		if err != nil {
			return nil, s.Failed(err)
		}
		s.R, s.closes = z, append(s.closes, z.Close)
	case "zstd":
		z, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, s.Failed(err)
		}
		s.R, s.closes = z, append(s.closes, func() error { z.Close(); return nil })
	case "xz":
		z, err := xz.NewReader(bufio.NewReaderSize(stored, 64<<10), maxXZDict)
		if err != nil {
			return nil, s.Failed(err)
		}
		s.R = z
	}
	text := peeker(s.R)
	s.R = text
	switch sniff(text, encodings) {
	case "UTF-16LE":
		s.R = transform.NewReader(text, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder())
	case "UTF-16BE":
		s.R = transform.NewReader(text, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder())
	}
	return s, nil
}

// Read reads the log. Its error is io.EOF, an *Error, or ErrStopped.
func (s *Source) Read(p []byte) (int, error) {
	n, err := s.R.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, ErrStopped) {
		err = s.Failed(err)
	}
	return n, err
}

// Failed returns err as an *Error.
func (s *Source) Failed(err error) error { return &Error{s.name, s.Compression, err} }

// Close closes the log.
func (s *Source) Close() {
	for _, c := range s.closes {
		c()
	}
	s.closes = nil
}

// Error is an error in reading a log.
type Error struct {
	Name        string
	Compression string // as in Source
	Err         error
}

// Error returns the message with the name of the log and its compression.
func (e *Error) Error() string {
	compression, text := "", reason(e.Err).Error()
	if e.Compression != "" {
		compression = e.Compression + ": "
		text = strings.TrimPrefix(text, compression) // package xz puts its own name in front
	}
	return fmt.Sprintf("%s: %s%s", e.Name, compression, text)
}

// reason converts an error to words for users.
func reason(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errors.New("interrupted before its end")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the data ends early: the file is cut off")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("what follows is not gzip: the file has other data behind it")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the checksum is wrong: the file is damaged")
	}
	return err
}

// Unwrap returns the error of the reader.
func (e *Error) Unwrap() error { return e.Err }

// counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n *int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// magic is the signature of a format: its bytes, and a mask for the first byte.
type magic struct {
	name  string
	bytes []byte
	mask  byte // of bytes[0]
}

var compressions = []magic{
	{"gzip", []byte{0x1f, 0x8b}, 0xff},
	{"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd}, 0xff},
	{"zstd", []byte{0x50, 0x2a, 0x4d, 0x18}, 0xf0}, // a skippable frame
	{"xz", []byte{0xfd, '7', 'z', 'X', 'Z', 0}, 0xff},
}

var encodings = []magic{
	{"UTF-16LE", []byte{0xff, 0xfe}, 0xff},
	{"UTF-16BE", []byte{0xfe, 0xff}, 0xff},
}

// begins reports whether data begins with m; if data is shorter than m, whether m begins
// with data.
func (m *magic) begins(data []byte) bool {
	n := min(len(data), len(m.bytes))
	return n == 0 || data[0]&m.mask == m.bytes[0]&m.mask && bytes.Equal(data[1:n], m.bytes[1:n])
}

// peeker returns a reader for sniff. It has the smallest buffer, so that reads of more bytes
// are not copied.
func peeker(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 16) }

// sniff returns the format of r, "" for none of these. It reads no more bytes than it needs.
func sniff(r *bufio.Reader, formats []magic) string {
	for n := 1; ; n++ {
		head, err := r.Peek(n)
		possible := false
		for i := range formats {
			if m := &formats[i]; m.begins(head) {
				if len(head) >= len(m.bytes) {
					return m.name
				}
				possible = true
			}
		}
		if !possible || err != nil {
			return ""
		}
	}
}

// compressionOf returns the name of a file's compression, "" if it is not compressed.
func compressionOf(f *os.File) string {
	return sniff(peeker(io.NewSectionReader(f, 0, 8)), compressions)
}
