package forms

import (
	"bytes"
	"strings"
)

// field is a number of a line, with what its words say.
type field struct {
	label, raw, unit []byte // valid until the next line
	*class
	pos int // twice its index in the line; the total of a part is at an odd position
}

// scan splits a line into words and numbers. The words, with the numbers that are names, are the shape of
// the line: lines of one shape are printed by one statement about one heap. A number takes the words
// before it in its clause as its label, or else those behind it.
type scan struct {
	l      *Levels
	line   []byte
	from   int // where the label of the next number begins
	fields []field
	words  []byte // the shape
	tokens int

	carried  *class // a subject that is no heap: those behind it in the line are none either
	before   []byte // the label of the number before
	named    bool   // which is a name
	metric   []byte // the name before {labels}
	lineUnit []byte // MiB Mem : 1945.7 total
	memory   bool   // a word of memory or a unit is in the line
	numbers  int    // of the line
	lastUnit string // of its last number
	several  bool   // the number before is one of 5/7/9
	at       moment // that the words of the line say
	levels   int    // fields that may be samples
}

// number is a number that is being read.
type number struct {
	label, raw, unit []byte
	end              int
	class            *class
	part             *field // the total of which it is a part
}

const (
	maxWords = 1000 // bytes of a shape
	maxLabel = 120  // bytes of a label
)

// read scans a line.
func (s *scan) read(line []byte) {
	*s = scan{l: s.l, line: line, fields: s.fields[:0], words: s.words[:0]}
	if first, _, _ := bytes.Cut(line, []byte(" ")); len(first) < 6 && s.l.classify(bytes.TrimRight(first, ":")).why == "swap" {
		s.carried = s.l.classify([]byte("swap"))
	}
	if n := unitAt(line); n > 2 && n+1 < len(line) && line[n] == ' ' && isLetter(line[n+1]) {
		s.lineUnit = line[:n]
	}
	for i := 0; i < len(line); {
		i = s.token(i)
	}
	s.memory = s.memory || s.levels > 0 && isMemory(s.words)
}

// token reads what is at an index, and returns the index behind it.
func (s *scan) token(i int) int {
	b, c := s.line, s.line[i]
	start := i == 0 || !isLetter(b[i-1]) && !isDigit(b[i-1])
	if n := idAt(b[i:]); start && n > 0 {
		s.word(b[i : i+n])
		return i + n
	}
	if i > 1 && b[i-1] == '[' && isDigit(c) && (isLetter(b[i-2]) || isDigit(b[i-2])) { // app[123]
		if n := bytes.IndexByte(b[i:min(len(b), i+12)], ']'); n > 0 && allDigits(b[i:i+n]) {
			s.word(b[i : i+n])
			s.from = i + n + 1
			return i + n
		}
	}
	switch {
	case start && isDigit(c), start && isHex(c) && s.hexAt(i):
		if n := s.dateAt(i); n > 0 {
			return i + n
		}
		return s.numberAt(i)
	case isLetter(c):
		return s.wordAt(i)
	case c == '{':
		return s.labels(i)
	case c == ',' || c == ';' || c == '|' || c == '}' || c == '(' && !s.remark(i):
		s.from = i + 1
	}
	return i + 1
}

// word adds a word to the shape.
func (s *scan) word(w []byte) {
	if len(s.words) < maxWords {
		s.words = append(append(s.words, w[:min(len(w), 200)]...), ' ')
	}
	s.tokens++
}

var hash = []byte("#")

// wordAt reads a word: node-1, dev/1/heap and x.local are one.
func (s *scan) wordAt(i int) int {
	b, k := s.line, i
	for k < len(b) && (isLetter(b[k]) || isDigit(b[k]) || k > i && k+1 < len(b) && (b[k] == '-' || b[k] == '/' || b[k] == '.') && (isDigit(b[k+1]) || isLetter(b[k+1]))) {
		k++
	}
	s.word(b[i:k])
	return k
}

// labels reads {labels} behind the name of a metric.
func (s *scan) labels(i int) int {
	b := s.line
	if i > 0 && (isLetter(b[i-1]) || isDigit(b[i-1])) {
		if e := bytes.IndexByte(b[i:min(len(b), i+1000)], '}'); e > 0 {
			s.metric = s.label(i)
			for _, w := range bytes.FieldsFunc(b[i+1:i+e], func(c rune) bool { return c == '=' || c == '"' || c == ',' || c == ' ' }) {
				s.word(w)
			}
			i += e
		}
	}
	s.from = i + 1
	return i + 1
}

// remark reports whether a parenthesis has words only: it is a part of the label.
func (s *scan) remark(i int) bool {
	e := bytes.IndexByte(s.line[i:min(len(s.line), i+maxLabel)], ')')
	return e > 0 && !bytes.ContainsAny(s.line[i:i+e], "0123456789")
}

// label returns the words before an index.
func (s *scan) label(i int) []byte { return s.line[max(s.from, i-maxLabel):i] }

