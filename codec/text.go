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
	LeadInDecoded = "~b#" // the stack in numbers (BT-TEXT-2)
	LeadInEvent   = "~e#" // an allocation event in base64 (BT-EVT-1)
	LeadInHeader  = "~h#" // a header of a recording (BT-HEAD-1)
)

const decodedSize = LeadInDecoded + "size: "

// AppendLine appends the ~m# line of a blob, without a line end. (BT-TEXT-1,
// BT-B64-1)
func AppendLine(dst, blob []byte) []byte {
	return base64.StdEncoding.AppendEncode(append(dst, LeadIn...), blob)
}

// ParseLine appends the blob in a ~m# line to dst and returns the extended
// slice. The line is exactly what [AppendLine] writes: lead-in, standard
// alphabet, padding with its bits zero, no space and no line end anywhere. The
// blob is not decoded. On an [*Error], dst is returned as it was.
// (BT-TEXT-1, BT-B64-2)
func ParseLine(dst, line []byte) ([]byte, error) {
	return parseLine(dst, line, LeadIn, "BT-TEXT-1")
}

// parseLine reads a lead-in, which clause demands, and base64 behind it.
func parseLine(dst, line []byte, leadIn, clause string) ([]byte, error) {
	if !bytes.HasPrefix(line, []byte(leadIn)) {
		return dst, textError(0, ReasonLeadIn, clause, "expected %s", leadIn)
	}
	text := line[len(leadIn):]
	out, err := base64.StdEncoding.Strict().AppendDecode(dst, text)
	// The library skips line ends, strict or not; fewer bytes come of it then.
	if err != nil || len(text)%4 != 0 || len(out)-len(dst) != decodedLen(text) {
		return dst, base64Fault(text, len(leadIn))
	}
	return out, nil
}

// decodedLen returns how many bytes padded base64 of this length holds.
func decodedLen(text []byte) int {
	n := len(text) / 4 * 3
	for i := len(text) - 1; i >= 0 && i >= len(text)-2 && text[i] == '='; i-- {
		n--
	}
	return n
}

// base64Fault finds the place and reason that strict reading fails on; text
// begins at byte base of the line.
func base64Fault(text []byte, base int) *Error {
	fault := func(off int, format string, args ...any) *Error {
		return textError(base+off, ReasonBase64, "BT-B64-2", format, args...)
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

// ParseLineLenient is [ParseLine] as forgiving as lws's own reader: the lead-in
// may be missing, '-' and '_' stand for '+' and '/', padding may be missing, and
// spaces, tabs and line ends are skipped. (BT-B64-3)
func ParseLineLenient(dst, line []byte) ([]byte, error) {
	base := 0
	if bytes.HasPrefix(line, []byte(LeadIn)) {
		base = len(LeadIn)
	}
	fault := func(off int, format string, args ...any) ([]byte, error) {
		return nil, textError(off, ReasonBase64, "BT-B64-3", format, args...)
	}
	out := dst
	var acc uint32 // the bits of the group so far
	n, pad := 0, 0 // characters of the alphabet, and of padding
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

// AppendDecoded appends the ~b# line of a stack, without a line end: the size
// in decimal, the addresses in hexadecimal. (BT-TEXT-2)
func AppendDecoded(dst []byte, s *Stack) []byte {
	dst = append(dst, decodedSize...)
	dst = strconv.AppendUint(dst, s.Size, 10)
	dst = append(dst, ',')
	for _, pc := range s.PCs {
		dst = appendAddress(dst, pc)
	}
	return dst
}

// appendAddress appends " 0x" and pc in hexadecimal. Addresses are most of a ~b#
// line, so 16 digits are made at once, and those behind pc's own cut off.
func appendAddress(dst []byte, pc uint64) []byte {
	const prefix = " 0x"
	digits := (bits.Len64(pc|1) + 3) / 4
	start, end := len(dst), len(dst)+len(prefix)+16
	dst = slices.Grow(dst, end-start)[:end]
	text := dst[start:end]
	first := pc << (64 - 4*digits) // pc's first digit on top
	copy(text, prefix)
	binary.BigEndian.PutUint64(text[len(prefix):], hexDigits(uint32(first>>32)))
	binary.BigEndian.PutUint64(text[len(prefix)+8:], hexDigits(uint32(first)))
	return dst[:start+len(prefix)+digits]
}

// hexDigits returns the 8 hexadecimal digits of v in ASCII, the first in the top byte.
func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff // a nibble to each byte, by halves
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f
	letters := (x + 0x0606060606060606) >> 4 & 0x0101010101010101 // 1 where a nibble is over 9
	return x + 0x3030303030303030 + letters*('a'-'0'-10)
}

// ParseDecoded reads a ~b# line into s: what [AppendDecoded] writes, with spaces
// and a line end after it, as lws's own tool writes one. On an [*Error], s is
// empty. (BT-TEXT-2)
func ParseDecoded(s *Stack, line []byte) error {
	s.Reset()
	if !bytes.HasPrefix(line, []byte(LeadInDecoded)) {
		return textError(0, ReasonLeadIn, "BT-TEXT-2", "expected %s", LeadInDecoded)
	}
	pos, err := s.parseDecoded(bytes.TrimRight(line, " \t\r\n"))
	if err != "" {
		s.Reset()
		return textError(pos, ReasonDecodedLine, "BT-TEXT-2", "%s", err)
	}
	return nil
}

// parseDecoded returns where and what it expected, "" when all is well.
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

// parseUint reads digits from line[pos:] and returns the position after them;
// if there are none, or too many for 64 bits, that of the one amiss.
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
