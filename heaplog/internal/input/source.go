package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lwsbt/lwsbt/internal/decompress"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
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
	stored := decompress.Peeker(counter{r, &s.Stored})
	s.Compression = decompress.Format(stored)
	z, err := decompress.NewReader(s.Compression, stored)
	if err != nil {
		return nil, s.Failed(err)
	}
	s.closes = append(s.closes, z.Close)
	text := decompress.Peeker(z)
	s.R = text
	switch decompress.Sniff(text, encodings) {
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
	}
	return decompress.Reason(err)
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

// unended is a reader whose data may end anywhere once the context is done.
type unended struct {
	io.Reader
	ctx context.Context
}

func (u unended) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) && u.ctx.Err() != nil {
		err = io.EOF
	}
	return n, err
}

var encodings = []decompress.Magic{
	{Name: "UTF-16LE", Bytes: "\xff\xfe", Mask: 0xff},
	{Name: "UTF-16BE", Bytes: "\xfe\xff", Mask: 0xff},
}

// compressionOf returns the compression of a file, "" if it is not compressed.
func compressionOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return decompress.Format(decompress.Peeker(f)), nil
}
