package forms

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tokenKind is the kind of a token of a program's own line.
type tokenKind uint8

const (
	wordToken      tokenKind = iota
	numberToken              // a number of bytes, or a time
	colonToken               // or an equals sign
	closeToken               // a parenthesis
	separatorToken           // ends what belongs together
)

// token is a part of a line. Percentages, dates, addresses and numbers with a sign are no tokens.
type token struct {
	kind   tokenKind
	mark   byte    // the separator
	text   string  // of a word or a number
	at     int     // offset of the text in the line
	labels []label // of a word
	tag    bool    // the word is in what a log puts in front
	value  int64   // of a number; -1 if it cannot be one of bytes
	unit   string  // of a number, in small letters, "" if it has none
	clock  int64   // the time of a number with days, hours and minutes, in µs
	whole  int     // index + 1 of the number of which this one is the whole: 5 / 7, 5 of 7
}

func (t *token) isBytes() bool { return t.value >= 0 && t.clock == 0 && !isTime(t.unit) }

// is reports whether a word has a class.
func (t *token) is(c class) bool {
	return slices.ContainsFunc(t.labels, func(l label) bool { return l.class&c != 0 })
}

func isTime(unit string) bool {
	return unit == "s" || unit == "sec" || unit == "secs" || unit == "seconds" || unit == "ms"
}

// maxTokens is the number of tokens of a line that are read.
const maxTokens = 256

var (
	// prefixForm is what ESP-IDF puts in front of a line, up to its tag.
	prefixForm = regexp.MustCompile(`^[EWIDV] \([^)]{1,32}\) `)
	// uptimeForm is a time with days or hours: 3 Days, 03:59:55, 0T00:05:10, 0d 01:02:03, 000+03:15:28.672
	uptimeForm = regexp.MustCompile(`^(?:(\d{1,5}) ?(?i:d|days?|t|\+),? ?)?(\d{1,4}):([0-5]\d):([0-5]\d)(?:[.,]\d{1,9})?\b`)
	// skipForm is a date, a time, a version, an address or a percentage.
	skipForm = regexp.MustCompile(`^(?:0[xX][0-9a-fA-F]+|\d{1,2}:\d\d\b|\d+(?:[-:./]\d+){2,}(?:[TZ][\d:.,Z+]*)?|\d+(?:\.\d+)? ?%|\d+-[A-Za-z]\w*|\d{1,2}[)\]]* ?[:=](?:[^:]|$)|\d+#)`)
	// numberForm is a number, with commas, points or spaces between thousands, and its unit.
	numberForm = regexp.MustCompile(`^(\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3})+|\d{1,3}(?: \d{3})+|\d{1,15}(?:\.\d{1,9})?)( ?(?:bytes?|Bytes?|BYTES?|[KMGkmg]i?[Bb]?|[Bb]|ms|s|secs?|seconds)\b)?`)
)

// lexOwn splits a line into tokens.
func lexOwn(line []byte) (tokens []token) {
	i := len(prefixForm.Find(line))
	inTag := i > 0
	for i < len(line) && len(tokens) < maxTokens {
		rest := line[i:]
		switch c := rest[0]; {
		case isLetter(c):
			n := 1
			for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
				n++
			}
			tokens = append(tokens, token{kind: wordToken, text: string(rest[:n]), at: i, labels: wordsOf(string(rest[:n])), tag: inTag})
			i += n
		case isDigit(c):
			n := 0
			if tokens, n = lexNumber(tokens, line, i); n == 0 {
				n = 1
			}
			i += n
		default:
			inTag = inTag && c != ':'
			tokens = appendMark(tokens, rest)
			i += max(1, len(rest)-len(bytes.TrimLeft(rest, " \t\"'")))
		}
	}
	return tokens
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// appendMark appends the token of a mark, if it is one.
func appendMark(tokens []token, rest []byte) []token {
	c := rest[0]
	if len(rest) > 1 && (c == '-' || c == ':') && rest[1] == c { // -- and ::
		c = '|'
	}
	switch {
	case c == ':' || c == '=':
		return append(tokens, token{kind: colonToken})
	case c == ')':
		return append(tokens, token{kind: closeToken})
	case bytes.IndexByte([]byte(",;|{}[]<>"), c) >= 0, bytes.HasPrefix(rest, []byte("- ")),
		bytes.HasPrefix(rest, []byte("/ ")) && len(tokens) > 0 && tokens[len(tokens)-1].kind == wordToken:
		return append(tokens, token{kind: separatorToken, mark: c})
	}
	return tokens
}

