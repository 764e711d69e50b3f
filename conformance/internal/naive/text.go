package naive

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// The lead-ins that readers of ~m# lines accept, and the characters that they skip after the
// lead-in. (BT-TEXT-1, BT-B64-2, BT-B64-3)
var (
	strictLeadIn = forms{
		"":                             `^~m#`,
		"lead-in-optional":             `^(?:~m#)?`,
		"strict-skips-mark-before":     `^\x{FEFF}?~m#`,
		"strict-skips-line-end-before": `^[\r\n\t]*~m#`,
		"strict-lead-in-of-two":        `^~m.`,
		"strict-searches-lead-in":      `^(?s:.*[ \x00])?~m#`,
	}
	lenientLeadIn = forms{
		"":                              `^(?:~m#)?`,
		"lead-in-always":                `^~m#`,
		"lenient-any-lead-in":           `^(?:~[mbe]#)?`,
		"lenient-any-case-lead-in":      `^(?:~[mM]#)?`,
		"lenient-part-of-lead-in":       `^(?:~?m?#|~m)?`,
		"lenient-skips-mark-before":     `^(?:\x{FEFF}?(?:~m#)?)`,
		"lenient-skips-line-end-before": `^(?:[\r\n\t]*~m#)?`,
	}
	strictSkip = forms{
		"":                       `\z`,
		"strict-skips-line-ends": `[\r\n]`,
		"strict-skips-at-end":    `[ \t\r]*\n?\z`,
		"strict-skips-nul":       `\x00\z`,
		"strict-skips-any-space": `[\v\f\x{85}\x{A0}]`,
		"strict-skips-mark":      `\x{FEFF}`,
		"strict-skips-after-64":  `^(?:.{64})(?:\r?\n)`,
	}
	lenientSkip = forms{
		"":                          `[ \t\r\n]`,
		"lenient-refuses-spaces":    `[\r\n]`,
		"lenient-refuses-line-ends": `[ \t]`,
		"lenient-skips-any-space":   `[\s\v\x{85}\x{A0}\x{2000}-\x{200B}\x{2028}\x{3000}]`,
		"lenient-skips-mark":        `[ \t\r\n\x{FEFF}]`,
		"lenient-skips-no-break":    `[ \t\r\n\x{A0}]`,
		"lenient-skips-nul":         `[ \t\r\n\x00]`,
		"lenient-skips-escape":      `[ \t\r\n\x1b]`,
		"lenient-skips-separators":  `[ \t\r\n\x1c-\x1f]`,
		"lenient-skips-tilde":       `[ \t\r\n~]`,
		"lenient-skips-high-bytes":  `[ \t\r\n]|[^\x00-\x7f]`,
	}
)

// parseLine reads a ~m# line. (BT-TEXT-1, BT-B64-2, BT-B64-3)
func (b impl) parseLine(line string, lenient bool) ([]byte, error) {
	leadIn, skip := b.pattern(strictLeadIn), b.pattern(strictSkip)
	if lenient {
		leadIn, skip = b.pattern(lenientLeadIn), b.pattern(lenientSkip)
	}
	lead := leadIn.FindStringIndex(line)
	if lead == nil {
		return nil, errLeadIn
	}
	text := line[lead[1]:]
	if lenient && !b.has("lenient-refuses-url-alphabet") || b.has("strict-takes-url-alphabet") {
		text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	}
	if _, bug := strictSkip[b.bug]; lenient || bug { // else there is nothing to skip
		text = skipped(text, skip)
	}
	if at := notBase64.FindStringIndex(text); at != nil && lenient && b.has("lenient-stops-at-others") {
		text = text[:at[0]]
	}
	chars := strings.TrimRight(text, "=")
	pads := len(text) - len(chars)
	if len(chars)%4 == 1 && lenient && b.has("lenient-drops-single") {
		chars = chars[:len(chars)-1]
	}
	if len(chars)%4 == 1 || !b.padded(len(chars), pads, lenient) {
		return nil, errBase64
	}
	return b.base64(chars)
}

// skipped returns text without the matches of skip. It keeps the 64 characters that
// strict-skips-after-64 matches before a line end.
func skipped(text string, skip *regexp.Regexp) string {
	return skip.ReplaceAllStringFunc(text, func(match string) string { return match[:len(match)/64*64] })
}

var notBase64 = regexp.MustCompile(`[^A-Za-z0-9+/=]`)

// padded reports whether chars characters may be followed by pads padding characters.
func (b impl) padded(chars, pads int, lenient bool) bool {
	full := (4 - chars%4) % 4
	if pads > full {
		return (chars+pads)%4 == 0 && (!lenient && b.has("strict-groups-of-padding") || lenient && b.has("lenient-groups-of-padding")) ||
			lenient && chars%4 != 0 && b.has("lenient-padding-of-two")
	}
	if lenient && b.has("lenient-no-partial-padding") && 0 < pads && pads < full {
		return false
	}
	return pads == full || lenient && !b.has("lenient-refuses-no-padding") || !lenient && b.has("strict-takes-no-padding")
}

