// Package decompress reads data that may be compressed by gzip, zstd or xz.
package decompress

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

// MaxWindow is the most memory that the window of zstd and the dictionary of xz may take, in bytes.
const MaxWindow = 128 << 20

// NewReader returns a reader of the data of r, which begins in a format: "gzip", "zstd", "xz", or ""
// for data that is not compressed. An error in the header is that of the first Read.
func NewReader(format string, r io.Reader) io.ReadCloser {
	switch format {
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
		if err != nil {
			return failed{err}
		}
		return z
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(MaxWindow))
		if err != nil {
			return failed{err}
		}
		return z.IOReadCloser()
	case "xz":
		z, err := xz.NewReader(bufio.NewReaderSize(r, 64<<10), MaxWindow)
		if err != nil {
			return failed{err}
		}
		return io.NopCloser(z)
	}
	return io.NopCloser(r)
}

// failed is a reader that only returns an error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
func (f failed) Close() error             { return nil }

// Reason returns an error of a reader in words for users.
func Reason(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the data ends early: the file is cut off")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("what follows is not gzip: the file has other data behind it")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the checksum is wrong: the file is damaged")
	}
	return err
}

// Magic is the signature of a format: its first bytes, and a mask for the first one.
type Magic struct {
	Name  string
	Bytes string
	Mask  byte
}

var compressions = []Magic{
	{"gzip", "\x1f\x8b", 0xff},
	{"zstd", "\x28\xb5\x2f\xfd", 0xff},
	{"zstd", "\x50\x2a\x4d\x18", 0xf0}, // a skippable frame
	{"xz", "\xfd7zXZ\x00", 0xff},
}

// begins reports whether data begins with m; if data is shorter than m, whether m begins
// with data.
func (m *Magic) begins(data []byte) bool {
	n := min(len(data), len(m.Bytes))
	return n == 0 || data[0]&m.Mask == m.Bytes[0]&m.Mask && string(data[1:n]) == m.Bytes[1:n]
}

// Peeker returns a reader for Sniff. It has the smallest buffer, so that reads of more bytes
// are not copied.
func Peeker(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 16) }

// Sniff returns the name of the format with which r begins, "" if it is none of them. It reads no
// more bytes than it needs.
func Sniff(r *bufio.Reader, formats []Magic) string {
	for n := 1; ; n++ {
		head, err := r.Peek(n)
		possible := false
		for i := range formats {
			if m := &formats[i]; m.begins(head) {
				if len(head) >= len(m.Bytes) {
					return m.Name
				}
				possible = true
			}
		}
		if !possible || err != nil {
			return ""
		}
	}
}

// Format returns the compression with which r begins: a format of [NewReader].
func Format(r *bufio.Reader) string { return Sniff(r, compressions) }

// FormatOf returns the compression of data, of which head has the first bytes.
func FormatOf(head []byte) string { return Format(Peeker(bytes.NewReader(head))) }
