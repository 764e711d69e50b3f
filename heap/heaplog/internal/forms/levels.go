package forms

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var lineForms = rows("lines")

// Levels reads samples from the lines of logs: numbers of bytes that are free, used and so on, each with
// its identity: the words of its line that are no numbers, its position among the numbers, and what
// lines before it say of whose it is. See [Levels.Heaps].
type Levels struct {
	store
	scan    scan
	classes map[string]*class
	named   []*regexp.Regexp // lines that the user names
	forms   []*regexp.Regexp
	stamper
	now      moment // the last time that lines above say
	clocks          // since the boot
	lastUp   moment // of a line above
	lastUpAt int64  // the order of that line
	context  string // of the lines that follow, as a heading says
	owner    string // of lines that are indented more
	indent   int    // of the line of owner, -1 if there is none
	timed    bool   // the line of owner begins with a time
	table    *table
	asked    []byte   // the line before, if it is a command that may be answered by a number
	heading  []string // the words of the line before, if it may be the first of two lines of names
	query    query
	refusals
}

// maxClasses is the number of labels whose class is cached.
const maxClasses = 1 << 16

// NewLevels returns a reader. Lines that match named are read by its groups; it may be nil.
func NewLevels(named *regexp.Regexp) *Levels {
	l := &Levels{classes: map[string]*class{}, indent: -1}
	l.scan.l = l
	if named != nil {
		l.named = append(l.named, named)
	}
	for _, f := range lineForms {
		l.forms = append(l.forms, regexp.MustCompile(f[2]))
	}
	l.begin()
	return l
}

func (l *Levels) classify(label []byte) *class {
	if c, ok := l.classes[string(label)]; ok {
		return c
	}
	c := classOf(string(label))
	if len(l.classes) < maxClasses {
		l.classes[string(label)] = c
	}
	return c
}

// maxBetween is the number of lines in which a time since the boot counts for lines without one.
const maxBetween = 8

// NewLog begins a log.
func (l *Levels) NewLog() {
	l.lastUp = moment{}
	l.query = query{}
	l.now, l.context, l.owner, l.indent, l.table, l.heading = moment{}, "", "", -1, nil, nil
	l.clocks.reset()
	l.file++
	l.quiet = 0
}

// Boot begins a boot.
func (l *Levels) Boot() {
	l.boot++
	l.clocks.reset()
	l.lastUp = moment{}
}

// Line reads a line. It returns the number of samples.
func (l *Levels) Line(line Line) (n int) {
	l.line = line.Number
	l.order++
	if len(line.Text) > maxLine && !bytes.HasPrefix(line.Text, []byte(queryStart)) {
		l.tooLong++
		return 0
	}
	before := l.samples
	if b := bytes.TrimRight(line.Text, " \r\t"); len(b) > 0 {
		if l.mark(b, l.line) {
			l.Boot()
		}
		l.read(b)
	} else {
		l.heading = nil
		if l.table != nil && l.table.separator == 0 {
			l.table = nil
		}
	}
	return l.samples - before
}

// read reads a line that is not empty.
func (l *Levels) read(b []byte) {
	if l.answers(b) {
		return
	}
	if l.table != nil && l.table.separator != 0 && l.row(b, &stamped{}) || l.header(b) {
		return
	}
	s := l.stamp(b)
	l.tick(&s)
	switch {
	case len(s.rest) == 0:
	case l.byGroups(&s):
	case l.table != nil && l.row(s.rest, &s):
	case len(s.rest) != len(b) && l.header(s.rest):
	default:
		l.prose(b, &s)
	}
}

// tick takes the times of a line. A line without one has that of the lines above.
func (l *Levels) tick(s *stamped) {
	if s.wall.clock != noClock {
		l.now = s.wall
	} else {
		s.wall = l.now
	}
	switch {
	case s.up.clock != noClock:
		if l.clocks.tick(s.up.at, s.form); s.whole {
			l.now = s.up
		}
		l.lastUp, l.lastUpAt = s.up, l.order
	case l.order-l.lastUpAt <= maxBetween:
		s.up = l.lastUp
	}
}

// timeOf takes a time inside a line.
func (l *Levels) timeOf(raw []byte, label string, s *stamped) bool {
	if at, ok := epochOf(raw); ok {
		s.wall = at
		return true
	}
	v, bad, _ := readColumn([]string{string(raw)}, bytesScale)
	if bad[0] {
		return false
	}
	if label = strings.ToLower(label); strings.Contains(label, "ms") || strings.Contains(label, "milli") {
		v[0] *= 1e-3
	}
	s.up = moment{bootTime, v[0]}
	l.clocks.tick(v[0], -1)
	return true
}

// prose reads a line of words and numbers.
func (l *Levels) prose(b []byte, s *stamped) {
	indent := 0
	for i := len(b) - len(s.rest) - 1; i >= 0 && b[i] == ' '; i-- {
		indent++
	}
	if timed := len(s.rest) < len(b); indent <= l.indent || timed != l.timed { // a damaged time changes what is indented
		l.owner, l.indent, l.timed = "", -1, timed
	}
	if bytes.HasPrefix(s.rest, []byte("=====")) {
		l.context = ""
	}
	c := &l.scan
	c.read(s.rest)
	weak := slices.ContainsFunc(c.fields, func(f field) bool { return f.weak }) && !slices.ContainsFunc(c.fields, func(f field) bool { return f.q.level() && !f.weak })
	if c.levels > 0 && l.context+l.owner == "" && (!c.memory || weak && !hasMemory(s.rest, true)) {
		for i := range c.fields {
			c.fields[i].class = &class{hit: true, why: "no word of memory in the line"}
		}
		c.levels = 0
	}
	if l.answer(s) {
		return
	}
	if len(c.fields) == 0 && c.tokens > 0 && c.tokens == c.numbers {
		l.numbers(b, s)
	}
	context := strings.TrimSpace(l.context + " " + l.owner)
	timed := l.clock(s)
	if c.levels == 0 && (l.heads(s.rest) || timed) {
		return
	}
	for i := range c.fields {
		f := &c.fields[i]
		switch f.q {
		case ident:
			if c.levels > 0 {
				l.owner, l.indent = string(f.raw), indent
			}
		case uptime:
		default:
			l.put(s, identity{context: context, words: string(c.words), tokens: c.tokens}, f)
		}
	}
}

