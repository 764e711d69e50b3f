// Package words reads and writes the words that vectors and BTP/1 have for bytes, headers, and the
// lines of call paths. conformance/BTP.md describes them.
package words

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// ParseHex reads bytes in lower-case hexadecimal; "-" means no bytes.
func ParseHex(text string) ([]byte, error) {
	if text == "-" {
		return []byte{}, nil
	}
	data, err := hex.DecodeString(text)
	if err != nil || strings.ToLower(text) != text {
		return nil, fmt.Errorf("hex %q, expected pairs of digits 0-9 a-f, or - for no bytes", Clip(text))
	}
	return data, nil
}

// Hex returns bytes in the form that ParseHex reads.
func Hex(data []byte) string {
	if len(data) == 0 {
		return "-"
	}
	return hex.EncodeToString(data)
}

// Clip shortens text for quoting in messages.
func Clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// reader takes key=value words from a list; err keeps the first error.
type reader struct {
	words []string
	err   error
}

// take returns the value of the next word, which must have this key.
func (r *reader) take(key string) string {
	if r.err != nil {
		return ""
	}
	if len(r.words) == 0 {
		r.err = fmt.Errorf("nothing, expected %s=", key)
		return ""
	}
	value, ok := strings.CutPrefix(r.words[0], key+"=")
	if !ok {
		r.err = fmt.Errorf("%q, expected %s=", Clip(r.words[0]), key)
		return ""
	}
	r.words = r.words[1:]
	return value
}

// number returns a decimal number that is at most max.
func (r *reader) number(key string, max uint64) uint64 {
	text := r.take(key)
	v, err := strconv.ParseUint(text, 10, 64)
	if r.err == nil && (err != nil || v > max || strconv.FormatUint(v, 10) != text) {
		r.err = fmt.Errorf("%s=%q, expected a decimal number up to %d", key, Clip(text), max)
	}
	return v
}

// hex returns a number in hexadecimal, with exactly digits digits unless digits is 0.
func (r *reader) hex(key string, digits int) uint64 {
	text := r.take(key)
	v, err := strconv.ParseUint(text, 16, 64)
	if r.err == nil && (err != nil || fmt.Sprintf("%0*x", digits, v) != text || digits > 0 && len(text) != digits) {
		r.err = fmt.Errorf("%s=%q, expected a number in lower-case hex", key, Clip(text))
	}
	return v
}

const anyNumber = ^uint64(0)