// base64 reads characters of the standard alphabet.
func (b impl) base64(chars string) ([]byte, error) {
	if len(chars) > 512 && b.has("base64-of-512") || len(chars) > 4096 && b.has("base64-of-4096") {
		return nil, errBase64
	}
	blob := make([]byte, 0, len(chars)*6/8)
	bits, n := 0, 0 // n bits that are not yet in a byte
	for _, c := range []byte(chars) {
		if b.has("base64-of-7-bits") {
			c &= 0x7f
		}
		at := strings.IndexByte(base64Alphabet, c)
		if at < 0 {
			return nil, errBase64
		}
		bits, n = bits<<6|at, n+6
		if n >= 8 {
			n -= 8
			blob = append(blob, byte(bits>>n))
			bits &= 1<<n - 1
		}
	}
	if bits != 0 && !b.has("unused-bits-ignored") {
		return nil, errBase64
	}
	return blob, nil
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// The parts of a ~b# line. (BT-TEXT-2)
var (
	decodedLead = forms{
		"":                              `^~b#`,
		"decoded-skips-mark-before":     `^\x{FEFF}?~b#`,
		"decoded-skips-line-end-before": `^[\r\n\t]*~b#`,
		"decoded-searches-lead-in":      `^(?s:.*[ ~])?~b#`,
		"decoded-any-case-lead-in":      `^~[bB]#`,
		"decoded-lead-in-of-two":        `^~b.`,
	}
	decodedEnd = forms{
		"":                             `[ \t\r\n]*\z`,
		"decoded-space-at-end":         `\z`,
		"decoded-end-any-space":        `[\s\v\x{85}\x{A0}\x{FEFF}]*\z`,
		"decoded-end-at-escape":        `(?s)(\x1b.*|[ \t\r\n]*)\z`,
		"decoded-end-at-line-feed":     `(?s)[ \t\r]*(\n.*)?\z`,
		"decoded-end-one-line":         `[ \t]*\r?\n?\z`,
		"decoded-end-with-punctuation": `[ \t\r\n,;]*\z`,
	}
	decodedSize = forms{
		"":                    `^size: `,
		"decoded-size-spaces": `^size:\s+`,
		"decoded-size-signed": `^size: [+-]?`,
		"decoded-size-0x":     `^size: (?:0x)?`,
	}
	decodedBlank = forms{
		"":                        `^ `,
		"decoded-line-feeds":      `^[ \n]`,
		"decoded-any-space":       `^[\s\v]`,
		"decoded-several-spaces":  `^ +`,
		"decoded-goes-on-in-next": `^\r?\n? `,
	}
)

// parseDecoded reads a ~b# line. (BT-TEXT-2)
func (b impl) parseDecoded(line string) (v conformance.Value, err error) {
	lead := b.pattern(decodedLead).FindString(line)
	if lead == "" {
		return v, errLeadIn
	}
	text := b.pattern(decodedEnd).ReplaceAllString(line[len(lead):], "")
	sizeLead := b.pattern(decodedSize).FindString(text)
	found := sizeLead != ""
	text = text[len(sizeLead):]
	size := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	rest := text[len(size):]
	if fraction := decodedFraction.FindString(rest); b.has("decoded-size-fraction") {
		rest = rest[len(fraction):]
	}
	rest, comma := strings.CutPrefix(rest, ",")
	ok := false
	if v.Size, ok = b.digits(size, 10); !ok || !found || !comma && !b.has("decoded-without-comma") {
		return conformance.Value{}, errDecoded
	}
	for rest != "" {
		blank := b.pattern(decodedBlank).FindString(rest)
		word := rest[len(blank):]
		if end := strings.IndexAny(word, " \t\r\n\v"); end >= 0 {
			word = word[:end]
		}
		rest = rest[len(blank)+len(word):]
		number, hex := strings.CutPrefix(word, "0x")
		if b.has("decoded-numbers-of-c") {
			number = strings.TrimRight(strings.TrimPrefix(number, "+"), "hL")
		}
		pc, ok := b.digits(number, 16)
		if blank == "" || !ok || !hex && !b.has("decoded-without-0x") || len(v.PCs) == 32 && !b.has("decoded-33-addresses") {
			return conformance.Value{}, errDecoded
		}
		v.PCs = append(v.PCs, pc)
	}
	return v, nil
}

var decodedFraction = regexp.MustCompile(`^(?:[.]0*|e0|_[0-9]+|u)`)

func (b impl) digits(text string, base uint64) (v uint64, ok bool) {
	for _, c := range strings.ToLower(text) {
		d := uint64(strings.IndexRune("0123456789abcdef", c))
		if d >= base || v > (1<<64-1-d)/base && !b.has("decoded-overflows") {
			return 0, false
		}
		v = v*base + d
	}
	return v, text != ""
}

// line returns the ~m# line of a blob. (BT-TEXT-1, BT-B64-1)
func (b impl) line(blob []byte) string {
	alphabet := base64Alphabet
	if b.has("line-url-alphabet") {
		alphabet = strings.NewReplacer("+", "-", "/", "_").Replace(alphabet)
	}
	all := bitstring.Unpack(blob)
	for len(all)%6 != 0 {
		all = append(all, 0)
	}
	var out strings.Builder
	out.WriteString("~m#")
	for ; len(all) > 0; all = all[6:] {
		out.WriteByte(alphabet[bitstring.Number(all[:6])])
	}
	if !b.has("line-without-padding") {
		out.WriteString(strings.Repeat("=", (3-len(blob)%3)%3))
	}
	return out.String()
}

// decoded returns the ~b# line of a stack. (BT-TEXT-2)
func (b impl) decoded(v *conformance.Value) string {
	size, pc := "%d,", " 0x%x"
	switch {
	case b.has("decoded-size-hex"):
		size = "0x%x,"
	case b.has("decoded-upper-case"):
		pc = " 0x%X"
	}
	line := "~b#size: " + fmt.Sprintf(size, v.Size)
	for _, address := range v.PCs {
		line += fmt.Sprintf(pc, address)
	}
	if b.has("decoded-ends-in-space") {
		line += " "
	}
	return line
}
