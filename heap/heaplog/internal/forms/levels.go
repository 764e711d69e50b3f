package forms

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Levels reads samples from the lines of logs: numbers of bytes that are free, used and so on, each with
// its identity: the words of its line that are no numbers, its position among the numbers, and what
// lines before it say of whose it is. See [Levels.Heaps].
type Levels struct {
	store
	scan    scan
	classes map[string]*class
	named   *regexp.Regexp // lines that the user names, or nil
	stamper
	inLog
	clocks
	lastUp   moment // of a line above
	lastUpAt int64  // the order of that line
	asked    []byte // the line before, if it is a command that may be answered by a number
	refusals
}

// inLog is what the lines of a log so far say of those that follow.
type inLog struct {
	now     moment   // the last time that lines above say
	context string   // as a heading says
	owner   string   // of lines that are indented more
	indent  int      // of the line of owner, -1 if there is none
	timed   bool     // the line of owner begins with a time
	heading []string // the words of the line before, if it may be the first of two lines of names
	table   *table
}

const (
	// maxClasses is the number of labels whose class is cached.
	maxClasses = 1 << 16
	// maxBetween is the number of lines in which a time since the boot counts for lines without one.
	maxBetween = 8
)

// NewLevels returns a reader. Lines that match named are read by its groups; it may be nil.
func NewLevels(named *regexp.Regexp) *Levels {
	l := &Levels{classes: map[string]*class{}, named: named, inLog: inLog{indent: -1}}
	l.scan.l = l
	l.byKey, l.units = map[string]*Series{}, map[string]string{}
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

// NewLog begins a log.
func (l *Levels) NewLog() {
	l.inLog, l.lastUp = inLog{indent: -1}, moment{}
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
	before := l.Samples
	l.line = line.Number
	l.order++
	b := bytes.TrimRight(line.Text, " \r\t")
	switch {
	case len(b) > maxLine:
		l.tooLong++
	case len(b) > 0:
		if l.mark(b, l.line) {
			l.Boot()
		}
		l.read(b)
	default:
		if l.heading = nil; l.table != nil && l.table.separator == 0 {
			l.table = nil
		}
	}
	return l.Samples - before
}

// read reads a line that is not empty.
func (l *Levels) read(b []byte) {
	if l.table != nil && l.table.separator != 0 && l.row(b, &stamped{}) || l.header(b) {
		return
	}
	s := l.stamp(b)
	if s.wall.clock != noClock { // a line without a time has that of the lines above
		l.now = s.wall
	} else {
		s.wall = l.now
	}
	if s.up.clock != noClock {
		if l.clocks.tick(s.up.at, s.form); s.whole {
			l.now = s.up
		}
		l.lastUp, l.lastUpAt = s.up, l.order
	} else if l.order-l.lastUpAt <= maxBetween {
		s.up = l.lastUp
	}
	switch {
	case len(s.rest) == 0:
	case l.byGroups(&s):
	case l.table != nil && l.row(s.rest, &s):
	case len(s.rest) != len(b) && l.header(s.rest):
	default:
		l.prose(b, &s)
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
	before, c := b[:len(b)-len(s.rest)], &l.scan
	indent := len(before) - len(bytes.TrimRight(before, " "))
	if timed := len(before) > 0; indent <= l.indent || timed != l.timed { // a damaged time changes what is indented
		l.owner, l.indent, l.timed = "", -1, timed
	}
	if bytes.HasPrefix(s.rest, []byte("=====")) {
		l.context = ""
	}
	c.read(s.rest)
	strong := slices.ContainsFunc(c.fields, func(f field) bool { return f.q.level() && !f.weak })
	weak := !strong && slices.ContainsFunc(c.fields, func(f field) bool { return f.weak })
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
	if timed := l.clock(s); c.levels == 0 && (l.heads(s.rest) || timed) {
		return
	}
	for i := range c.fields {
		f := &c.fields[i]
		switch {
		case f.q != ident && f.q != uptime:
			l.put(s, identity{context: context, words: string(c.words), tokens: c.tokens}, f)
		case f.q == ident && c.levels > 0:
			l.owner, l.indent = string(f.raw), indent
		}
	}
}

// answer reads a line with a number only, below a command whose words say what it is: gc.mem_free().
func (l *Levels) answer(s *stamped) bool {
	c, asked := &l.scan, l.asked
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
		v, _ := strconv.ParseFloat(string(s.rest[:span(s.rest, 0, isDigit)]), 64)
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

// mapping begins a line of /proc/PID/smaps.
var mapping = regexp.MustCompile(`^[0-9a-f]{8,16}-[0-9a-f]{8,16} .* (\S+)$`)

// heads reports whether a line without a level says whose the next ones are.
func (l *Levels) heads(b []byte) bool {
	c := &l.scan
	for i := range c.fields {
		f := &c.fields[i]
		if f.q != ident || !isMemory(f.label) {
			continue
		}
		if words := labelWords(string(f.label)); !slices.Contains(words, "pid") && !slices.Contains(words, "id") { // heap at 0x20001000, heap summary for capabilities 0x804
			if l.context = string(f.raw); bytes.Contains(b, []byte("capabilities")) {
				l.context = capabilities(l.context)
			}
			return true
		}
	}
	if isHex(b[0]) {
		if m := mapping.FindSubmatch(b); m != nil {
			l.context = string(m[1])
			return true
		}
	}
	last := b[len(b)-1]
	if last == '{' || last == '}' {
		l.context = ""
	}
	if (last == ':' || last == '{') && len(c.fields) == 0 && c.tokens <= 6 && l.classify(b).hit && l.classify(b).q == unknown {
		if l.context = heapIn(string(b)); l.context == "" {
			l.context = string(bytes.TrimRight(c.words, " "))
		}
		return true
	}
	return false
}

// clocks are times since the boot, by the form of the stamp, -1 for those among words. One that begins
// again shows a boot, unless 32 bits of ms or µs are full.
type clocks struct {
	last     map[int]float64
	restarts int // of all logs
	ticks    int
}

func (c *clocks) reset() { c.last = map[int]float64{} }

func (c *clocks) tick(at float64, form int) {
	c.ticks++
	if last, ok := c.last[form]; ok && at < last-0.5 && wrap(bootTime, last, at) == 0 {
		c.restarts++
		c.reset()
	}
	if c.last == nil {
		c.reset()
	}
	c.last[form] = at
}

// full are the times after which clocks begin again without a boot.
var full = map[clock][]float64{dayTime: {86400}, yearTime: {365 * 86400, 366 * 86400}, bootTime: {1 << 32 / 1e3, 1 << 32 / 1e6}}

// wrap returns after how many seconds a clock has begun again, 0 if it has not by being full.
func wrap(c clock, last, at float64) float64 {
	for _, full := range full[c] {
		if last > 0.98*full && last <= full && at < 0.02*full || c == dayTime && last-at > full/2 {
			return full
		}
	}
	return 0
}