// hexAt reports whether a hexadecimal number that begins with a letter is at an index: =a1b0.
func (s *scan) hexAt(i int) bool {
	b := s.line
	if i < 2 || b[i-1] != '=' && (b[i-1] != ' ' || b[i-2] != ':') {
		return false
	}
	n := 0
	for i+n < len(b) && (isLetter(b[i+n]) || isDigit(b[i+n])) {
		n++
	}
	w := b[i : i+n]
	return n >= 3 && n <= 8 && isHexWord(w) && bytes.ContainsAny(w, "0123456789")
}

// dateAt returns the length of the date and time at an index, 0 if there is none. It is that of the line if the words
// before it say so: time=2026-11-26T00:41:50Z.
func (s *scan) dateAt(i int) int {
	if i+10 >= len(s.line) || s.line[i+4] != '-' || s.line[i+7] != '-' {
		return 0
	}
	at, n, ok := tryStamp(0, s.line[i:])
	if !ok {
		at, n, ok = tryStamp(1, s.line[i:])
	}
	if !ok {
		return 0
	}
	if s.l.classify(s.label(i)).q == uptime {
		s.at = moment{dateTime, at}
	}
	s.word(hash)
	s.from = i + n
	return n
}

// numberAt reads a number.
func (s *scan) numberAt(i int) int {
	b := s.line
	end, raw, unit, ok := scanNumber(b, i)
	if !isDigit(b[i]) {
		for end = i; end < len(b) && (isLetter(b[end]) || isDigit(b[end])); end++ {
		}
		raw, unit, ok = b[i:end], nil, true
	}
	if !ok || end+1 < len(b) && b[end] == '-' && (s.from == i && isDigit(b[end+1]) || unit == nil && isLetter(b[end+1])) { // a word, a range, 8-bit
		return s.noNumber(i, max(end, i+1))
	}
	label := s.label(i)
	if s.metric != nil && !hasLetter(label) {
		label, s.metric = s.metric, nil
	}
	if i > s.from && b[i-1] == '-' && (i-1 == s.from || b[i-2] == ' ' || b[i-2] == ':' || b[i-2] == '=') {
		raw = b[i-1 : end] // negative
	}
	n := number{label: label, raw: raw, unit: unit, end: end, class: s.l.classify(label)}
	if l := bytes.TrimRight(s.before, " "); !n.class.hit && s.named && !hasLetter(label) && bytes.LastIndexByte(l, ' ') > 0 {
		n.class = s.l.classify(l[:bytes.LastIndexByte(l, ' ')]) // free heap of node 3: 40000
	}
	s.unitBehind(&n)
	if units[strings.ToLower(string(n.unit))] > 0 && n.class.q == uptime { // runtime stats: 5 MiB
		n.class = &class{}
	}
	s.total(&n)
	if n.unit == nil {
		n.unit = s.lineUnit
	}
	s.name(&n, end)
	per := s.slash(&n, i)
	n.end = s.wordsBehind(&n)
	if per != "" {
		n.class = &class{hit: true, why: per}
	}
	s.add(&n)
	s.from = n.end
	return n.end
}

// noNumber takes a word that begins with a digit, and the port of an address.
func (s *scan) noNumber(i, end int) int {
	b := s.line
	if end < len(b) && b[end] == ':' {
		for end++; end < len(b) && isDigit(b[end]); end++ {
		}
	}
	s.word(b[i:end])
	return end
}

// slash returns why a number at i does not count if it is a rate, as 5 MB/s, or one of several, as 5/7/9; "" if it is neither.
func (s *scan) slash(n *number, i int) string {
	b := s.line
	next := byte(0)
	if n.end+1 < len(b) && b[n.end] == '/' {
		next = b[n.end+1]
	}
	s.several = s.several && b[i-1] == '/' || n.part == nil && isDigit(next)
	switch {
	case next != 0 && bytes.IndexByte([]byte("shm"), next) >= 0:
		return "a rate"
	case s.several:
		return "one of several numbers"
	}
	return ""
}

// unitBehind takes the unit behind a number, unless it is the label of the next one.
func (s *scan) unitBehind(n *number) {
	b, k := s.line, n.end
	if n.unit != nil {
		return
	}
	for k < len(b) && (b[k] == ' ' || b[k] == '"' || b[k] == '[' || b[k] == '(') {
		k++
	}
	u := unitAt(b[k:])
	if u == 0 || u == 1 && k-n.end > 1 {
		return
	}
	if e := k + u; e == len(b) || !isLetter(b[e]) && !isDigit(b[e]) && b[e] != '=' && b[e] != ':' {
		n.unit, n.end = b[k:e], e
	}
}

