package codec

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Verbs of headers. Other verbs are accepted but have no meaning. (BT-HEAD-2)
const (
	VerbBoot   = "boot"   // a device or program starts: time and numbers restart
	verbMap    = "map"    // the module lines that follow are the complete map
	verbLoad   = "load"   // the module lines that follow were loaded in addition
	VerbBegin  = "begin"  // opens a dump
	VerbEnd    = "end"    // closes a dump
	verbTotal  = "total"  // totals since the recording began
	verbLost   = "lost"   // the recorder dropped events here
	VerbHeap   = "heap"   // sizes that the allocator reports for its heap
	verbFree   = "free"   // free blocks of a heap
	verbThread = "thread" // names a thread
)

// Header is a ~h# line of a recording. (BT-HEAD-1)
//
//	~h#begin 3 t=81250000 n=84 b=61234
type Header struct {
	Verb   string
	Number uint32 // of the dump that VerbBegin opens or VerbEnd closes (BT-HEAD-3)
	// HasNumber reports whether a number follows the verb. It is required for VerbBegin
	// and VerbEnd.
	HasNumber bool
	Keys      []HeaderKey
}

// HeaderKey is one key of a header and its decoded value, which may hold any byte.
type HeaderKey struct{ Key, Value string }

// Get returns the value of the first key with this name, and whether there is one.
func (h *Header) Get(key string) (value string, ok bool) {
	for _, k := range h.Keys {
		if k.Key == key {
			return k.Value, true
		}
	}
	return "", false
}

// Uint returns the value of a key as a number; ok is false if the key is missing or its
// value is not a decimal number below 2^64. [ParseHeader] accepts no other value for
// the keys that SPEC.md defines as numbers. (BT-HEAD-2)
func (h *Header) Uint(key string) (v uint64, ok bool) {
	text, ok := h.Get(key)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(text, 10, 64)
	return v, err == nil && text[0] != '+'
}

// numbered reports whether a verb must be followed by a number. (BT-HEAD-3)
func numbered(verb string) bool { return verb == VerbBegin || verb == VerbEnd }

// mayNumber reports whether a verb may be followed by a number. Unknown verbs may.
// (BT-HEAD-1)
func mayNumber(verb string) bool {
	switch verb {
	case VerbBoot, verbMap, verbLoad, verbTotal, verbLost, VerbHeap, verbFree:
		return false
	}
	return true
}

// numberFault returns the form that the key requires if value does not have that form, else
// "". The form does not depend on the verb. (BT-HEAD-2)
func numberFault(key, value string) (expected string) {
	switch key {
	case "t", "n", "b", "u", "w", "pid", "epoch", "allocs", "frees", "bytes", "live", "peak",
		"l", "base", "sample", "cut", "shift", "size", "free", "largest", "min", "parent":
		v, n, ok := parseUint([]byte(value), 0, 10)
		if !ok || n != len(value) {
			return "expected a number in decimal, below 2^64"
		}
		if key == "w" && v != 32 && v != 64 {
			return "expected 32 or 64"
		}
		if key == "shift" && v > 4 {
			return "expected 0 to 4"
		}
		if key == "base" && v > math.MaxUint32 {
			return "expected the number of a dump, below 2^32"
		}
		if key == "sample" && v == 0 {
			return "expected 1 or more"
		}
	case "code", "heap":
		for _, x := range strings.Split(value, ",") {
			if _, length, _ := strings.Cut(x, "+"); length != "" && strings.Trim(length, "0") == "" {
				return "the length is 0, expected 1 or more"
			}
		}
		if _, ok := ParseRanges(value); !ok {
			return "expected ranges START+LENGTH in hexadecimal, with commas between"
		}
	}
	return ""
}

// Range is a range of addresses.
type Range struct {
	Start  uint64
	Length uint64 // in bytes, at least 1; Start + Length is at most 2^64
}

