package forms

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textMarks finds the texts of tables/texts.tsv: its columns are the number of lines whose numbers of bytes are none, "all" of
// them, or "boot" for a banner, what the report is, and the texts that are in it, in this order.
var signatures, textMarks = func() (list [][]string, x *index) {
	list, x = rows("texts"), &index{}
	for i, row := range list {
		for k, text := range row[2:] {
			x.add(text, i<<8|k)
		}
	}
	return list, x
}()

// IsBanner reports whether a line is a boot banner.
func IsBanner(line []byte) (is bool) {
	textMarks.find(line, func(of int) bool {
		is = is || signatures[of>>8][0] == "boot"
		return !is
	})
	return is
}

// candidate is a number that may be a level, although it does not count.
type candidate struct {
	label, first, last  string // its words, and how it is spelled in the first and the last line
	firstLine, lastLine []byte
	why                 string
	q                   Quantity // as its words say
	unit                string
	count, changes      int
}

const (
	// maxUnknown is the number of labels without a known word, maxCandidate the bytes of a line that are kept.
	maxUnknown   = 64
	maxCandidate = 400
)

func (c *candidate) see(label, raw, line []byte, unit string) {
	if line = line[:min(len(line), maxCandidate)]; c.count == 0 {
		*c = candidate{label: string(label), first: string(raw), firstLine: bytes.Clone(line), unit: unit, q: c.q, why: c.why}
	}
	c.count++
	if c.last != string(raw) {
		c.last = string(raw)
		c.changes++
	}
	c.lastLine = append(c.lastLine[:0], line...)
}

// refusals is what tells why a log has no samples.
type refusals struct {
	found         []int // texts of each signature
	quiet         int64 // the last line of a report without levels
	bare          int   // lines of numbers only
	bareColumns   int
	bareLines     candidate
	bareSeparator string         // of the columns, "" for spaces
	dropped       int            // samples of damaged lines
	unknown       []candidate    // without a known word
	known         map[string]int // index in unknown, by label
}

// mark looks for the texts of signatures, and returns whether the line is a banner.
func (r *refusals) mark(b []byte, line int64) (boots bool) {
	textMarks.find(b, func(of int) bool {
		i, k := of>>8, of&255
		if r.found == nil {
			r.found = make([]int, len(signatures))
		}
		if r.found[i] == k {
			r.found[i]++
		}
		n, _ := strconv.ParseInt(signatures[i][0], 10, 64)
		switch {
		case signatures[i][0] == "boot":
			boots, r.found[i] = true, 0
		case signatures[i][0] == "all":
			n = 1 << 40
			fallthrough
		case n > 0 && k == 0:
			r.quiet = max(r.quiet, line+n-1)
		}
		return true
	})
	return boots
}

// missed takes a number whose words are not known.
func (r *refusals) missed(n *field, line []byte) {
	i, known := r.known[string(n.label)]
	if !known {
		if len(r.unknown) == maxUnknown {
			return
		}
		if i = len(r.unknown); i == 0 {
			r.known = map[string]int{}
		}
		r.known[string(n.label)] = i
		r.unknown = append(r.unknown, candidate{})
	}
	r.unknown[i].see(n.label, n.raw, line, string(n.unit))
}

// Is returns what the log is if it is a report without levels, "" if that is not known.
func (l *Levels) Is() string {
	for i, n := range l.found {
		if n == len(signatures[i])-2 {
			return signatures[i][1]
		}
	}
	return ""
}

// Refusal returns what is missing in a log that has no samples: why the number that is nearest to a level
// does not count, or which words are not known, and if there is one, an expression for --heap-line that
// reads it, with what it reads.
func (l *Levels) Refusal(refused []*Series) string {
	if is := l.Is(); is != "" {
		return is
	}
	if l.bare > 2 && l.bare*3 > int(l.order) {
		return l.bareText()
	}
	if c := nearest(refused); c != nil {
		return strings.TrimSuffix(fmt.Sprintf("%q: %s; %s", clean(c.label), c.why, c.offer()), "; ")
	}
	var list []string
	var best *candidate
	for i := range l.unknown {
		c := &l.unknown[i]
		if c.changes < 2 || !isText(c.label) {
			continue
		}
		if len(list) < 4 {
			list = append(list, fmt.Sprintf("%q (%s to %s)", clean(c.label), c.first, c.last))
		}
		if best == nil && c.large() {
			best = c
		}
	}
	if list == nil {
		return l.nothing()
	}
	text := "no word of memory before a number: which is free or used? " + strings.Join(list, ", ")
	if best != nil {
		text = strings.TrimSuffix(text+"; "+best.offer(), "; ")
	}
	return text
}

// nothing returns why there are no candidates either.
func (l *Levels) nothing() string {
	for _, r := range l.series {
		if r.class.q.level() {
			return fmt.Sprintf("%q is a %s: no number is what is free or used", clean(r.Label), r.class.q)
		}
	}
	return Nothing
}

// Nothing is the Refusal of a log in which no number looks like one of memory.
const Nothing = "no line says how many bytes are free or used"

