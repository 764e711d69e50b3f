package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Stdin is the path that means standard input.
const Stdin = "-"

// Limits of what decompression may take, in bytes.
const (
	maxZstdWindow = 128 << 20
	maxXZDict     = 128 << 20
)

// Input is a log opened for reading: decompressed if it is compressed, as UTF-8 if
// it is UTF-16.
type Input struct {
	Name string
	// Size is the length of the file as it is stored, -1 if it is not known.
	Size int64
	// Compression is "gzip", "zstd", "xz", or "", detected from the content.
	Compression string
	// Encoding is "UTF-16LE" or "UTF-16BE", detected from a byte order mark, or "".
	Encoding string
	// Idle, if not nil, is called by Read of a followed log, repeatedly while it
	// waits for more; an error ends the log with that error.
	Idle func() error

	r      io.Reader
	stored atomic.Int64
	closes []func() error
}

// ErrInterrupted is the error of a [ReadError] of a log that was not read to its end, as
// the user interrupted the command.
var ErrInterrupted = errors.New("interrupted before its end")

// ReadError is an error of reading a log: what came before it could be read.
type ReadError struct {
	Name        string
	Compression string // "" if the log is not compressed
	Stored      int64  // bytes of the file that were read, before decompression
	Err         error
}

// Error returns the message with file, offset and compression.
func (e *ReadError) Error() string {
	compression, text := "", reason(e.Err).Error()
	if e.Compression != "" {
		compression = e.Compression + ": "
		text = strings.TrimPrefix(text, compression) // package xz names itself
	}
	return fmt.Sprintf("%s: %s%s", e.Name, compression, text)
}

// Unwrap returns the error that reading met.
func (e *ReadError) Unwrap() error { return e.Err }

// reason is an error in words for users.
func reason(err error) error {
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

// Open opens a log; path "-" is stdin.
func Open(path string, stdin io.Reader) (*Input, error) {
	if path == Stdin {
		return NewInput(stdin, "<stdin>")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s: is a directory, expected a log", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	in, err := NewInput(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	in.closes = append(in.closes, f.Close)
	if info.Mode().IsRegular() {
		in.Size = info.Size()
	}
	return in, nil
}

// NewInput detects compression and encoding from the first bytes of r, and returns the
// decoded log. It waits for no more bytes than that takes.
func NewInput(r io.Reader, name string) (*Input, error) {
	in := &Input{Name: name, Size: -1}
	compression, all, err := sniff(counter{r, &in.stored}, compressions)
	if err != nil {
		return nil, &ReadError{Name: name, Err: err}
	}
	in.Compression, in.r = compression, all
	switch compression {
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(all, 64<<10))
		if err != nil {
			return nil, in.failed(err)
		}
		in.r, in.closes = z, append(in.closes, z.Close)
	case "zstd":
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, in.failed(err)
		}
		in.r, in.closes = z, append(in.closes, func() error { z.Close(); return nil })
	case "xz":
		z, err := xz.NewReader(bufio.NewReaderSize(all, 64<<10), maxXZDict)
		if err != nil {
			return nil, in.failed(err)
		}
		in.r = z
	}
	encoding, all, err := sniff(in.r, encodings)
	if err != nil {
		all = io.MultiReader(all, failing{err}) // what could be decompressed counts
	}
	in.Encoding, in.r = encoding, all
	switch encoding {
	case "UTF-16LE":
		in.r = transform.NewReader(all, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder())
	case "UTF-16BE":
		in.r = transform.NewReader(all, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder())
	}
	return in, nil
}

// failing is a reader at which an error waits.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// magic is how a format begins: bytes, and of the first which bits count.
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

// begins reports whether data begins like m, as far as it goes.
func (m *magic) begins(data []byte) bool {
	n := min(len(data), len(m.bytes))
	return n == 0 || data[0]&m.mask == m.bytes[0]&m.mask && bytes.Equal(data[1:n], m.bytes[1:n])
}

// sniff reads until it is known which of the formats r has, "" for none. The
// reader it returns begins where r did.
func sniff(r io.Reader, formats []magic) (format string, all io.Reader, err error) {
	var head []byte
	for range 100 {
		possible := false
		for i := range formats {
			if m := &formats[i]; m.begins(head) {
				if len(head) >= len(m.bytes) {
					return m.name, io.MultiReader(bytes.NewReader(head), r), nil
				}
				possible = true
			}
		}
		if !possible {
			return "", io.MultiReader(bytes.NewReader(head), r), nil
		}
		var next [8]byte
		n, err := r.Read(next[:])
		head = append(head, next[:n]...)
		if err == io.EOF {
			return "", bytes.NewReader(head), nil
		}
		if err != nil {
			return "", bytes.NewReader(head), err
		}
	}
	return "", bytes.NewReader(head), io.ErrNoProgress
}

// compressionOf names what begins with head; "" if nothing known does.
func compressionOf(head []byte) string {
	for i := range compressions {
		if m := &compressions[i]; len(head) >= len(m.bytes) && m.begins(head) {
			return m.name
		}
	}
	return ""
}

// Read reads the log. An error other than io.EOF is a [*ReadError].
func (in *Input) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	if err != nil && err != io.EOF {
		err = in.failed(err)
	}
	return n, err
}

func (in *Input) failed(err error) error {
	return &ReadError{in.Name, in.Compression, in.stored.Load(), err}
}

// Stored returns how many bytes of Size have been read. It may be called while
// another goroutine reads.
func (in *Input) Stored() int64 { return in.stored.Load() }

// Close closes what Open opened. It does not close stdin.
func (in *Input) Close() error {
	var first error
	for _, c := range in.closes {
		if err := c(); first == nil {
			first = err
		}
	}
	in.closes = nil
	return first
}

// counter counts the bytes read through it.
type counter struct {
	r io.Reader
	n *atomic.Int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
