package naive

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/conformance"
)

// The beginnings and ends of records in the text of a log. (BT-TEXT-3, BT-HEAD-5)
var (
	scanLeadIn = forms{ // the first group is the lead-in
		"":                         `(~[mbehpv]#)`,
		"scan-not-after-tilde":     `(?:^|[^~])(~[mbehpv]#)`,
		"scan-not-after-letters":   `(?:^|[^A-Za-z])(~[mbehpv]#)`,
		"scan-skips-half-lead-ins": `(?s)^(?:~[mbehpv][^#]|~[^mbehpv]|[^~])*?(~[mbehpv]#)`,
		"scan-any-letter":          `(~[a-z]#)`,
	}
	scanRun = forms{
		"scan-standard-alphabet": `^[A-Za-z0-9+/]*`,
		"scan-one-alphabet":      `^(?:[A-Za-z0-9_-]*[_-][A-Za-z0-9_-]*|[A-Za-z0-9+/]*)`,
		"scan-run-commas":        `^[A-Za-z0-9+,-/_]*`,
		"scan-run-A-to-z":        `^[A-z0-9+/_-]*`,
		"scan-run-any-letters":   `^[\p{L}\p{N}+/_-]*`,
		"scan-run-folded":        `^(?:[A-Za-z0-9+/_-]|\r?\n[A-Za-z0-9+/])*`,
		"scan-run-spaces":        `^(?:[A-Za-z0-9+/_-]| [A-Za-z0-9+/])*`,
	}
	scanSize = forms{ // the first group is the size without leading zeros
		"":                                  `^~b#size: 0*([0-9]+),`,
		"scan-decoded-any-space-before":     `^~b#size:\s*0*([0-9]+),`,
		"scan-decoded-any-case":             `(?i)^~b#size: 0*([0-9]+),`,
		"scan-decoded-plus":                 `^~b#size: [+]?0*([0-9]+),`,
		"scan-decoded-space-before-comma":   `^~b#size: 0*([0-9]+) ?,`,
		"scan-decoded-with-an-address-only": `^~b#size: 0*([0-9]+),(?: 0x[0-9a-fA-F])`,
	}
	scanAddress = forms{ // the first group is the address without leading zeros
		"":                              `^ 0x0*([0-9a-fA-F]+)`,
		"scan-decoded-goes-on":          `^\r?\n? 0x0*([0-9a-fA-F]+)`,
		"scan-decoded-any-space":        `^\s0x0*([0-9a-fA-F]+)`,
		"scan-decoded-several-spaces":   `^ +0x0*([0-9a-fA-F]+)`,
		"scan-decoded-commas":           `^,? 0x0*([0-9a-fA-F]+)`,
		"scan-decoded-upper-case-x":     `^ 0[xX]0*([0-9a-fA-F]+)`,
		"scan-decoded-addresses-signed": `^ [+]?0x0*([0-9a-fA-F]+)`,
	}
	scanHeaderEnd = forms{
		"":                                  `[\r\n\x1b]`,
		"scan-header-takes-escape":          `[\r\n]`,
		"scan-header-takes-carriage-return": `[\n\x1b]`,
		"scan-header-ends-at-vertical-tab":  `[\r\n\x1b\v]`,
		"scan-header-ends-at-form-feed":     `[\r\n\x1b\f]`,
		"scan-header-ends-at-separators":    `[\r\n\x1b\x1c-\x1f]`,
		"scan-header-ends-at-delete":        `[\r\n\x1b\x7f]`,
		"scan-header-ends-beyond-ascii":     `[\r\n\x1b]|[^\x00-\x7f]`,
		"scan-header-ends-at-tab":           `[\r\n\x1b\t]`,
		"scan-header-ends-at-two-spaces":    `[\r\n\x1b]|  `,
		"scan-header-ends-at-quote":         `[\r\n\x1b"]`,
		"scan-header-ends-at-colour":        `[\r\n]|\x1b\[`,
	}
	scanHeaderNext = forms{
		"":                                `~[mbehpv]#`,
		"scan-header-takes-lead-ins":      `^\b$`, // never
		"scan-header-takes-paths":         `~[mbehv]#`,
		"scan-header-takes-path-events":   `~[mbehp]#`,
		"scan-header-takes-headers":       `~[mbepv]#`,
		"scan-header-takes-events":        `~[mbhpv]#`,
		"scan-header-takes-decoded":       `~[mehpv]#`,
		"scan-header-takes-blobs":         `~[behpv]#`,
		"scan-header-ends-at-tilde":       `~`,
		"scan-header-ends-at-any-letter":  `~[a-z]#`,
		"scan-header-ends-at-half":        `~[mbehpv]`,
		"scan-header-lead-in-after-text":  `[^ \t]~[mbehpv]#`,
		"scan-header-lead-in-after-space": `[ \t]~[mbehpv]#`,
	}
	scanHeaderTail = forms{
		"":                         `[ \t]*\z`,
		"scan-header-takes-spaces": `\z`,
		"scan-header-takes-tabs":   `[ ]*\z`,
		"scan-header-trims-nul":    `[ \t\x00]*\z`,
		"scan-header-trims-all":    `[\s\v]*\z`,
	}
)