// bareText describes rows of numbers.
func (l *Levels) bareText() string {
	text := fmt.Sprintf("rows of %d numbers without names: which column is free or used, and in which unit?", l.bareColumns)
	if l.bareColumns == 1 {
		text = "a column without a name: is it what is free or used, and in which unit?"
	}
	expr := `^` + strings.Repeat(`\S+ +`, l.bareColumns-1) + `(?P<free>\d+)$`
	if sep := l.bareSeparator; sep != "" {
		expr = `^(?:[^` + sep + `]*` + sep + `){` + strconv.Itoa(l.bareColumns-1) + `}(?P<free>[\d.]+)$`
	}
	if unit := l.bareLines.unit; unit != "" {
		expr = strings.Replace(expr, `\d+)`, `[\d.,]+ ?`+regexp.QuoteMeta(unit)+`)`, 1)
	}
	if l.bareColumns == 7 {
		text, expr = text+" /proc/PID/statm has 7, in pages, the second in use:", `^\d+ (?P<used_4096>\d+)( \d+){5}$`
	}
	first, last := reads(expr, l.bareLines.firstLine), reads(expr, l.bareLines.lastLine)
	if first < 0 || last < 0 {
		return text
	}
	switch l.bareColumns {
	case 7:
	case 1:
		text += " If it is what is free, in bytes:"
	default:
		text += " If the last one is what is free, in bytes:"
	}
	return fmt.Sprintf("%s --heap-line '%s', which reads %.0f and at last %.0f bytes", text, expr, first, last)
}

// nearest returns the refused series that is nearest to a level, nil if there is none.
func nearest(refused []*Series) (best *candidate) {
	most := 0
	for _, s := range refused {
		n := s.Total
		if s.Quantity != none || s.shown.q.level() {
			n *= 4
		}
		if c := &s.shown; n > most && c.count > 0 && isText(c.label) {
			best, most = c, n
			best.why = s.Why
		}
	}
	return best
}

// isText reports whether a label is text, and not of a binary file.
func isText(label string) bool {
	return utf8.ValidString(label) && !strings.ContainsFunc(label, func(c rune) bool { return unicode.IsControl(c) && c != '\t' })
}

// large reports whether a number may be one of bytes: it has a unit of bytes, or four digits.
func (c *candidate) large() bool {
	return units[strings.ToLower(c.unit)] > 0 || len(strings.Trim(c.first, ".,")) >= 4 && !isAddress([]byte(c.first)) && c.changes > 1
}

var (
	allNumbers = regexp.MustCompile(`0[xX][0-9a-fA-F]+|\d+`)
	wordsAhead = regexp.MustCompile(`(?:[\pL_$][\pL\d_$.]*[^\pL\d]{0,4}){1,3}$`)
)

// offer returns an expression for --heap-line that reads the number, and what it reads from the first and the
// last line. It returns "" for what is no level, and for an expression that does not read both.
func (c *candidate) offer() string {
	group, unit := string(c.q), strings.ToLower(c.unit)
	switch {
	case c.q == unknown || c.q == none && c.why == "":
		group = "free"
	case c.q != Free && c.q != Used, c.changes < 2 && isAddress([]byte(c.first)):
		return ""
	}
	digits := `[\d.,]+(?:[eE][+-]?\d+)?`
	if allDigits([]byte(c.first)) && allDigits([]byte(c.last)) {
		digits = `\d+`
	} else if isAddress([]byte(c.first)) {
		digits = `0[xX][0-9a-fA-F]+`
	}
	switch factor, known := units[unit]; {
	case known && factor > 1:
		digits += ` ?` + regexp.QuoteMeta(c.unit)
	case unit == "page" || unit == "pages":
		group += "_4096"
	case unit == "word" || unit == "words":
		group += "_4"
	case known && factor == 0:
		return ""
	case c.why == fractions:
		group += "_KB"
	}
	ahead := wordsAhead.FindString(strings.TrimRight(c.label, "0123456789-+"))
	if ahead == "" {
		return ""
	}
	expr := strings.ReplaceAll(allNumbers.ReplaceAllString(regexp.QuoteMeta(ahead), `\d+`), "'", ".") + `(?P<` + group + `>` + digits + `)`
	first, last := reads(expr, c.firstLine), reads(expr, c.lastLine)
	if first < 0 || last < 0 {
		return ""
	}
	what, _, _ := strings.Cut(group, "_")
	return fmt.Sprintf("if it is what is %s: --heap-line '%s', which reads %.0f and at last %.0f bytes", what, expr, first, last)
}

// fractions is why numbers with a point do not count.
const fractions = "fractions without a unit"

// reads returns what an expression reads from a line, negative if that is nothing.
func reads(expr string, line []byte) float64 {
	e, err := regexp.Compile(expr)
	if err != nil {
		return -1
	}
	l := NewLevels(e)
	l.Line(Line{Text: line, Number: 1})
	heaps, _ := l.Heaps()
	if len(heaps) != 1 {
		return -1
	}
	r := heaps[0].Reports[0]
	return max(r.Free, r.Used)
}

// clean returns a label without signs at its ends.
func clean(label string) string {
	return strings.Join(strings.Fields(strings.Trim(label, " ,;:=\"'{}[]()|")), " ")
}
