package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Stdin is the path that means standard input.
const Stdin = "-"

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// Input is a log opened for reading, decompressed if it is compressed.
type Input struct {
	Name string
	// Size is the length of the file as it is stored, -1 where there is none to
	// know.
	Size int64
	// Compression is "gzip", "zstd", or "", told by the content.
	Compression string
	// Idle, if not nil, is called by Read of a followed log, again and again while it
	// waits for more; an error ends the log with that error.
	Idle func() error

	r      io.Reader
	stored atomic.Int64
	closes []func() error
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

// NewInput looks into the first bytes of r for gzip or zstd and reads through
// that.
func NewInput(r io.Reader, name string) (*Input, error) {
	in := &Input{Name: name, Size: -1}
	counted := counter{r, &in.stored}
	magic := make([]byte, len(zstdMagic))
	n, err := io.ReadFull(counted, magic)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	all := io.MultiReader(bytes.NewReader(magic[:n]), counted)
	in.Compression = compressionOf(magic[:n])
	switch in.Compression {
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(all, 64<<10))
		if err != nil {
			return nil, fmt.Errorf("%s: %s%w", name, in.compressed(), err)
		}
		in.r, in.closes = z, append(in.closes, z.Close)
	case "zstd":
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, fmt.Errorf("%s: %s%w", name, in.compressed(), err)
		}
		in.r, in.closes = z, append(in.closes, func() error { z.Close(); return nil })
	default:
		in.r = all
	}
	return in, nil
}

// compressionOf names what begins with magic; "" if nothing known does.
func compressionOf(magic []byte) string {
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		return "gzip"
	case bytes.HasPrefix(magic, zstdMagic):
		return "zstd"
	}
	return ""
}

// Read reads the decompressed log. Errors other than io.EOF name it.
func (in *Input) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %s%w", in.Name, in.compressed(), err)
	}
	return n, err
}

func (in *Input) compressed() string {
	if in.Compression == "" {
		return ""
	}
	return in.Compression + ": "
}

// Stored is how many bytes of Size have been read. It may be called while
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
