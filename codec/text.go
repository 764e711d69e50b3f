package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Lead-ins of the lines in a log.
const (
	LeadIn        = "~m#" // a blob in base64 (BT-TEXT-1)
	LeadInDecoded = "~b#" // the stack as numbers (BT-TEXT-2)
	leadInEvent   = "~e#" // an allocation event in base64 (BT-EVT-1)
	LeadInHeader  = "~h#" // a header of a recording (BT-HEAD-1)
)

const decodedSize = LeadInDecoded + "size: "

// AppendLine appends the ~m# line of a blob, without a line end. (BT-TEXT-1,
// BT-B64-1)
func AppendLine(dst, blob []byte) []byte {
	return base64.StdEncoding.AppendEncode(append(dst, LeadIn...), blob)
}

// ParseLine appends the blob in a ~m# line to dst and returns the extended slice. Unless d is
// Lenient, it accepts only what [AppendLine] writes: the lead-in and padded base64 in the
// standard alphabet, with zero padding bits, no space and no line end. It does not decode the
// blob. On an [*Error], it returns dst unchanged. (BT-TEXT-1, BT-B64-2, BT-B64-3)
func (d Decoder) ParseLine(dst, line []byte) ([]byte, error) {
	if d.Lenient {
		return parseLenient(dst, line)
	}
	return parseLine(dst, line, LeadIn, "BT-TEXT-1")
}

// parseLine reads a lead-in, which clause requires, and the base64 after it.
func parseLine(dst, line []byte, leadIn, clause string) ([]byte, error) {
	if !bytes.HasPrefix(line, []byte(leadIn)) {
		return dst, textError(0, reasonLeadIn, clause, "expected %s", leadIn)
	}
	text := line[len(leadIn):]
	out, err := base64.StdEncoding.Strict().AppendDecode(dst, text)
	// The library skips line ends even in strict mode, so the result may be too short.
	if err != nil || len(text)%4 != 0 || len(out)-len(dst) != decodedLen(text) {
		return dst, base64Fault(text, len(leadIn))
	}
	return out, nil
}

// decodedLen returns the number of bytes that padded base64 text encodes.
func decodedLen(text []byte) int {
	n := len(text) / 4 * 3
	for i := len(text) - 1; i >= 0 && i >= len(text)-2 && text[i] == '='; i-- {
		n--
	}
	return n
}

// base64Fault returns the error for text that the strict decoder rejects. text begins
// at byte base of the line.
func base64Fault(text []byte, base int) *Error {
	fault := func(off int, format string, args ...any) *Error {
		return textError(base+off, reasonBase64, "BT-B64-2", format, args...)
	}
	n := len(text)
	for n > 0 && text[n-1] == '=' {
		n--
	}
	for i, c := range text[:n] {
		if sextet(c) < 0 || c == '-' || c == '_' {
			return fault(i, "%q is not of the standard base64 alphabet", c)
		}
	}
	switch pad := len(text) - n; {
	case n%4 == 1:
		return fault(n, "ends after %d characters, a single one beyond groups of 4", n)
	case pad != (4-n%4)%4:
		return fault(n, "%d padding characters, expected %d", pad, (4-n%4)%4)
	}
	return fault(n-1, "%q has bits set that padding leaves unused", text[n-1])
}

// sextet returns the value of a base64 character of either alphabet, or -1.
func sextet(c byte) int {
	switch {
	case 'A' <= c && c <= 'Z':
		return int(c - 'A')
	case 'a' <= c && c <= 'z':
		return int(c-'a') + 26
	case '0' <= c && c <= '9':
		return int(c-'0') + 52
	case c == '+', c == '-':
		return 62
	case c == '/', c == '_':
		return 63
	}
	return -1
}

// parseLenient is ParseLine for a [Decoder] that is Lenient. (BT-B64-3)
func parseLenient(dst, line []byte) ([]byte, error) {
	base := 0
	if bytes.HasPrefix(line, []byte(LeadIn)) {
		base = len(LeadIn)
	}
	fault := func(off int, format string, args ...any) ([]byte, error) {
		return nil, textError(off, reasonBase64, "BT-B64-3", format, args...)
	}
	out := dst
	var acc uint32 // the last characters, 6 bits each
	n, pad := 0, 0 // number of alphabet and of padding characters
	for i := base; i < len(line); i++ {
		c := line[i]
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '=':
			pad++
			if pad > (4-n%4)%4 {
				_, err := fault(i, "padding that completes no group of 4")
				return dst, err
			}
			continue
		}
		v := sextet(c)
		if v < 0 {
			_, err := fault(i, "%q is of neither base64 alphabet", c)
			return dst, err
		}
		if pad > 0 {
			_, err := fault(i, "%q after padding", c)
			return dst, err
		}
		acc = acc<<6 | uint32(v)
		if n++; n%4 == 0 {
			out = append(out, byte(acc>>16), byte(acc>>8), byte(acc))
		}
	}
	unused := acc & (1<<(n%4*6%8) - 1)
	switch n % 4 {
	case 1:
		_, err := fault(len(line), "a single character beyond groups of 4")
		return dst, err
	case 2:
		out = append(out, byte(acc>>4))
	case 3:
		out = append(out, byte(acc>>10), byte(acc>>2))
	}
	if unused != 0 {
		_, err := fault(len(line), "the last character has bits set that padding leaves unused")
		return dst, err
	}
	return out, nil
}

