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
	open func() (io.Reader, error) // nil if not compressed, or once rest is set
	rest io.Reader
	err  error // what ended the inflating
}

// Plain returns the content of a section that is not compressed.
func Plain(b []byte) Content { return Content{b: b, ready: len(b), size: uint64(len(b))} }

// Compressed returns the content of a section of size bytes, which are read from the result of
// open.
func Compressed(size uint64, open func() (io.Reader, error)) Content {
	return Content{size: size, open: open}
}

// Empty reports whether the section has no bytes.
func (s *Content) Empty() bool { return s.size == 0 }

// All returns the whole content. Its memory is taken from the budget.
func (s *Content) All(budget *Budget) ([]byte, error) {
	s.begin(budget)
	s.inflate(len(s.b))
	if s.rest != nil && s.err == nil {
		if n, err := io.Copy(io.Discard, io.LimitReader(s.rest, 1)); n == 0 && err != nil {
			s.err = err // the checksum
		}
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
	got, err := io.ReadFull(s.rest, s.b[s.ready:max(n, min(s.ready+inflateAtLeast, len(s.b)))])
	if s.ready += got; errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%d bytes, expected %d", s.ready, len(s.b))
	}
	s.err = err
}