// lexNumber appends the number at a position, if it is one, and returns its length.
func lexNumber(tokens []token, line []byte, at int) ([]token, int) {
	rest := line[at:]
	if t, n := lexUptime(rest); n > 0 {
		if !endsInTime(tokens) { // a time of day
			return tokens, n
		}
		return append(tokens, t), n
	}
	m := numberForm.FindSubmatch(rest)
	if skip := skipForm.Find(rest); skip != nil && (m == nil || len(skip) != len(m[1])) {
		return tokens, len(skip)
	}
	if m == nil {
		return tokens, 1
	}
	n := len(m[0])
	behind := bytes.TrimLeft(rest[n:], " ")
	if len(m[2]) > 0 && m[2][0] == ' ' && bytes.HasPrefix(behind, []byte("=")) { // 5 MB=7: the name of the next number
		n, m[2] = len(m[1]), nil
	}
	if n < len(rest) && rest[n] == 'i' && (n+1 == len(rest) || rest[n+1] == ',' || rest[n+1] == ' ') { // an integer of InfluxDB
		n++
	}
	inName := func(i int) bool { return i >= 0 && i < len(line) && (isLetter(line[i]) || isDigit(line[i])) }
	if end := at + n; inName(end) || end < len(line) && line[end] == '.' && inName(end+1) {
		for inName(at+n) || at+n < len(line) && line[at+n] == '.' {
			n++
		}
		return append(tokens, token{kind: wordToken, labels: []label{{"", wordUnknown}}}), n
	}
	if at > 0 && (line[at-1] == '-' || line[at-1] == '+') && !inName(at-2) { // a difference
		return tokens, n
	}
	t := token{kind: numberToken, text: string(m[1]), unit: strings.ToLower(strings.TrimSpace(string(m[2])))}
	if t.value = amountOf(string(m[1]), t.unit); t.unit != "" && bytes.HasPrefix(behind, []byte(":")) { // 5 MB: or MB: 7
		t.value = -1
	}
	t.whole = partBefore(tokens, line[:at])
	return append(tokens, t), n
}

// lexUptime returns a time with hours, and perhaps days, and its length, 0 if there is none.
func lexUptime(text []byte) (token, int) {
	m := uptimeForm.FindSubmatch(text)
	if m == nil {
		return token{}, 0
	}
	var n [4]int64
	for k := range n {
		n[k], _ = strconv.ParseInt(string(m[k+1]), 10, 64)
	}
	seconds := ((n[0]*24+n[1])*60+n[2])*60 + n[3]
	return token{kind: numberToken, value: -1, clock: max(seconds*1e6, 1)}, len(m[0])
}

// endsInTime reports whether the last word says that a time since the boot follows.
func endsInTime(tokens []token) bool {
	k := len(tokens)
	for k > 0 && tokens[k-1].kind == colonToken {
		k--
	}
	if k == 0 || len(tokens[k-1].labels) == 0 {
		return false
	}
	labels := tokens[k-1].labels
	return labels[len(labels)-1].class == wordTime
}

// partBefore returns the index + 1 of the number of which one that follows is the whole: a slash or "of"
// stands between them. It returns 0 if there is none.
func partBefore(tokens []token, before []byte) int {
	k := len(tokens) - 1
	if k < 0 || !partOf(tokens[k], before) {
		return 0
	}
	for k >= 0 && tokens[k].kind != numberToken {
		k--
	}
	if k < 0 || tokens[k].whole > 0 {
		return 0
	}
	return k + 1
}

// partOf reports whether a slash or "of" stands between a number and what comes.
func partOf(last token, before []byte) bool {
	before = bytes.TrimRight(before, " ")
	return last.kind == numberToken && bytes.HasSuffix(before, []byte("/")) ||
		last.kind == wordToken && len(last.labels) == 1 && last.labels[0].class == wordOf
}

// amountOf returns a number with a unit in bytes, or a time in its unit; -1 if it is not clear what the
// number is: 41.232 and 41 232 may be thousands only in front of "bytes".
func amountOf(text, unit string) int64 {
	whole := unit == "b" || strings.HasPrefix(unit, "byte")
	point, space := strings.IndexByte(text, '.'), strings.Contains(text, " ")
	thousands := space || strings.Count(text, ".") > 1 || point > 0 && point <= 3 && len(text) == point+4
	if thousands && !whole && (space || unit == "") || point > 0 && unit == "" && !thousands {
		return -1
	}
	if thousands && whole {
		text = strings.NewReplacer(".", "", " ", "").Replace(text)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return -1
	}
	if unit != "" && !isTime(unit) {
		v *= unitBytes(unit[0])
	}
	if !(v >= 0 && v < 1<<53) {
		return -1
	}
	return int64(math.Round(v))
}

// unitBytes returns the factor of a unit that begins with a letter.
func unitBytes(c byte) float64 {
	switch c {
	case 'K', 'k':
		return 1 << 10
	case 'M', 'm':
		return 1 << 20
	case 'G', 'g':
		return 1 << 30
	}
	return 1
}
