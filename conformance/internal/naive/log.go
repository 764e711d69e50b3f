package naive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
)

// logReader reads a recording.
type logReader struct {
	impl
	plain impl // reads headers and records

	boot   int
	open   string // the number of the dump; "-" if none is open
	word   int
	fields bool // records have user fields

	left  int    // log-n-ends-dump: records up to the end of the dump; 0 if not known
	last  uint64 // log-drops-old-times: the time of the last event
	lost  bool   // log-lost-drops
	known map[uint64]bool
	line  int // log-one-per-line: offset of the last record, plus 1; 0 if there is none
	found []string
}

// read lists the records of a recording with their values. (BT-REC-1, BT-REC-2, BT-HEAD-4)
func (l *logReader) read(text string) conformance.Answer {
	l.known = map[uint64]bool{}
	for _, place := range strings.Fields(l.plain.scan(text).Words) {
		var kind rune
		var at, n int
		if _, err := fmt.Sscanf(place, "%c@%d+%d", &kind, &at, &n); err != nil {
			break // none
		}
		if l.has("log-one-per-line") && at > 0 && l.line > 0 && !strings.Contains(text[l.line-1:at], "\n") {
			continue
		}
		l.line = at + 1
		switch {
		case kind == 'p' || kind == 'v': // not a record
		case kind != 'h':
			l.record(kind, text[at:at+n], place)
		case n > 4095 || n > 255 && l.has("log-header-of-255"):
		default:
			l.header(text[at : at+n])
		}
		if l.has("log-reset-ends-dump") && strings.HasPrefix(strings.TrimLeft(text[at+n:], "\n"), "{{{reset}}}") {
			l.open, l.fields = "-", false
		}
	}
	if len(l.found) == 0 {
		return words("-")
	}
	return words("%s", strings.Join(l.found, " "))
}

// header processes a header.
func (l *logReader) header(text string) {
	head, err := l.plain.hline(text)
	words := strings.Split(head.Words, " ")
	if err != nil {
		if words = l.malformed(text); words == nil {
			return
		}
	}
	if l.has("log-word-of-any-header") && number(words, "w", false) == "32" {
		l.word = 32
	}
	if l.has("log-user-fields-of-any-header") && number(words, "u", false) == "1" {
		l.fields = true
	}
	switch words[0] {
	case "boot":
		l.boots(words)
	case "begin":
		l.begins(words, text)
	case "end":
		if words[1] == l.open || !l.has("log-end-by-number") {
			l.open, l.fields = "-", l.fields && l.has("log-end-keeps-user-fields")
		}
	case "lost":
		l.lost = true
		if l.has("log-header-ends-dump") || l.has("log-lost-ends-dump") {
			l.open, l.fields = "-", false
		}
	case "map", "load", "total":
		if l.has("log-header-ends-dump") {
			l.open, l.fields = "-", false
		}
	default:
		if l.has("log-unknown-header-ends-dump") {
			l.open, l.fields = "-", false
		}
	}
}

// malformed returns the words of a malformed header if the bug accepts it, else nil.
func (l *logReader) malformed(text string) []string {
	words := strings.Fields(strings.ToLower(text[3:]) + " -")
	words = slices.Insert(words, 1, "-")
	switch {
	case len(words) == 0,
		words[0] == "boot" && l.has("log-malformed-boot"),
		words[0] == "begin" && l.has("log-malformed-begin"),
		words[0] == "end" && l.has("log-malformed-end"):
		return words
	}
	return nil
}

// boots begins a boot.
func (l *logReader) boots(words []string) {
	l.boot++
	if !l.has("log-boot-keeps-dump") {
		l.open = "-"
		if !l.has("log-boot-keeps-user-fields") {
			l.fields = false
		}
	}
	l.lost = false
	clear(l.known)
	if w := number(words, "w", l.has("log-last-word")); w != "" || !l.has("log-boot-keeps-word") {
		l.word = 64
		if w == "32" && !l.has("log-ignores-word") {
			l.word = 32
		}
	}
}

