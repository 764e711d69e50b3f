package naive

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

var (
	errEvent  = fmt.Errorf("%s", codec.ReasonEvent)
	errHeader = fmt.Errorf("%s", codec.ReasonHeaderLine)

	numberedVerbs = []string{"begin", "end"}
	plainVerbs    = []string{"boot", "map", "load", "total", "lost", "heap", "free"}
	numberKeys    = []string{"t", "n", "b", "u", "w", "pid", "epoch", "allocs", "frees", "bytes", "live", "peak",
		"l", "base", "sample", "cut", "shift", "size", "free", "largest", "min", "parent"}
	whys = []string{"exit", "signal", "interval", "peak", "request", "image", "exec", "fork"}
)

// The parts of a header. (BT-HEAD-1)
var (
	headerLead = forms{
		"":                        `^~h#`,
		"header-skips-spaces":     `^ *~h#`,
		"header-skips-line-ends":  `^[\t\r\n]*~h#`,
		"header-skips-mark":       `^\x{FEFF}?~h#`,
		"header-lead-in-any-case": `^~[hH]#`,
		"header-lead-in-of-two":   `^~h.`,
		"header-searched":         `^(?s:.*\n)?~h#`,
	}
	headerEnd = forms{
		"":                         `[ \t\r\n]*\z`,
		"header-end-refused":       `\z`,
		"header-end-form-feed":     `[ \t\r\n\f]*\z`,
		"header-end-nul":           `[ \t\r\n\x00]*\z`,
		"header-end-no-break":      `[ \t\r\n\x{A0}]*\z`,
		"header-end-one-line":      `[ \t]*\r?\n?\z`,
		"header-end-at-escape":     `(?s)(\x1b.*|[ \t\r\n]*)\z`,
		"header-end-at-line-feed":  `(?s)[ \t\r]*(\n.*)?\z`,
		"header-end-at-nul":        `(?s)(\x00.*|[ \t\r\n]*)\z`,
		"header-end-at-carriage-r": `(?s)(\r.*|[ \t\r\n]*)\z`,
	}
	headerSpace = forms{
		"":                        ` `,
		"header-any-spaces":       `[ \t]+`,
		"header-splits-at-tab":    `[ \t]`,
		"header-splits-at-lf":     `[ \n]`,
		"header-splits-at-cr":     `[ \r]`,
		"header-splits-at-nul":    `[ \x00]`,
		"header-splits-at-escape": `[ \x1b]`,
		"header-splits-at-comma":  `[ ,]`,
		"header-two-spaces-later": `  ?`,
	}
	headerVerb = forms{
		"":                        `^[a-z]+$`,
		"header-any-case":         `^[A-Za-z][A-Za-z0-9]*$`,
		"header-verb-digits":      `^[a-z][a-z0-9]*$`,
		"header-verb-upper-later": `^[a-z][a-zA-Z]*$`,
		"header-verb-any-letters": `^\p{Ll}+$`,
		"header-verb-dashes":      `^[a-z_.-]+$`,
		"header-verb-escaped":     `^(?:[a-z]|%[0-9a-fA-F]{2})+$`,
		"header-verb-16-letters":  `^[a-z]{1,16}$`,
		"header-verb-two-letters": `^[a-z]{2,}$`,
	}
	headerName = forms{
		"":                        `^[a-z]+$`,
		"header-any-case":         `^[A-Za-z][A-Za-z0-9]*$`,
		"header-name-digits":      `^[0-9]*[a-z]+$`,
		"header-name-upper-first": `^[A-Z]?[a-z]*$`,
		"header-name-dashes":      `^[a-z_.:-]+$`,
		"header-name-quotes":      `^"?[a-z]+$`,
		"header-name-escaped":     `^(?:[a-z]|%[0-9a-fA-F]{2})+$`,
		"header-name-8-letters":   `^[a-z]{1,8}$`,
	}
	headerValue = forms{
		"":                          `^(?:[!-$&-~]|%[0-9A-Fa-f]{2})*$`,
		"header-upper-escapes-only": `^(?:[!-$&-~]|%[0-9A-F]{2})*$`,
		"header-one-case-escapes":   `^(?:[!-$&-~]|%[0-9A-F]{2}|%[0-9a-f]{2})*$`,
		"header-any-value":          `^[^ ]*$`,
		"header-value-tab":          `^(?:[\t!-$&-~]|%[0-9A-Fa-f]{2})*$`,
		"header-value-nul":          `^(?:[\x00!-$&-~]|%[0-9A-Fa-f]{2})*$`,
		"header-value-escape":       `^(?:[\x1b!-$&-~]|%[0-9A-Fa-f]{2})*$`,
		"header-value-line-feed":    `^(?:[\n!-$&-~]|%[0-9A-Fa-f]{2})*$`,
		"header-value-form-feed":    `^(?:[\v\f!-$&-~]|%[0-9A-Fa-f]{2})*$`,
		"header-value-high-bytes":   `^(?:[!-$&-~\x80-\x{FFFF}]|%[0-9A-Fa-f]{2})*$`,
		"header-value-255-bytes":    `^(?:[!-$&-~]|%[0-9A-Fa-f]{2}){0,255}$`,
		"header-value-two-percents": `^(?:[!-$&-~]|%%|%[0-9A-Fa-f]{2})*$`,
	}
	headerNotInValue = forms{
		"":                                 `~[mbehpv]#`,
		"header-value-with-lead-in":        `^\b$`, // never
		"header-value-with-own-lead-in":    `~[mbepv]#`,
		"header-value-with-paths":          `~[mbehv]#`,
		"header-value-with-path-events":    `~[mbehp]#`,
		"header-value-with-event":          `~[mbhpv]#`,
		"header-value-with-tilde-refused":  `~`,
		"header-value-with-any-letter":     `~[a-z]#`,
		"header-value-with-half-a-lead-in": `~[mbehpv]`,
	}
	headerKeyNumber = forms{ // after escapes were decoded
		"":                         `^[0-9]+$`,
		"header-number-plus":       `^[+]?[0-9]+$`,
		"header-number-minus":      `^-?[0-9]+$`,
		"header-number-hex":        `^(0[xX])?[0-9]+$`,
		"header-number-spaces":     `^\s*[0-9]+\s*$`,
		"header-number-nul":        `^[0-9]+\x00?$`,
		"header-number-underscore": `^[0-9]+(_[0-9]+)*$`,
		"header-number-commas":     `^[0-9]+(,[0-9]+)*$`,
		"header-number-exponent":   `^[0-9]+(e[0-9]+)?$`,
		"header-number-fraction":   `^[0-9]*[.]?[0-9]*$`,
		"header-number-suffix":     `^[0-9]+[a-z]?$`,
		"header-number-quoted":     `^"?[0-9]+"?$`,
		"header-number-infinity":   `^([0-9]+|Infinity|NaN|true)$`,
		"header-number-any-digit":  `^\p{N}+$`,
		"header-number-not-0":      `^0*[1-9][0-9]*$`,
		"header-number-empty":      `^[0-9]*$`,
		"header-zeros-refused":     `^(?:0|[1-9][0-9]*)$`,
	}
	headerDump = forms{
		"":                       `^[0-9]+$`,
		"header-dump-plus":       `^[+]?[0-9]+$`,
		"header-dump-minus":      `^-?[0-9]+$`,
		"header-dump-hex":        `^(0x)?[0-9]+$`,
		"header-dump-escaped":    `^([0-9]|%3[0-9])+$`,
		"header-dump-fraction":   `^[0-9]+([.][0-9]*)?$`,
		"header-dump-underscore": `^[0-9]+(_[0-9]+)*$`,
		"header-dump-suffix":     `^[0-9]+[a-z]?$`,
	}

	notDigits = regexp.MustCompile(`[^0-9]`)
)