// leadIns matches lead-ins, which no value of a header contains. (BT-HEAD-1)
var leadIns = regexp.MustCompile(`~[mbehpv]#`)

// scan lists the records in a text. (BT-TEXT-3)
func (b impl) scan(text string) conformance.Answer {
	text = b.readLog(text)
	var found []string
	for at := 0; ; {
		m := b.pattern(scanLeadIn).FindStringSubmatchIndex(text[at:])
		if m == nil || b.has("scan-first-only") && len(found) == 1 || b.has("scan-16-records") && len(found) == 16 ||
			b.has("scan-at-beginning-only") && at+m[2] > 0 {
			break
		}
		start := at + m[2]
		n := b.recordAt(text[start:])
		if n == 0 {
			at = start + 3
			continue
		}
		place := start
		if b.has("scan-counts-characters") {
			place = utf8.RuneCountInString(text[:start])
		}
		found = append(found, fmt.Sprintf("%c@%d+%d", text[start+1], place, n))
		at = start + n
		if line := strings.IndexByte(text[at:], '\n'); b.has("scan-header-takes-line") && text[start+1] == 'h' && line > 0 {
			at += line
		}
	}
	if len(found) == 0 {
		return words("-")
	}
	return words("%s", strings.Join(found, " "))
}

// readLog returns the text that is scanned.
func (b impl) readLog(text string) string {
	switch b.bug {
	case "scan-replaces-bytes":
		return strings.ToValidUTF8(text, "\uFFFD")
	case "scan-drops-mark":
		return strings.TrimPrefix(text, "\uFEFF")
	case "scan-drops-colours":
		return regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(text, "")
	case "scan-1000-bytes":
		return text[:min(len(text), 1000)]
	case "scan-65536-bytes":
		return text[:min(len(text), 1<<16)]
	case "scan-ends-at-nul":
		text, _, _ = strings.Cut(text, "\x00")
	}
	return text
}

// recordAt returns the length in bytes of the record at the beginning of text, which is a
// lead-in, or 0 if there is none.
func (b impl) recordAt(text string) int {
	switch text[1] {
	case 'b':
		return b.decodedRecord(text)
	case 'h':
		return b.headerRecord(text)
	case 'p', 'v':
		return b.pathRecord(text)
	}
	event := text[1] == 'e'
	chars := b.runAt(text[3:])
	if event && b.has("scan-event-standard-alphabet") {
		chars = impl{"scan-standard-alphabet"}.runAt(text[3:])
	}
	switch b.bug {
	case "scan-run-416":
		chars = min(chars, 416)
	case "scan-run-65536":
		chars = min(chars, 1<<16)
	}
	pads := []int{0, 0, 2, 1}[chars%4]
	switch {
	case b.has("scan-ends-before-padding"), event && b.has("scan-event-without-padding"):
		pads = 0
	case b.has("scan-takes-all-padding"):
		pads = len(text)
	}
	n := 3 + chars
	for ; pads > 0 && n < len(text) && text[n] == '='; pads-- {
		n++
	}
	return n
}