// begins opens a dump.
func (l *logReader) begins(words []string, text string) {
	if l.open != "-" && l.has("log-begin-in-dump-ignored") {
		return
	}
	l.open = words[1]
	if as := strings.Fields(text); l.has("log-dump-as-written") && len(as) > 1 {
		l.open = as[1]
	}
	l.left, _ = strconv.Atoi(number(words, "n", false))
	u := number(words, "u", l.has("log-last-user-fields"))
	before := l.fields
	l.fields = u == "1" || l.has("log-any-user-fields") && u != "" || l.has("log-nonzero-user-fields") && u != "" && u != "0" ||
		l.has("log-user-fields-begin-with-1") && strings.HasPrefix(u, "1") || l.has("log-begin-keeps-user-fields") && u == "" && before
	if l.has("log-user-fields-as-written") && !strings.Contains(text, "u=1") {
		l.fields = false
	}
}

// record lists a record.
func (l *logReader) record(kind rune, text, place string) {
	of := l.open
	if kind == 'e' && !l.has("log-event-in-dump") {
		of = "-"
	}
	v, err := l.logged(kind, text)
	if err != nil && of != "-" && l.has("log-unreadable-of-no-dump") {
		of = "-"
	}
	if !l.listed(kind, v, err) {
		return
	}
	item := fmt.Sprintf("%s;boot=%d;dump=%s;", place, l.boot, of)
	if err != nil {
		item += "reject"
	} else {
		item += strings.ReplaceAll(v.String(), " ", ";")
	}
	l.found = append(l.found, item)
	if l.left--; kind != 'e' && l.left == 0 && l.has("log-n-ends-dump") {
		l.open, l.fields = "-", false
	}
}

// listed reports whether the record is listed. Without a bug, all records are.
func (l *logReader) listed(kind rune, v conformance.Value, err error) bool {
	address, _ := userValue(&v, 1)
	event, _ := userValue(&v, 5)
	time, hasTime := userValue(&v, 2)
	event1, event0 := kind == 'e' && err == nil && event == 1, kind == 'e' && err == nil && event == 0
	was := l.known[address]
	switch {
	case event0:
		l.known[address] = true
	case event1:
		delete(l.known, address)
	}
	old := l.last
	l.last = max(l.last, time)
	switch l.bug {
	case "log-drops-unreadable":
		return err == nil
	case "log-drops-empty":
		return err != errEmpty
	case "log-drops-outside":
		return l.open != "-" || kind == 'e'
	case "log-drops-old-times":
		return !hasTime || time >= old
	case "log-drops-events-in-dump":
		return kind != 'e' || l.open == "-"
	case "log-lost-drops":
		return kind != 'e' || !l.lost
	case "log-drops-unknown-frees":
		return !event1 || was
	case "log-drops-second-allocations":
		return !event0 || !was
	case "log-drops-unknown-events":
		return kind != 'e' || event <= 2
	case "log-frees-records":
		if kind == 'e' && event == 1 {
			l.found = slices.DeleteFunc(l.found, func(item string) bool {
				return strings.HasPrefix(item, "m") && strings.HasSuffix(item, fmt.Sprintf("user=1:%x", address))
			})
		}
	}
	return true
}

// number returns the value of the first key with this name, or of the last if last is set,
// without leading zeros; "" if there is none.
func number(words []string, name string, last bool) string {
	found := ""
	for _, word := range words[min(2, len(words)):] {
		if value, ok := strings.CutPrefix(word, name+"="); ok && (found == "" || last) {
			if found = strings.TrimLeft(value, "0"); found == "" {
				found = "0"
			}
		}
	}
	return found
}

// logged reads a record.
func (l *logReader) logged(kind rune, record string) (conformance.Value, error) {
	word, fields := l.word, l.fields || l.has("log-always-user-fields")
	switch kind {
	case 'b':
		v, err := l.plain.parseDecoded(record)
		if err == nil && word == 32 && l.has("log-word-of-decoded") && slices.Max(append(v.PCs, v.Size))>>32 != 0 {
			err = errDecoded
		}
		return v, err
	case 'e':
		if l.has("log-word-not-of-events") {
			word = 64
		}
		return l.plain.eline(record, word)
	}
	blob, err := l.plain.parseLine(record, false)
	switch {
	case err != nil:
		return conformance.Value{}, err
	case fields && l.has("log-word-not-of-user-fields"):
		word = 64
	}
	if fields {
		return l.plain.user(blob, word, false)
	}
	return l.plain.decode(blob, word)
}