// hline reads a ~h# line. (BT-HEAD-1, BT-HEAD-2, BT-HEAD-3)
func (b impl) hline(text string) (conformance.Answer, error) {
	none := conformance.Answer{}
	lead := b.pattern(headerLead).FindString(text)
	if lead == "" {
		return none, errLeadIn
	}
	rest := b.pattern(headerEnd).ReplaceAllString(text[len(lead):], "")
	parts := b.pattern(headerSpace).Split(rest, -1)
	if !b.pattern(headerVerb).MatchString(parts[0]) {
		return none, errHeader
	}
	number, words, ok := b.dumpNumber(parts[0], parts[1:])
	if !ok {
		return none, errHeader
	}
	keys, ok := b.headerKeys(parts[0], words)
	if !ok {
		return none, errHeader
	}
	return words2answer(append([]string{parts[0], number}, keys...)), nil
}

func words2answer(out []string) conformance.Answer { return words("%s", strings.Join(out, " ")) }

// dumpNumber returns the number that follows the verb, or - if there is none, and the words
// after it. (BT-HEAD-1, BT-HEAD-3)
func (b impl) dumpNumber(verb string, after []string) (number string, rest []string, ok bool) {
	has := len(after) > 0 && b.pattern(headerDump).MatchString(after[0]) && b.fits(after[0], 32)
	switch {
	case slices.Contains(numberedVerbs, verb):
		if !has && b.has("header-number-optional") {
			return "-", after, true
		}
		if !has {
			return "", nil, false
		}
	case slices.Contains(plainVerbs, verb):
		if has && b.has("header-number-of-any") {
			return "-", after[1:], true
		}
		return "-", after, true
	case b.has("header-unknown-verb-refused"):
		return "", nil, false
	case !has || b.has("header-unknown-number-refused"):
		return "-", after, true
	}
	return b.plainNumber(after[0]), after[1:], true
}

