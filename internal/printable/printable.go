// Package printable makes untrusted text safe to print: names from ELF files, and
// pieces of logs in messages.
package printable

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Text returns s with characters escaped, as in a Go string literal, that could begin a new
// line, control a terminal or change the direction of text: control and format characters,
// unusual spaces, and bytes that are not UTF-8. All other characters are unchanged, including
// spaces and backslashes.
func Text(s string) string {
	n := prefix(s)
	if n == len(s) {
		return s
	}
	return string(append(append(make([]byte, 0, len(s)+16), s[:n]...), escape(s[n:])...))
}

// prefix returns the length of the prefix of s that needs no escape.
func prefix(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) {
			return i
		}
		i += size
	}
	return len(s)
}

func escape(s string) (b []byte) {
	for len(s) > 0 {
		n := prefix(s)
		b = append(b, s[:n]...)
		if s = s[n:]; s == "" {
			break
		}
		_, size := utf8.DecodeRuneInString(s)
		q := strconv.Quote(s[:size])
		b = append(b, q[1:len(q)-1]...)
		s = s[size:]
	}
	return b
}
