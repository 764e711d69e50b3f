package input

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/decompress"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Source is an open log. It yields decompressed text, with UTF-16 converted to UTF-8.
type Source struct {
	io.Reader
	Compression string // "gzip", "zstd", "xz", or ""
	Stored      int64  // bytes read, before decompression

	close []func() error
}

// newSource detects compression and encoding from the first bytes of r. It reads only the
// bytes that detection needs. An error in reading them is the error of the first Read.
func newSource(r io.Reader, closes ...func() error) *Source {
	s := &Source{}
	stored := decompress.Peeker(counter{r, &s.Stored})
	s.Compression = decompress.Format(stored)
	z := decompress.NewReader(s.Compression, stored)
	s.close = append(closes, z.Close)
	text := decompress.Peeker(z)
	s.Reader = text
	if decompress.Sniff(text, byteOrderMarks) != "" {
		s.Reader = transform.NewReader(text, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder())
	}
	return s
}

// Close closes the log.
func (s *Source) Close() {
	for _, c := range slices.Backward(s.close) {
		c()
	}
}

// Reason returns an error of a Source in words for users. The compression of the Source stands before it.
func Reason(compression string, err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("interrupted before its end")
	}
	text := decompress.Reason(err).Error()
	if compression == "" {
		return text
	}
	return compression + ": " + strings.TrimPrefix(text, compression+": ") // package xz puts its own name in front
}

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

var byteOrderMarks = []decompress.Magic{
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