// ParseRanges parses the value of the keys code and heap: ranges START+LENGTH in
// hexadecimal, separated by commas. ok is false if value has another form. (BT-HEAD-6)
func ParseRanges(value string) (ranges []Range, ok bool) {
	text := []byte(value)
	for pos := 0; ; pos++ {
		var r Range
		if r.Start, pos, ok = parseUint(text, pos, 16); !ok || pos == len(text) || text[pos] != '+' {
			return nil, false
		}
		if r.Length, pos, ok = parseUint(text, pos+1, 16); !ok || r.Length == 0 || r.Start+(r.Length-1) < r.Start {
			return nil, false
		}
		ranges = append(ranges, r)
		if pos == len(text) {
			return ranges, true
		}
		if text[pos] != ',' {
			return nil, false
		}
	}
}

// FormatRanges returns ranges in the form of the keys code and heap. (BT-HEAD-6)
func FormatRanges(ranges []Range) string {
	var text []byte
	for i, r := range ranges {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, r.Start, 16)
		text = strconv.AppendUint(append(text, '+'), r.Length, 16)
	}
	return string(text)
}

// AppendHeader appends the ~h# line of h, without a line end, and returns the extended
// slice. It returns dst unchanged and an [*Error] for a header that [ParseHeader]
// rejects: a verb or key that is not one or more lower-case letters, a missing number, a
// number after a verb that takes none, or a value that must be a number but is not. It
// does not normalize values: leading zeros remain. (BT-HEAD-1, BT-HEAD-2, BT-HEAD-3)
func AppendHeader(dst []byte, h *Header) ([]byte, error) {
	if expected := h.fault(); expected != "" {
		return dst, textError(-1, reasonHeaderLine, "BT-HEAD-1", "%s", expected)
	}
	dst = append(append(dst, LeadInHeader...), h.Verb...)
	if h.HasNumber {
		dst = strconv.AppendUint(append(dst, ' '), uint64(h.Number), 10)
	}
	for _, k := range h.Keys {
		dst = append(append(append(dst, ' '), k.Key...), '=')
		for _, c := range []byte(k.Value) {
			if plain(c) && c != '~' {
				dst = append(dst, c)
			} else {
				const digits = "0123456789ABCDEF"
				dst = append(dst, '%', digits[c>>4], digits[c&15])
			}
		}
	}
	return dst, nil
}

// fault returns the reason why a header cannot be written, or "".
func (h *Header) fault() (expected string) {
	word := func(s string) bool { return s != "" && wordEnd([]byte(s), 0) == len(s) }
	switch {
	case !word(h.Verb):
		return fmt.Sprintf("verb %q, expected lower-case letters", h.Verb)
	case numbered(h.Verb) && !h.HasNumber:
		return h.Verb + " without a number, expected that of a dump"
	case h.HasNumber && !mayNumber(h.Verb):
		return h.Verb + " with a number, expected none"
	}
	for i, k := range h.Keys {
		if !word(k.Key) {
			return fmt.Sprintf("key %q, expected lower-case letters", k.Key)
		}
		first := !slices.ContainsFunc(h.Keys[:i], func(o HeaderKey) bool { return o.Key == k.Key })
		if expected := numberFault(k.Key, k.Value); expected != "" && first {
			return fmt.Sprintf("%s=%q, %s", k.Key, k.Value, expected)
		}
	}
	return ""
}

// plain reports whether a byte of a value may be written unescaped. Readers accept '~'
// too, but writers escape it, so that no value contains a lead-in. (BT-HEAD-1)
func plain(c byte) bool { return '!' <= c && c <= '~' && c != '%' }

// leadInAt reports whether text begins with a lead-in.
func leadInAt(text []byte) bool {
	return len(text) >= 3 && text[0] == '~' && text[2] == '#' && bytes.IndexByte([]byte("mbehpv"), text[1]) >= 0
}

// HeaderEnd returns the length of the ~h# line that text begins with. The line ends
// before the next line end, escape character or lead-in, and before the spaces and tabs
// that precede it. whole is false if text contains no such end: the line may then
// continue after text. HeaderEnd does not check the line; [ParseHeader] may reject it.
// (BT-HEAD-5)
func HeaderEnd(text []byte) (n int, whole bool) {
	n = min(len(text), len(LeadInHeader))
	for ; n < len(text); n++ {
		c := text[n]
		if c == '\n' || c == '\r' || c == 0x1b || c == '~' && leadInAt(text[n:]) {
			whole = true
			break
		}
	}
	for n > len(LeadInHeader) && (text[n-1] == ' ' || text[n-1] == '\t') {
		n--
	}
	return n, whole
}

