package mutant

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
)

// scan lists the records in a text. (BT-TEXT-3)
func (b impl) scan(text string) conformance.Answer {
	run := regexp.MustCompile(`^[A-Za-z0-9+/_-]*`)
	if b.has("scan-standard-alphabet") {
		run = regexp.MustCompile(`^[A-Za-z0-9+/]*`)
	}
	var found []string
	for at := 0; ; {
		m := leadIns.FindStringIndex(text[at:])
		if m == nil || b.has("scan-first-only") && len(found) == 1 || b.has("scan-at-beginning-only") && at+m[0] > 0 {
			break
		}
		start := at + m[0]
		rest := text[start:]
		n := 3
		switch rest[1] {
		case 'b':
			if n = b.decodedRecord(rest); n == 0 {
				at = start + 3
				continue
			}
		case 'h':
			if n = b.headerRecord(rest); n == 0 {
				at = start + 3
				continue
			}
		default:
			chars := len(run.FindString(rest[3:]))
			n += chars
			pads := []int{0, 0, 2, 1}[chars%4]
			switch {
			case b.has("scan-ends-before-padding"):
				pads = 0
			case b.has("scan-takes-all-padding"):
				pads = len(rest)
			}
			for i := 0; i < pads && n < len(rest) && rest[n] == '='; i++ {
				n++
			}
		}
		found = append(found, fmt.Sprintf("%c@%d+%d", rest[1], start, n))
		at = start + n
	}
	if len(found) == 0 {
		return words("-")
	}
	return words("%s", strings.Join(found, " "))
}

var (
	scanSize    = regexp.MustCompile(`^~b#size: 0*([0-9]+),`)
	scanAddress = regexp.MustCompile(`^ 0x0*([0-9a-fA-F]+)`)
)

// decodedRecord returns how many bytes at the beginning of text are a ~b# record,
// 0 if there is none. (BT-TEXT-3)
func (b impl) decodedRecord(text string) int {
	m := scanSize.FindStringSubmatch(text)
	if m == nil {
		if b.has("scan-decoded-of-any-form") {
			return 3
		}
		return 0
	}
	if _, err := strconv.ParseUint(m[1], 10, 64); err != nil && !b.has("scan-decoded-any-size") {
		return 0
	}
	n := len(m[0])
	for frames := 0; frames < 32 || b.has("scan-decoded-33-addresses"); frames++ {
		m := scanAddress.FindStringSubmatch(text[n:])
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

// headerRecord returns how many bytes at the beginning of text are a ~h# record, 0
// if there is none. (BT-HEAD-5)
func (b impl) headerRecord(text string) int {
	ends := "\r\n\x1b"
	switch {
	case b.has("scan-header-takes-escape"):
		ends = "\r\n"
	case b.has("scan-header-takes-carriage-return"):
		ends = "\n\x1b"
	}
	if end := strings.IndexAny(text, ends); end >= 0 {
		text = text[:end]
	}
	if next := leadIns.FindStringIndex(text[3:]); next != nil && !b.has("scan-header-takes-lead-ins") {
		text = text[:3+next[0]]
	}
	if !b.has("scan-header-takes-spaces") {
		text = text[:3] + strings.TrimRight(text[3:], " \t")
	}
	if _, err := b.hline(text); err != nil && b.has("scan-header-well-formed-only") {
		return 0
	}
	return len(text)
}
