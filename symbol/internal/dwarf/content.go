package dwarf

import (
	"errors"
	"fmt"
	"io"
)

// Content is the bytes of a section. If the section is compressed, they are inflated from its
// start up to the last byte that was needed; only who needs all compares the checksum behind them.
type Content struct {
	b     []byte
	ready int // the first bytes of b, which are inflated

	size uint64
	open func() (Inflater, error) // nil if not compressed, or once rest is set
	rest Inflater
	err  error // what ended the inflating
}

// Inflater decompresses a section into memory.
type Inflater interface {
	// Fill decompresses at least the first n bytes of dst, unless they are there, and returns how many are.
	// All calls have the same dst.
	Fill(dst []byte, n int) (ready int, err error)
	// Check returns an error if the data has another checksum than dst, which is full.
	Check(dst []byte) error
}

// Stream returns an Inflater of what is read from r.
func Stream(r io.Reader) Inflater { return &stream{r: r} }

type stream struct {
	r     io.Reader
	ready int
}

func (s *stream) Fill(dst []byte, n int) (int, error) {
	got, err := io.ReadFull(s.r, dst[s.ready:max(n, s.ready)])
	s.ready += got
	return s.ready, err
}

func (s *stream) Check([]byte) error {
	_, err := io.Copy(io.Discard, io.LimitReader(s.r, 1))
	return err
}

// Plain returns the content of a section that is not compressed.
func Plain(b []byte) Content { return Content{b: b, ready: len(b), size: uint64(len(b))} }

// Compressed returns the content of a section of size bytes, which are read from the result of
// open.
func Compressed(size uint64, open func() (Inflater, error)) Content {
	return Content{size: size, open: open}
}

// Empty reports whether the section has no bytes.
func (s *Content) Empty() bool { return s.size == 0 }

// All returns the whole content. Its memory is taken from the budget.
func (s *Content) All(budget *Budget) ([]byte, error) {
	s.begin(budget)
	s.inflate(len(s.b))
	if s.rest != nil && s.err == nil {
		s.err = s.rest.Check(s.b)
	}
	return s.b, s.err
}

// begin allocates b, once.
func (s *Content) begin(budget *Budget) {
	if s.open == nil {
		return
	}
	if s.size > uint64(budget.Left()) || !budget.Alloc(int64(s.size)) {
		s.err = fmt.Errorf("%d bytes: %w", s.size, ErrBudget)
	} else if s.rest, s.err = s.open(); s.err == nil {
		s.b = make([]byte, s.size)
	}
	s.open = nil
}

// inflateAtLeast is how many bytes are inflated at once, unless fewer remain.
const inflateAtLeast = 1 << 16

// inflate makes the first n bytes ready. After an error, fewer are ready.
func (s *Content) inflate(n int) {
	if n <= s.ready || s.err != nil {
		return
	}
	var err error
	s.ready, err = s.rest.Fill(s.b, max(n, min(s.ready+inflateAtLeast, len(s.b))))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%d bytes, expected %d", s.ready, len(s.b))
	}
	s.err = err
}
