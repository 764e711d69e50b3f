package recording

import (
	"bytes"

	"github.com/lwsbt/lwsbt/codec"
)

// decodedRecord reads a ~b# record: the longest part of text that has its form. (BT-TEXT-3)
func (s *Scanner) decodedRecord(it *Item, text []byte, more bool) (n int) {
	text = text[:min(len(text), lineAhead)]
	n, fault, whole := decodedExtent(text)
	if n > maxLine || !whole && len(text) == lineAhead {
		it.Err = ErrTooLong
		return min(maxLine+1, len(text))
	}
	if !whole && more {
		return 0
	}
	it.Stack = s.newStack()
	// The record ends before an address that cannot be read. (BT-TEXT-3)
	if it.Err = codec.ParseDecoded(&s.stack, text[:fault]); it.Err != nil && fault > n && codec.ParseDecoded(&s.stack, text[:n]) == nil {
		s.cut = Cut{Depth: len(s.stack.PCs) + 1, Sized: true}
		it.Cut = &s.cut
	}
	return n
}

// newStack returns an empty stack for a record that is not in the cache.
func (s *Scanner) newStack() *codec.Stack {
	s.stack.Reset()
	return &s.stack
}

// decodedExtent returns n, the number of bytes at the start of text that have the form of a
// ~b# record. whole reports whether text has the byte after them, which ends the record. If
// an invalid address follows, the stack is incomplete, and fault is the index of the end of
// that address; otherwise fault is n.
func decodedExtent(text []byte) (n, fault int, whole bool) {
	const head = codec.LeadInDecoded + "size: "
	for n < len(head) {
		if n == len(text) {
			return n, n, false
		}
		if text[n] != head[n] {
			return n, n, true
		}
		n++
	}
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n == len(text) || text[n] != ',' {
		return n, n, n < len(text)
	}
	n++
	for frames := 0; ; frames++ {
		const next = " 0x"
		rest := text[n:]
		if len(rest) < len(next) && string(rest) == next[:len(rest)] {
			return n, n, false
		}
		if !bytes.HasPrefix(rest, []byte(next)) {
			return n, n, true
		}
		digits, significant := addressExtent(rest[len(next):])
		end := n + len(next) + digits
		if digits == 0 || significant > 16 || frames == codec.MaxDepth {
			return n, end, end < len(text)
		}
		if n = end; n == len(text) {
			return n, n, false // more digits may follow
		}
	}
}

// addressExtent returns the number of hexadecimal digits at the start of text, and how many
// of them remain without leading zeros. A number of more than 16 significant digits is 2^64
// or more.
func addressExtent(text []byte) (digits, significant int) {
	for digits < len(text) && isHex(text[digits]) {
		if significant > 0 || text[digits] != '0' {
			significant++
		}
		digits++
	}
	return digits, significant
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