// numbers takes a line of numbers alone.
func (l *Levels) numbers(b []byte, s *stamped) {
	l.bare++
	l.bareColumns, l.bareSeparator = l.scan.tokens, ""
	for _, sep := range []string{";", ","} {
		if row := strings.TrimSpace(string(b)); strings.Contains(row, sep) && !groups(row, sep[0]) {
			l.bareColumns, l.bareSeparator = strings.Count(row, sep)+1, sep
			s.rest = b
			break
		}
	}
	l.bareLines.see(nil, nil, s.rest, l.scan.lastUnit)
}

// answer reads a line with a number only, below a command whose words say what it is: gc.mem_free().
func (l *Levels) answer(s *stamped) bool {
	c := &l.scan
	asked := l.asked
	l.asked = nil
	if c.tokens == 1 && c.numbers == 1 && asked != nil {
		_, raw, unit, _ := scanNumber(s.rest, 0)
		l.put(s, identity{words: string(asked), tokens: 1}, &field{asked, raw, unit, l.classify(asked), 0})
		return true
	}
	if c.numbers == 0 && len(s.rest) < maxLabel && bytes.IndexByte(s.rest, '(') > 0 {
		if k := l.classify(s.rest); k.q == Free || k.q == Used {
			l.asked = bytes.Clone(s.rest)
		}
	}
	return false
}

// clock takes the time that is among the words of a line. It reports whether there is one, which is then
// that of the lines below if the line has no level.
func (l *Levels) clock(s *stamped) bool {
	c := &l.scan
	if isDigit(s.rest[0]) && c.levels > 0 && len(c.fields[0].label) > 0 && s.up.clock == noClock && s.wall.clock == noClock {
		v, _ := strconv.ParseFloat(string(s.rest[:len(s.rest)-len(bytes.TrimLeft(s.rest, "0123456789"))]), 64)
		s.up = moment{noUnit, v} // a bare number at the head
	}
	if c.at.clock != noClock {
		if s.wall = c.at; c.levels == 0 {
			l.now = c.at
		}
		return true
	}
	for _, unit := range []bool{true, false} { // one whose unit is said counts first
		for i := range c.fields {
			f := &c.fields[i]
			if f.q != uptime || bytes.Contains(bytes.ToLower(f.label), []byte("ms")) != unit || !l.timeOf(f.raw, string(f.label)+string(f.unit), s) {
				continue
			}
			if c.levels == 0 && s.up.clock == bootTime && (l.now.clock == noClock || l.now.clock == bootTime) {
				l.now = s.up
			}
			return true
		}
	}
	return false
}

// heads reports whether a line without a level says whose the next ones are.
func (l *Levels) heads(b []byte) bool {
	c := &l.scan
	for i := range c.fields {
		if f := &c.fields[i]; f.q == ident && isMemory(f.label) && !slices.ContainsFunc(labelWords(string(f.label)), func(w string) bool { return w == "pid" || w == "id" }) { // heap at 0x20001000, heap summary for capabilities 0x804
			l.context = string(f.raw)
			if bytes.Contains(b, []byte("capabilities")) {
				l.context = capabilities(l.context)
			}
			return true
		}
	}
	if isMapping(b) { // of smaps
		f := bytes.Fields(b)
		l.context = string(f[len(f)-1])
		return true
	}
	last := b[len(b)-1]
	if last == '{' || last == '}' {
		l.context = ""
	}
	if (last == ':' || last == '{') && len(c.fields) == 0 && c.tokens <= 6 {
		if k := l.classify(b); k.hit && k.q == unknown {
			l.context = heapIn(string(b))
			if l.context == "" {
				l.context = string(bytes.TrimRight(c.words, " "))
			}
			return true
		}
	}
	return false
}

// isMapping reports whether a line begins as those of /proc/PID/maps: 7f12a000-7f12b000 with a space behind it.
func isMapping(b []byte) bool {
	j := bytes.IndexByte(b, '-')
	if j < 8 || j > 16 || !isHexWord(b[:j]) {
		return false
	}
	k := j + 1
	for k < len(b) && isHex(b[k]) {
		k++
	}
	return k-j > 8 && k < len(b) && b[k] == ' '
}

// clocks are times since the boot, by the form of the stamp, -1 for those among words. One that begins
// again shows a boot, unless 32 bits of ms or µs are full.
type clocks struct {
	last     map[int]float64
	restarts int // of all logs
	ticks    int
}

func (c *clocks) reset() { clear(c.last) }

func (c *clocks) tick(at float64, form int) {
	if c.last == nil {
		c.last = map[int]float64{}
	}
	c.ticks++
	if last, ok := c.last[form]; ok && at < last-0.5 && wrap(bootTime, last, at) == 0 {
		c.restarts++
		clear(c.last)
	}
	c.last[form] = at
}

// wrap returns after how many seconds a clock has begun again, 0 if it has not by being full.
func wrap(c clock, last, at float64) float64 {
	for _, full := range full[c] {
		if last > 0.98*full && last <= full && at < 0.02*full || c == dayTime && last-at > full/2 {
			return full
		}
	}
	return 0
}
