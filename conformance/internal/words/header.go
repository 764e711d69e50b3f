package words

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Header returns a header without its lead-in, with - if it has no number.
func Header(h *codec.Header) string {
	number := "-"
	if h.HasNumber {
		number = strconv.FormatUint(uint64(h.Number), 10)
	}
	words := []string{h.Verb, number}
	for _, k := range h.Keys {
		words = append(words, k.Key+"="+escape(k.Value))
	}
	return strings.Join(words, " ")
}

// escape returns a value with the escapes that a writer of headers uses. (BT-HEAD-1)
func escape(value string) string {
	var out []byte
	for _, c := range []byte(value) {
		if '!' <= c && c <= '}' && c != '%' {
			out = append(out, c)
		} else {
			out = fmt.Appendf(out, "%%%02X", c)
		}
	}
	return string(out)
}

// unescape is the inverse of escape; ok is false if a % is not followed by two digits.
func unescape(text string) (value string, ok bool) {
	var out []byte
	for len(text) > 0 {
		if text[0] != '%' {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		if len(text) < 3 {
			return "", false
		}
		c, err := hex.DecodeString(text[1:3])
		if err != nil {
			return "", false
		}
		out, text = append(out, c...), text[3:]
	}
	return string(out), true
}

// ParseHeader is the inverse of Header. It also accepts headers that a writer must
// refuse; ok is false if codec.Header cannot represent the header.
func ParseHeader(text string) (h codec.Header, ok bool) {
	words := strings.Split(text, " ")
	h.Verb = words[0]
	if len(words) > 1 && words[1] != "-" {
		n, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			return h, false
		}
		h.Number, h.HasNumber = uint32(n), true
	}
	for _, word := range words[min(2, len(words)):] {
		name, text, found := strings.Cut(word, "=")
		value, ok := unescape(text)
		if !found || !ok {
			return h, false
		}
		h.Keys = append(h.Keys, codec.HeaderKey{Key: name, Value: value})
	}
	return h, true
}