// total takes the total of which a number is a part: 5/7, 5 of 7 free.
func (s *scan) total(n *number) {
	b, j := s.line, n.end
	switch {
	case j+1 < len(b) && b[j] == '/':
		j++
	case bytes.HasPrefix(b[j:], []byte(" of ")):
		j += 4
	default:
		return
	}
	if !digitAt(b, j) || n.class.hit && n.class.q == none {
		return
	}
	end, raw, unit, ok := scanNumber(b, j)
	if !ok || end < len(b) && b[end] == '/' {
		return
	}
	if !n.class.hit || n.class.q == unknown { // the words behind both
		k := end
		if rest := bytes.TrimLeft(b[k:], " "); unitAt(rest) > 1 {
			k = len(b) - len(rest) + unitAt(rest)
		}
		e := k
		for e < len(b) && (isLetter(b[e]) || b[e] == ' ') {
			e++
		}
		if c := s.l.classify(b[k:e]); c.hit && c.q != unknown {
			n.class = c
		}
	}
	if q := n.class.q; !q.level() || q == unknown {
		return
	}
	if n.unit == nil {
		n.unit = unit
	}
	n.part = &field{n.label, raw, unit, &class{hit: true, q: Total, unit: n.class.unit}, 2*len(s.fields) + 1}
	n.end = end
}

// name recognizes numbers that are names, times and addresses. end is where the number itself ends.
func (s *scan) name(n *number, end int) {
	label := bytes.TrimRight(n.label, " ")
	if !n.class.hit && len(n.raw) >= 10 && !hasLetter(label) && allDigits(n.raw) {
		if _, ok := epochOf(n.raw); ok {
			n.class = &class{hit: true, q: uptime}
		}
	}
	if end < len(s.line) && s.line[end] == ':' && len(n.raw) <= 3 && (n.class.q == unknown || !n.class.hit) && isMemory(label) { // heap 1:
		n.class = &class{hit: true, q: ident}
	}
	if !isAddress(n.raw) || len(label) == 0 || !isLetter(label[len(label)-1]) {
		return
	}
	switch at := bytes.HasSuffix(label, []byte("at")) || bytes.HasSuffix(label, []byte("At")); {
	case at: // heap at 0x20001000
		n.class = &class{hit: true, q: ident}
	case n.class.hit && n.class.q != ident: // behind a word without a colon
		n.class = &class{hit: true, why: "an address"}
	}
}

func isAddress(raw []byte) bool { return len(raw) > 2 && raw[1] == 'x' }

// wordsBehind takes up to two words behind a number as its label if those before it say nothing. It
// returns the index behind what belongs to the number.
func (s *scan) wordsBehind(n *number) int {
	if n.class.hit && n.class.q != unknown || isAddress(n.raw) || n.end < len(s.line) && s.line[n.end] == ')' {
		return n.end
	}
	b, k, end := s.line, n.end, n.end
	for range 2 {
		k = afterSpaces(b, k)
		from := k
		for k < len(b) && (isLetter(b[k]) || b[k] == '(' && !digitAt(b, k+1) || b[k] == ')') {
			k++
		}
		if k < len(b) && k > from && (b[k] == '=' || b[k] == ':') { // the label of the next number
			return n.end
		}
		if k == from || digitAt(b, k) {
			break
		}
		end = k
	}
	k = afterSpaces(b, k)
	words, of := bytes.CutSuffix(b[n.end:end], []byte(" of")) // 5 MB free of 7 MB
	if end = n.end + len(words); of {
		k = end
	}
	if end == n.end || digitAt(b, k) && (hasLetter(n.label) || !wordsFollow(b[k:])) { // they belong to the next number
		return n.end
	}
	c := s.l.classify(b[n.end:end])
	if !c.hit || c.q == unknown || c.q == ident || c.q == uptime {
		return n.end
	}
	n.class = c
	for _, w := range bytes.Fields(b[n.end:end]) {
		s.word(w)
	}
	return end
}

// afterSpaces returns the index of the first character from i on that is no space.
func afterSpaces(b []byte, i int) int {
	for i < len(b) && b[i] == ' ' {
		i++
	}
	return i
}

// add adds a number to the shape, and to the fields if its words are known.
func (s *scan) add(n *number) {
	c := n.class
	s.numbers++
	s.lastUnit = string(n.unit)
	s.before, s.named = n.label, c.q == ident
	if c.q == ident {
		s.word(n.raw)
	} else {
		s.word(hash)
	}
	switch {
	case c.hit && (c.why == "swap" || c.why == "not the heap"):
		s.carried = c
	case s.carried != nil && c.q.level() && !isMemory(n.label):
		c = s.carried
	}
	if !c.hit {
		if hasLetter(n.label) {
			s.l.missed(n, s.line)
		}
		return
	}
	s.memory = s.memory || n.unit != nil || c.unit != "" || isMemory(n.label)
	s.fields = append(s.fields, field{n.label, n.raw, n.unit, c, 2 * len(s.fields)})
	if n.part != nil {
		s.fields = append(s.fields, *n.part)
		s.word(hash)
	}
	if c.q.level() {
		s.levels++
	}
}