// fits reports whether text is a number of at most this many bits.
func (b impl) fits(text string, bits int) bool {
	_, err := strconv.ParseUint(notDigits.ReplaceAllString(text, ""), 10, bits)
	return err == nil || b.has("header-overflows") || text == "" && b.has("header-number-empty") || notDigits.MatchString(text)
}

// plainNumber returns a number in the form of answers, without leading zeros.
func (b impl) plainNumber(digits string) string {
	if b.has("header-zeros-kept") {
		return digits
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

// headerKeys reads the keys of a header. (BT-HEAD-1, BT-HEAD-2)
func (b impl) headerKeys(verb string, list []string) (out []string, ok bool) {
	if len(list) > 16 && b.has("header-16-keys") {
		return nil, false
	}
	known := slices.Contains(numberedVerbs, verb) || slices.Contains(plainVerbs, verb)
	names := map[string]bool{}
	for _, word := range list {
		name, _, found := strings.Cut(word, "=")
		if !found && b.has("header-key-without-value") {
			continue
		}
		again := names[name]
		names[name] = true
		if again && b.has("header-second-key-dropped") {
			continue
		}
		check := !again || b.has("header-every-key-checked") || name == "w" && b.has("header-second-word-checked")
		if b.has("header-unknown-verb-unchecked") && !known {
			check = false
		}
		text, ok := b.headerKey(word, verb, check)
		if !ok {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}

// headerKey reads a key and, if check is set, checks its value.
func (b impl) headerKey(text, verb string, check bool) (out string, ok bool) {
	name, value, found := strings.Cut(text, "=")
	if !found || !b.pattern(headerName).MatchString(name) || !b.pattern(headerValue).MatchString(value) {
		return "", false
	}
	if b.pattern(headerNotInValue).MatchString(value) {
		return "", false
	}
	plain := unescape(value)
	if b.has("header-unescapes-twice") {
		plain = unescape(plain)
	}
	escaped := escape(plain)
	if b.has("header-escapes-kept") {
		plain, escaped = value, value
	}
	checked := plain
	if b.has("header-checks-escaped-text") {
		checked = value
	}
	if check && !b.headerValueFits(verb, name, checked) || b.refusesKey(name, value, plain) {
		return "", false
	}
	return name + "=" + escaped, true
}

// refusesKey reports whether the bug rejects a valid key.
func (b impl) refusesKey(name, value, plain string) bool {
	switch b.bug {
	case "header-empty-value-refused":
		return value == ""
	case "header-unknown-key-refused":
		return name != "prog" && name != "why" && !slices.Contains(numberKeys, name)
	case "header-other-why-refused":
		return name == "why" && !slices.Contains(whys, plain)
	case "header-no-text-refused":
		return strings.ToValidUTF8(plain, "") != plain
	case "header-u-of-0-or-1":
		return name == "u" && plain != "0" && plain != "1"
	case "header-escaped-tilde-refused":
		return strings.Contains(plain, "~")
	case "header-escaped-control-refused":
		return strings.ContainsFunc(plain, unicode.IsControl)
	case "header-escaped-space-refused":
		return strings.Contains(plain, " ")
	case "header-escaped-lead-in-refused":
		return leadIns.MatchString(plain)
	case "header-name-of-digits-refused":
		return name == "prog" && plain != "" && !notDigits.MatchString(plain)
	}
	return false
}

// headerValueFits reports whether a value has the form that its key requires. (BT-HEAD-2)
func (b impl) headerValueFits(verb, name, value string) bool {
	if name == "code" || name == "heap" {
		return b.rangesFit(value) || b.has("header-"+name+"-unchecked")
	}
	if !slices.Contains(numberKeys, name) || b.has("header-numbers-unchecked") || b.has("header-"+name+"-unchecked") {
		return true
	}
	if !b.pattern(headerKeyNumber).MatchString(value) || !b.fits(value, 64) {
		return false
	}
	switch plain := strings.TrimLeft(value, "0"); {
	case name == "shift":
		return plain == "" || len(plain) == 1 && plain <= "4" || b.has("header-any-shift") || plain == "5" && b.has("header-shift-5")
	case name == "base":
		return b.fits(value, 32) || b.has("header-base-of-64-bits")
	case name == "sample":
		return plain != "" || b.has("header-sample-0")
	}
	if name != "w" || b.has("header-any-word") || b.has("header-word-of-boot") && verb != "boot" {
		return true
	}
	digits := strings.TrimLeft(value, "0")
	return digits == "32" || digits == "64" || digits == "128" && b.has("header-word-128")
}

// headerRange matches a range in the keys code and heap.
var headerRange = forms{
	"":                        `^0*([0-9A-Fa-f]{1,16})[+]0*([0-9A-Fa-f]{1,16})$`,
	"header-range-with-0x":    `^(?:0x)?0*([0-9A-Fa-f]{1,16})[+]0*([0-9A-Fa-f]{1,16})$`,
	"header-range-any-start":  `^0*([0-9A-Fa-f]*)[+]0*([0-9A-Fa-f]{1,16})$`,
	"header-range-spaces":     `^ *0*([0-9A-Fa-f]{1,16})[+]0*([0-9A-Fa-f]{1,16})$`,
	"header-range-minus":      `^0*([0-9A-Fa-f]{1,16})[+]-?0*([0-9A-Fa-f]{1,16})$`,
	"header-range-start-long": `^[0-9A-Fa-f]*?([0-9A-Fa-f]{1,16})[+]0*([0-9A-Fa-f]{1,16})$`,
	"header-range-length-opt": `^0*([0-9A-Fa-f]{1,16})(?:[+]0*([0-9A-Fa-f]{1,16}))?$`,
}

// rangesFit reports whether a value consists of ranges START+LENGTH, separated by commas.
func (b impl) rangesFit(value string) bool {
	if b.has("header-range-comma-at-end") {
		value = strings.TrimSuffix(value, ",")
	}
	for i, word := range strings.Split(value, ",") {
		if i > 0 && b.has("header-first-range-checked") {
			break
		}
		if word == "" && b.has("header-range-may-be-empty") {
			continue
		}
		m := b.pattern(headerRange).FindStringSubmatch(word)
		if m == nil {
			return false
		}
		start, err := strconv.ParseUint("0"+m[1], 16, 64)
		length, err2 := strconv.ParseUint("0"+m[2], 16, 64)
		if err != nil || err2 != nil && !b.has("header-range-length-opt") {
			return false
		}
		if length == 0 && !b.has("header-range-of-0") && !b.has("header-range-length-opt") || length > 0 && start+length-1 < start && !b.has("header-range-beyond") {
			return false
		}
	}
	return true
}

var (
	escapes     = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	loneTilde   = regexp.MustCompile(`%7E([^mbehpv])`)
	punctuation = regexp.MustCompile("[!-$&-,:-<>-@[-^`{-}]") // that of URLs is escaped
)

// unescape decodes the escapes of a value.
func unescape(value string) string {
	return escapes.ReplaceAllStringFunc(value, func(e string) string {
		n, _ := strconv.ParseUint(e[1:], 16, 8) // two digits: cannot fail
		return string([]byte{byte(n)})
	})
}

// escape returns a value with escapes.
func escape(plain string) string {
	var escaped []byte
	for _, c := range []byte(plain) {
		if '!' <= c && c <= '}' && c != '%' {
			escaped = append(escaped, c)
		} else {
			escaped = fmt.Appendf(escaped, "%%%02X", c)
		}
	}
	return string(escaped)
}

// header writes a ~h# line. (BT-HEAD-1)
func (b impl) header(text string) string {
	parts := strings.Split(text, " ")
	if parts[1] == "-" {
		parts = slices.Delete(parts, 1, 2)
	} else if !b.has("header-writes-number-zeros") {
		parts[1] = b.plainNumber(parts[1])
	}
	line := "~h#" + strings.Join(parts, " ")
	switch b.bug {
	case "header-writes-lower-escapes":
		return escapes.ReplaceAllStringFunc(line, strings.ToLower)
	case "header-writes-line-end":
		return line + "\n"
	case "header-writes-no-zeros":
		return regexp.MustCompile(`=0+([0-9])`).ReplaceAllString(line, "=$1")
	case "header-writes-tilde":
		return strings.ReplaceAll(line, "%7E", "~")
	case "header-writes-lone-tildes":
		return loneTilde.ReplaceAllString(line, "~$1")
	case "header-writes-percent":
		return strings.ReplaceAll(line, "%25", "%")
	case "header-writes-delete":
		return strings.ReplaceAll(line, "%7F", "\x7f")
	case "header-writes-tab":
		return strings.ReplaceAll(line, "%09", "\t")
	case "header-writes-high-bytes":
		return regexp.MustCompile(`%[89A-F].`).ReplaceAllStringFunc(line, unescape)
	case "header-writes-as-url":
		head, values, _ := strings.Cut(line, "=")
		return head + "=" + punctuation.ReplaceAllStringFunc(values, func(c string) string { return fmt.Sprintf("%%%02X", c[0]) })
	case "header-escapes-equals":
		return regexp.MustCompile(`(=[^ ]*)=`).ReplaceAllString(line, "$1%3D")
	case "header-writes-plus-for-space":
		return strings.ReplaceAll(line, "%20", "+")
	case "header-writes-255-bytes":
		return line[:min(len(line), 255)]
	case "header-writes-each-key-once":
		seen := map[string]bool{}
		parts = slices.DeleteFunc(parts, func(word string) bool {
			name, _, key := strings.Cut(word, "=")
			again := key && seen[name]
			seen[name] = true
			return again
		})
		return "~h#" + strings.Join(parts, " ")
	case "header-writes-known-keys":
		parts = slices.DeleteFunc(parts, func(word string) bool {
			name, _, key := strings.Cut(word, "=")
			return key && name != "prog" && name != "why" && !slices.Contains(numberKeys, name)
		})
		return "~h#" + strings.Join(parts, " ")
	}
	return line
}
