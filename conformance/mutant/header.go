package mutant

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

var (
	errEvent  = fmt.Errorf("%s", codec.ReasonEvent)
	errHeader = fmt.Errorf("%s", codec.ReasonHeaderLine)

	headerValue = regexp.MustCompile(`^(?:[!-$&-~]|%[0-9A-Fa-f]{2})*$`)
	upperValue  = regexp.MustCompile(`^(?:[!-$&-~]|%[0-9A-F]{2})*$`)
	anyValue    = regexp.MustCompile(`^[^ ]*$`)
	lowerWord   = regexp.MustCompile(`^[a-z]+$`)
	anyWord     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	decimal     = regexp.MustCompile(`^[0-9]+$`)
)

// hline reads a ~h# line. (BT-HEAD-1, BT-HEAD-2, BT-HEAD-3)
func (b impl) hline(text string) (conformance.Answer, error) {
	none := conformance.Answer{}
	if b.has("header-skips-spaces") {
		text = strings.TrimLeft(text, " ")
	}
	rest, ok := strings.CutPrefix(text, "~h#")
	if !ok {
		return none, errLeadIn
	}
	if !b.has("header-end-refused") {
		rest = strings.TrimRight(rest, " \t\r\n")
	}
	parts := strings.Split(rest, " ")
	if b.has("header-any-spaces") {
		parts = strings.Fields(rest)
	}
	word := lowerWord
	if b.has("header-any-case") {
		word = anyWord
	}
	if len(parts) == 0 || !word.MatchString(parts[0]) {
		return none, errHeader
	}
	out, keys := []string{parts[0], "-"}, parts[1:]
	switch parts[0] {
	case "begin", "end":
		if len(keys) > 0 && b.headerNumber(keys[0], 32) {
			out[1], keys = b.plainNumber(keys[0]), keys[1:]
		} else if !b.has("header-number-optional") {
			return none, errHeader
		}
	case "boot", "map", "load", "total", "lost":
		if b.has("header-number-of-any") && len(keys) > 0 && decimal.MatchString(keys[0]) {
			keys = keys[1:]
		}
	default:
		if b.has("header-unknown-verb-refused") {
			return none, errHeader
		}
		if len(keys) > 0 && b.headerNumber(keys[0], 32) && !b.has("header-unknown-number-refused") {
			out[1], keys = b.plainNumber(keys[0]), keys[1:]
		}
	}
	known := slices.Contains([]string{"boot", "map", "load", "begin", "end", "total", "lost"}, parts[0])
	names := map[string]bool{}
	for _, k := range keys {
		name, _, _ := strings.Cut(k, "=")
		check := !names[name] || b.has("header-every-key-checked")
		if b.has("header-unknown-verb-unchecked") && !known {
			check = false
		}
		if names[name] && b.has("header-second-key-dropped") {
			continue
		}
		names[name] = true
		text, keep, ok := b.headerKey(k, word, check)
		if !ok {
			return none, errHeader
		}
		if keep {
			out = append(out, text)
		}
	}
	return words("%s", strings.Join(out, " ")), nil
}

// headerNumber reports whether text is a decimal number of so many bits.
func (b impl) headerNumber(text string, bits int) bool {
	if !decimal.MatchString(text) {
		return false
	}
	_, err := strconv.ParseUint(text, 10, bits)
	return err == nil || b.has("header-overflows")
}

// plainNumber is a number as it is answered, without leading zeros.
func (b impl) plainNumber(digits string) string {
	if b.has("header-zeros-kept") {
		return digits
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

// headerKey reads a key; keep is false of one that is skipped. Numbers are checked
// if check is set.
func (b impl) headerKey(text string, word *regexp.Regexp, check bool) (out string, keep, ok bool) {
	name, value, found := strings.Cut(text, "=")
	form := headerValue
	switch {
	case b.has("header-upper-escapes-only"):
		form = upperValue
	case b.has("header-any-value"):
		form = anyValue
	}
	if leadIns.MatchString(value) && !b.has("header-value-with-lead-in") {
		return "", false, false
	}
	if !found && b.has("header-key-without-value") {
		return text, false, true
	}
	if !found || !word.MatchString(name) || !form.MatchString(value) || value == "" && b.has("header-empty-value-refused") {
		return "", false, false
	}
	known := slices.Contains([]string{"prog", "why", "t", "n", "b", "u", "w", "pid", "epoch", "allocs", "frees", "bytes", "live", "peak"}, name)
	if !known && b.has("header-unknown-key-refused") {
		return "", false, false
	}
	number := known && name != "prog" && name != "why" && check && !b.has("header-numbers-unchecked")
	raw := value
	if !b.has("header-escapes-kept") {
		var plain []byte
		for i := 0; i < len(value); i++ {
			if value[i] == '%' && i+2 < len(value) {
				if n, err := strconv.ParseUint(value[i+1:i+3], 16, 8); err == nil {
					plain = append(plain, byte(n))
					i += 2
					continue
				}
			}
			plain = append(plain, value[i])
		}
		escaped := make([]byte, 0, len(plain))
		for _, c := range plain {
			if '!' <= c && c <= '}' && c != '%' {
				escaped = append(escaped, c)
			} else {
				escaped = fmt.Appendf(escaped, "%%%02X", c)
			}
		}
		value = string(escaped)
	}
	if b.has("header-checks-escaped-text") {
		raw, value = value, raw
	}
	if number && !b.headerNumber(value, 64) {
		return "", false, false
	}
	if number && name == "w" && !b.has("header-any-word") {
		if digits := strings.TrimLeft(value, "0"); digits != "32" && digits != "64" {
			return "", false, false
		}
	}
	if b.has("header-checks-escaped-text") {
		value = raw
	}
	return name + "=" + value, true, true
}

// header writes a ~h# line. (BT-HEAD-1)
func (b impl) header(text string) string {
	parts := strings.Split(text, " ")
	if parts[1] == "-" {
		parts = slices.Delete(parts, 1, 2)
	}
	line := "~h#" + strings.Join(parts, " ")
	switch {
	case b.has("header-writes-lower-escapes"):
		line = regexp.MustCompile(`%..`).ReplaceAllStringFunc(line, strings.ToLower)
	case b.has("header-writes-line-end"):
		line += "\n"
	case b.has("header-writes-tilde"):
		line = strings.ReplaceAll(line, "%7E", "~")
	case b.has("header-writes-no-zeros"):
		line = regexp.MustCompile(`=0+([0-9])`).ReplaceAllString(line, "=$1")
	}
	return line
}