// AppendDecoded appends the ~b# line of a stack, without a line end: the size in
// decimal and the addresses in hexadecimal. (BT-TEXT-2)
func AppendDecoded(dst []byte, s *Stack) []byte {
	const prefix = " 0x"
	dst = append(dst, decodedSize...)
	dst = strconv.AppendUint(dst, s.Size, 10)
	dst = append(dst, ',')
	n := len(dst)
	dst = slices.Grow(dst, len(s.PCs)*(len(prefix)+16))
	text := dst[:cap(dst)]
	for _, pc := range s.PCs {
		// For speed, convert 16 digits at once, the first digit of pc in the top 4 bits, and
		// cut off those that pc does not have.
		digits := (bits.Len64(pc|1) + 3) / 4
		pc <<= 64 - 4*digits
		at := text[n:][:len(prefix)+16]
		copy(at, prefix)
		binary.BigEndian.PutUint64(at[len(prefix):], hexDigits(uint32(pc>>32)))
		binary.BigEndian.PutUint64(at[len(prefix)+8:], hexDigits(uint32(pc)))
		n += len(prefix) + digits
	}
	return text[:n]
}

// hexDigits returns the 8 hexadecimal digits of v in ASCII, the first in the top byte.
func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff // spread the nibbles, one to each byte
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f
	letters := (x + 0x0606060606060606) >> 4 & 0x0101010101010101 // 1 where a nibble is over 9
	return x + 0x3030303030303030 + letters*('a'-'0'-10)
}

// ParseDecoded reads a ~b# line into s. It accepts a line in the form of [AppendDecoded],
// followed by any spaces, tabs and line ends; the tool of lws writes a trailing space. On
// an [*Error], s is empty. (BT-TEXT-2)
func ParseDecoded(s *Stack, line []byte) error {
	s.Reset()
	if !bytes.HasPrefix(line, []byte(LeadInDecoded)) {
		return textError(0, reasonLeadIn, "BT-TEXT-2", "expected %s", LeadInDecoded)
	}
	pos, err := s.parseDecoded(bytes.TrimRight(line, " \t\r\n"))
	if err != "" {
		s.Reset()
		return textError(pos, reasonDecodedLine, "BT-TEXT-2", "%s", err)
	}
	return nil
}

// parseDecoded reads a line without trailing spaces. If it is malformed, parseDecoded
// returns the position of the fault and what was expected there, else "".
func (s *Stack) parseDecoded(line []byte) (pos int, expected string) {
	if !bytes.HasPrefix(line, []byte(decodedSize)) {
		return len(LeadInDecoded), `expected "size: "`
	}
	pos = len(decodedSize)
	var ok bool
	if s.Size, pos, ok = parseUint(line, pos, 10); !ok {
		return pos, "expected a size in decimal, below 2^64"
	}
	if pos == len(line) || line[pos] != ',' {
		return pos, "expected ',' after the size"
	}
	pos++
	for pos < len(line) {
		if !bytes.HasPrefix(line[pos:], []byte(" 0x")) {
			return pos, `expected " 0x" and an address`
		}
		if len(s.PCs) == MaxDepth {
			return pos, "expected no more than 32 addresses"
		}
		var pc uint64
		if pc, pos, ok = parseUint(line, pos+len(" 0x"), 16); !ok {
			return pos, "expected an address in hexadecimal, below 2^64"
		}
		s.PCs = append(s.PCs, pc)
	}
	return pos, ""
}

// parseUint reads digits from line[pos:] and returns the position after them. If there
// are none, or the number does not fit 64 bits, ok is false and end is the position of
// the fault.
func parseUint(line []byte, pos int, base uint64) (v uint64, end int, ok bool) {
	start := pos
	for ; pos < len(line); pos++ {
		d := uint64(digit(line[pos]))
		if d >= base {
			break
		}
		if v > (math.MaxUint64-d)/base {
			return 0, pos, false
		}
		v = v*base + d
	}
	return v, pos, pos > start
}

// digit returns the value of a decimal or hexadecimal digit, or 255.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
