package forms

import (
	"bytes"
	"math"
	"strconv"
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
	lastUnit []byte // of its last number
	several  bool   // the number before is one of 5/7/9
	at       moment // that the words of the line say
	levels   int    // fields that may be samples
}

const (
	maxWords = 1000 // bytes of a shape
	maxLabel = 120  // bytes of a label
)

// read scans a line.
func (s *scan) read(line []byte) {
	*s = scan{l: s.l, line: line, fields: s.fields[:0], words: s.words[:0]}
	if first, _, _ := bytes.Cut(line, []byte(" ")); len(first) < 6 && s.l.classify(bytes.TrimRight(first, ":")).why == "swap" { // SWP | tot 2.0G
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
	start := i == 0 || !isAlnum(b[i-1])
	if start && isHex(c) {
		if n := idAt(b[i:]); n > 0 {
			return s.word(i, i+n)
		}
	}
	switch {
	case i > 1 && b[i-1] == '[' && isDigit(c) && isAlnum(b[i-2]) && bytes.IndexByte(b[i:min(len(b), i+12)], ']') == span(b, i, isDigit)-i: // app[123]
		s.from = s.word(i, span(b, i, isDigit)) + 1
		return s.from - 1
	case start && isDigit(c), start && isHex(c) && s.hexAt(i):
		if n := s.dateAt(i); n > 0 {
			return i + n
		}
		return s.numberAt(i)
	case isLetter(c): // node-1, dev/1/heap and x.local are one word
		k := i
		for k < len(b) && (isAlnum(b[k]) || k > i && k+1 < len(b) && (b[k] == '-' || b[k] == '/' || b[k] == '.') && isAlnum(b[k+1])) {
			k++
		}
		return s.word(i, k)
	case c == '{':
		return s.labels(i)
	case c == ',' || c == ';' || c == '|' || c == '}' || c == '(' && !s.remark(i):
		s.from = i + 1
	}
	return i + 1
}

// word adds a word to the shape, and returns its end.
func (s *scan) word(i, end int) int {
	s.add(s.line[i:end])
	return end
}

func (s *scan) add(word []byte) {
	if len(s.words) < maxWords {
		s.words = append(append(s.words, word[:min(len(word), 200)]...), ' ')
	}
	s.tokens++
}

var hash = []byte("#")

// labels reads {labels} behind the name of a metric.
func (s *scan) labels(i int) int {
	b := s.line
	if e := bytes.IndexByte(b[i:min(len(b), i+1000)], '}'); e > 0 && i > 0 && isAlnum(b[i-1]) {
		s.metric = s.label(i)
		for _, w := range bytes.FieldsFunc(b[i+1:i+e], func(c rune) bool { return strings.ContainsRune(`=", `, c) }) {
			s.add(w)
		}
		i += e
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
	w := b[i:span(b, i, isAlnum)]
	return i > 1 && (b[i-1] == '=' || b[i-1] == ' ' && b[i-2] == ':') && len(w) >= 3 && len(w) <= 8 && only(w, isHex) && bytes.ContainsAny(w, "0123456789")
}

// dateAt returns the length of the date and time at an index, 0 if there is none. It is that of the line if the words
// before it say so: time=2026-11-26T00:41:50Z.
func (s *scan) dateAt(i int) int {
	if i+10 >= len(s.line) || s.line[i+4] != '-' || s.line[i+7] != '-' {
		return 0
	}
	for form := range 2 {
		if at, n, ok := tryStamp(form, s.line[i:]); ok {
			if s.l.classify(s.label(i)).q == uptime {
				s.at = moment{dateTime, at}
			}
			s.add(hash)
			s.from = i + n
			return n
		}
	}
	return 0
}

// numberAt reads a number.
func (s *scan) numberAt(i int) int {
	b := s.line
	end, raw, unit, ok := scanNumber(b, i)
	if !isDigit(b[i]) {
		end = span(b, i, isAlnum)
		raw, unit, ok = b[i:end], nil, true
	}
	if !ok || end+1 < len(b) && b[end] == '-' && (s.from == i && isDigit(b[end+1]) || unit == nil && isLetter(b[end+1])) { // a word, a range, 8-bit
		if end = max(end, i+1); end < len(b) && b[end] == ':' { // the port of an address
			end = span(b, end+1, isDigit)
		}
		return s.word(i, end)
	}
	n := field{label: s.label(i), raw: raw, unit: unit}
	if s.metric != nil && !hasLetter(n.label) {
		n.label, s.metric = s.metric, nil
	}
	if i > s.from && b[i-1] == '-' && (i-1 == s.from || bytes.IndexByte([]byte(" :="), b[i-2]) >= 0) {
		n.raw = b[i-1 : end] // negative
	}
	n.class = s.l.classify(n.label)
	if l := bytes.TrimRight(s.before, " "); !n.class.hit && s.named && !hasLetter(n.label) && bytes.LastIndexByte(l, ' ') > 0 {
		n.class = s.l.classify(l[:bytes.LastIndexByte(l, ' ')]) // free heap of node 3: 40000
	}
	k := s.unitBehind(&n, end)
	if units[strings.ToLower(string(n.unit))] > 0 && n.q == uptime { // runtime stats: 5 MiB
		n.class = &class{}
	}
	part, k := s.total(&n, k)
	if n.unit == nil {
		n.unit = s.lineUnit
	}
	s.name(&n, end)
	next := byte(0)
	if k+1 < len(b) && b[k] == '/' {
		next = b[k+1]
	}
	s.several = s.several && b[i-1] == '/' || part == nil && isDigit(next)
	s.from = s.wordsBehind(&n, k)
	switch {
	case next != 0 && bytes.IndexByte([]byte("shm"), next) >= 0:
		n.class = &class{hit: true, why: "a rate"}
	case s.several: // 5/7/9
		n.class = &class{hit: true, why: "one of several numbers"}
	}
	if !s.exact(&n, i) {
		s.put(&n, part)
	}
	return s.from
}

// exact reports whether a number in parentheses is the one before without its larger unit, 4.92MB (5156768 bytes), which it
// then replaces.
func (s *scan) exact(n *field, i int) bool {
	if len(s.fields) == 0 || len(n.label) > 0 || i == 0 || s.line[i-1] != '(' || units[strings.ToLower(string(n.unit))] != 1 {
		return false
	}
	last := &s.fields[len(s.fields)-1]
	rounded, _ := strconv.ParseFloat(string(last.raw), 64)
	bytes, _ := strconv.ParseFloat(string(n.raw), 64)
	if factor := units[strings.ToLower(string(last.unit))]; factor <= 1 || math.Abs(rounded*factor-bytes) > bytes/64 {
		return false
	}
	last.raw, last.unit = n.raw, n.unit
	s.add(hash)
	return true
}

// unitBehind takes the unit behind a number that ends at an index, unless it is the label of the next one. It returns the
// index behind it.
func (s *scan) unitBehind(n *field, end int) int {
	b := s.line
	k := span(b, end, func(c byte) bool { return c == ' ' || c == '"' || c == '[' || c == '(' })
	u := unitAt(b[k:])
	if e := k + u; n.unit == nil && u > 0 && (u > 1 || k-end < 2) && (e == len(b) || !isAlnum(b[e]) && b[e] != '=' && b[e] != ':') {
		n.unit = b[k:e]
		return e
	}
	return end
}

// total takes the total of which a number is a part, behind j: 5/7, 5 of 7 free.
func (s *scan) total(n *field, j int) (part *field, end int) {
	b, k := s.line, j
	switch {
	case j+1 < len(b) && b[j] == '/':
		k++
	case bytes.HasPrefix(b[j:], []byte(" of ")):
		k += 4
	}
	if k == j || !digitAt(b, k) || n.hit && n.q == none {
		return nil, j
	}
	end, raw, unit, ok := scanNumber(b, k)
	if !ok || end < len(b) && b[end] == '/' {
		return nil, j
	}
	if !n.hit || n.q == unknown { // the words behind both
		k := end
		if rest := bytes.TrimLeft(b[k:], " "); unitAt(rest) > 1 {
			k = len(b) - len(rest) + unitAt(rest)
		}
		if c := s.l.classify(b[k:span(b, k, func(c byte) bool { return isLetter(c) || c == ' ' })]); c.hit && c.q != unknown {
			n.class = c
		}
	}
	if !n.q.level() || n.q == unknown {
		return nil, j
	}
	if n.unit == nil {
		n.unit = unit
	}
	return &field{n.label, raw, unit, &class{hit: true, q: Total, unit: n.class.unit}, 2*len(s.fields) + 1}, end
}

// name recognizes numbers that are names, times and addresses. end is where the number itself ends.
func (s *scan) name(n *field, end int) {
	label := bytes.TrimRight(n.label, " ")
	if !n.hit && len(n.raw) >= 10 && !hasLetter(label) && allDigits(n.raw) {
		if _, ok := epochOf(n.raw); ok {
			n.class = &class{hit: true, q: uptime}
		}
	}
	heap := end < len(s.line) && s.line[end] == ':' && len(n.raw) <= 3 && (n.q == unknown || !n.hit) && isMemory(label) // heap 1:
	word := isAddress(n.raw) && len(label) > 0 && isLetter(label[len(label)-1])
	switch at := bytes.HasSuffix(label, []byte("at")) || bytes.HasSuffix(label, []byte("At")); {
	case heap, word && at: // heap at 0x20001000
		n.class = &class{hit: true, q: ident}
	case word && n.hit && n.q != ident: // behind a word without a colon
		n.class = &class{hit: true, why: "an address"}
	}
}

// wordsBehind takes up to two words behind a number that ends at an index as its label if those before it say nothing. It
// returns the index behind what belongs to the number.
func (s *scan) wordsBehind(n *field, from int) int {
	b, k, end := s.line, from, from
	if n.hit && n.q != unknown || isAddress(n.raw) || from < len(b) && b[from] == ')' {
		return from
	}
	for range 2 {
		first := span(b, k, isSpace)
		for k = first; k < len(b) && (isLetter(b[k]) || b[k] == '(' && !digitAt(b, k+1) || b[k] == ')'); k++ {
		}
		if k < len(b) && k > first && (b[k] == '=' || b[k] == ':') { // the label of the next number
			return from
		}
		if k == first || digitAt(b, k) {
			break
		}
		end = k
	}
	k = span(b, k, isSpace)
	label, of := bytes.CutSuffix(b[from:end], []byte(" of")) // 5 MB free of 7 MB
	if end = from + len(label); of {
		k = end
	}
	if end == from || digitAt(b, k) && (hasLetter(n.label) || !wordsFollow(b[k:])) { // they belong to the next number
		return from
	}
	c := s.l.classify(label)
	if !c.hit || c.q == unknown || c.q == ident || c.q == uptime {
		return from
	}
	n.class = c
	for _, w := range bytes.Fields(label) {
		s.add(w)
	}
	return end
}

// wordsFollow reports whether words stand behind the number at the start of b: 5 total 3 free.
func wordsFollow(b []byte) bool {
	end, _, unit, ok := scanNumber(b, 0)
	rest := bytes.TrimLeft(b[end:], " ")
	if ok && unit == nil {
		rest = rest[unitAt(rest):]
	}
	return hasLetter(rest)
}

// put adds a number to the shape, and to the fields if its words are known.
func (s *scan) put(n, part *field) {
	s.numbers++
	s.before, s.named, s.lastUnit = n.label, n.q == ident, n.unit
	if n.q == ident {
		s.add(n.raw)
	} else {
		s.add(hash)
	}
	switch {
	case n.hit && (n.why == "swap" || n.why == "not the heap"):
		s.carried = n.class
	case s.carried != nil && n.q.level() && !isMemory(n.label):
		n.class = s.carried
	}
	if !n.hit {
		if hasLetter(n.label) {
			s.l.missed(n, s.line)
		}
		return
	}
	s.memory = s.memory || n.unit != nil || n.class.unit != "" || isMemory(n.label)
	if n.q.level() {
		s.levels++
	}
	n.pos = 2 * len(s.fields)
	if s.fields = append(s.fields, *n); part != nil {
		s.fields = append(s.fields, *part)
		s.add(hash)
	}
}

// idAt returns the length of a UUID, a MAC address or a hexadecimal name of at least ten digits at the start of b, 0 if
// there is none.
func idAt(b []byte) int {
	const mac = 17
	n := span(b[:min(len(b), 40)], 0, func(c byte) bool { return isHex(c) || c == '-' })
	switch {
	case n < len(b) && isAlnum(b[n]):
	case n == 36 && b[8] == '-' && b[13] == '-' && b[18] == '-' && b[23] == '-':
		return n
	case n >= 10 && bytes.IndexByte(b[:n], '-') < 0 && len(bytes.Trim(b[:n], "0123456789")) > 1:
		return n
	}
	if len(b) < mac || b[2] != ':' && b[2] != '-' {
		return 0
	}
	for k := range mac {
		if k%3 == 2 && b[k] != b[2] || k%3 != 2 && !isHex(b[k]) {
			return 0
		}
	}
	return mac
}