// pathRecord returns the length in bytes of the ~p# or ~v# line at the beginning of text. (BT-PLINE-4)
func (b impl) pathRecord(text string) int {
	digits := text[3:]
	n := len(digits) - len(strings.TrimLeft(digits, base64Alphabet))
	switch {
	case b.has("scan-without-paths") && text[1] == 'p', b.has("scan-without-path-events") && text[1] == 'v', b.has("scan-paths-with-digits") && n == 0:
		return 0
	case b.has("scan-paths-both-alphabets"):
		n = len(digits) - len(strings.TrimLeft(digits, base64Alphabet+"-_"))
	case b.has("scan-paths-padding"):
		n += len(digits[n:]) - len(strings.TrimLeft(digits[n:], "="))
	case b.has("scan-paths-of-240"):
		n = min(n, 237)
	case b.has("scan-paths-that-can-be-read") && text[1] == 'p':
		if _, err := (impl{}).pline(text[:3+n]); err != nil {
			return 0
		}
	}
	return 3 + n
}

// runAt returns the length of the run of a record's characters at the beginning of text.
func (b impl) runAt(text string) int {
	if _, bug := scanRun[b.bug]; bug {
		return len(b.pattern(scanRun).FindString(text))
	}
	return len(text) - len(strings.TrimLeft(text, base64Alphabet+"-_"))
}

// decodedRecord returns the length in bytes of the ~b# record at the beginning of text, or 0
// if there is none. (BT-TEXT-3)
func (b impl) decodedRecord(text string) int {
	m := b.pattern(scanSize).FindStringSubmatch(text)
	if m == nil {
		if b.has("scan-decoded-of-any-form") {
			return 3
		}
		return 0
	}
	if _, err := strconv.ParseUint(m[1], 10, 64); err != nil && !b.has("scan-decoded-any-size") {
		return 0
	}
	n := strings.IndexByte(text, ',') + 1
	for frames := 0; frames < 32 || b.has("scan-decoded-33-addresses"); frames++ {
		m := b.pattern(scanAddress).FindStringSubmatch(text[n:])
		if m == nil {
			break
		}
		if _, err := strconv.ParseUint(m[1], 16, 64); err != nil {
			if b.has("scan-decoded-cuts-numbers") {
				n += len(m[0]) - len(m[1]) + 16
			}
			if !b.has("scan-decoded-any-address") {
				break
			}
		}
		n += len(m[0])
	}
	if b.has("scan-decoded-takes-spaces") {
		n += len(text[n:]) - len(strings.TrimLeft(text[n:], " "))
	}
	return n
}

// headerRecord returns the length in bytes of the ~h# record at the beginning of text, or 0 if
// there is none. (BT-HEAD-5)
func (b impl) headerRecord(text string) int {
	if end := b.pattern(scanHeaderEnd).FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	next := b.pattern(scanHeaderNext).FindStringIndex(text[3:])
	if next != nil {
		text = text[:3+next[1]]
		text = text[:strings.LastIndexByte(text, '~')]
	}
	if next == nil || !b.has("scan-header-takes-spaces-before-lead-in") {
		text = text[:3] + b.pattern(scanHeaderTail).ReplaceAllString(text[3:], "")
	}
	if b.has("scan-header-256-bytes") {
		text = text[:min(len(text), 256)]
	}
	if _, err := b.hline(text); err != nil && b.has("scan-header-well-formed-only") {
		return 0
	}
	return len(text)
}