// wordEnd returns the end of the run of lower-case letters that begins at pos.
func wordEnd(line []byte, pos int) int {
	for pos < len(line) && 'a' <= line[pos] && line[pos] <= 'z' {
		pos++
	}
	return pos
}

// ParseHeader reads a ~h# line into h: verb, number and keys, separated by single
// spaces. Spaces, tabs and line ends may follow. It keeps all keys in order, including
// repeated and unknown keys, and accepts unknown verbs. h does not refer to line. On an
// [*Error], h is empty. (BT-HEAD-1, BT-HEAD-2, BT-HEAD-3)
func ParseHeader(h *Header, line []byte) error {
	*h = Header{Keys: h.Keys[:0]}
	if !bytes.HasPrefix(line, []byte(LeadInHeader)) {
		return textError(0, reasonLeadIn, "BT-HEAD-1", "expected %s", LeadInHeader)
	}
	pos, expected := h.parse(bytes.TrimRight(line, " \t\r\n"))
	if expected != "" {
		*h = Header{Keys: h.Keys[:0]}
		return textError(pos, reasonHeaderLine, "BT-HEAD-1", "%s", expected)
	}
	return nil
}

// parse reads a line without trailing spaces. If the line is malformed, parse returns the
// position of the fault and what was expected there, else "".
func (h *Header) parse(line []byte) (pos int, expected string) {
	pos = min(len(LeadInHeader), len(line))
	end := wordEnd(line, pos)
	if end == pos {
		return pos, "expected a verb in lower-case letters"
	}
	h.Verb, pos = string(line[pos:end]), end
	if numbered(h.Verb) && (pos == len(line) || line[pos] != ' ') {
		return pos, "expected a space and the number of the dump"
	}
	digits := pos+1 < len(line) && digit(line[pos+1]) < 10
	if numbered(h.Verb) || digits && mayNumber(h.Verb) && line[pos] == ' ' {
		v, end, ok := parseUint(line, pos+1, 10)
		if !ok || v > math.MaxUint32 {
			return pos + 1, "expected a number in decimal, below 2^32"
		}
		h.Number, h.HasNumber, pos = uint32(v), true, end
	}
	for pos < len(line) {
		if line[pos] != ' ' {
			return pos, "expected a space and a key"
		}
		start := pos + 1
		end := wordEnd(line, start)
		if end == start || end == len(line) || line[end] != '=' {
			return start, "expected a key in lower-case letters, '=' and its value"
		}
		k := HeaderKey{Key: string(line[start:end])}
		if k.Value, pos, expected = headerValue(line, end+1); expected != "" {
			return pos, expected
		}
		if expected = numberFault(k.Key, k.Value); expected != "" {
			if _, again := h.Get(k.Key); !again { // only the first of equal keys is checked
				return end + 1, expected
			}
		}
		h.Keys = append(h.Keys, k)
	}
	return pos, ""
}

// headerValue reads a value up to a space or the end of the line.
func headerValue(line []byte, pos int) (value string, end int, expected string) {
	var out []byte
	for ; pos < len(line) && line[pos] != ' '; pos++ {
		c := line[pos]
		switch {
		case c == '~' && leadInAt(line[pos:]):
			return "", pos, "expected no other lead-in"
		case plain(c):
			out = append(out, c)
		case c == '%' && pos+2 < len(line) && digit(line[pos+1]) < 16 && digit(line[pos+2]) < 16:
			out = append(out, digit(line[pos+1])<<4|digit(line[pos+2]))
			pos += 2
		case c == '%':
			return "", pos, "expected two hexadecimal digits after '%'"
		default:
			return "", pos, "expected printable ASCII without spaces, other bytes as %XX"
		}
	}
	return string(out), pos, ""
}
