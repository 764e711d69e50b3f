package forms

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// clock is the kind of a time.
type clock uint8

const (
	noClock  clock = iota
	dateTime       // since 1970
	dayTime        // since midnight
	yearTime       // since the new year
	bootTime       // since the boot
	noUnit         // a count that rises, of a unit that nothing says
)

// A moment is a time in seconds.
type moment struct {
	clock
	at float64
}

// stamps are the times at the beginning of a line. %Y %m %d %H %M %S %y are digits, %h hours beyond a day, %b %a names, %f a
// fraction or nothing, %p AM or PM, %z a zone or nothing, %Z a word, %i an integer, %j one that says nothing, %$ the end of the line, %6 one of six digits or more, %U a word in brackets of capitals, %F a number with a point, %E a
// time since 1970, %L a letter, %w anything but a bracket, _ spaces or none.
var stamps = []struct {
	form  string
	clock clock
	unit  float64 // of %i and %F, in seconds
	whole bool    // the line has nothing else: the time of what follows
}{
	{"%Y-%m-%dT%H:%M:%S%f%z", dateTime, 0, false},
	{"%Y-%m-%d %H:%M:%S%f%z", dateTime, 0, false},
	{"[%Y-%m-%d %H:%M:%S%f%z]", dateTime, 0, false},
	{"[%Y-%m-%dT%H:%M:%S%f%z]", dateTime, 0, false},
	{"%Y/%m/%d %H:%M:%S%f", dateTime, 0, false},
	{"[%Y/%m/%d %H:%M:%S:%i]", dateTime, 0, false}, // of libwebsockets
	{"%d.%m.%Y %H:%M:%S%f", dateTime, 0, false},
	{"%d.%m.%Y, %H:%M:%S%f", dateTime, 0, false},
	{"[%d.%m.%Y %H:%M:%S%f]", dateTime, 0, false},
	{"%j/%j/%j %H:%M:%S%p ", dayTime, 0, false}, // which is the day, and which the month?
	{"%j/%j/%j %H:%M:%S%f", dayTime, 0, false},
	{"%j-%j-%j %H:%M:%S%f", dayTime, 0, false},
	{"[%d/%b/%Y:%H:%M:%S %z]", dateTime, 0, false}, // of web servers
	{"[%a %b_%d %H:%M:%S%f %Y]", dateTime, 0, false},
	{"[%Y-%m-%dT%H:%M:%S%f%z %w]", dateTime, 0, false},
	{"%a %Y-%m-%d %H:%M:%S %Z ", dateTime, 0, false},
	{"%b_%d, %Y %H:%M:%S%p ", dateTime, 0, false},
	{"<%i>%i %Y-%m-%dT%H:%M:%S%f%z ", dateTime, 0, false},
	{"<%i>%b_%d %H:%M:%S%f ", yearTime, 0, false},
	{"[%b_%d %H:%M:%S%f]", yearTime, 0, false},
	{"%L%m%d %H:%M:%S%f ", yearTime, 0, false}, // of glog
	{"%b_%d %H:%M:%S%f %Y", dateTime, 0, false},
	{"%a %b_%d %H:%M:%S %Z %Y", dateTime, 0, true},
	{"%a %b_%d %H:%M:%S %Y", dateTime, 0, true},
	{"%b_%d %H:%M:%S%f ", yearTime, 0, false}, // of syslog: the host and a tag follow
	{"%m-%d %H:%M:%S%f ", yearTime, 0, false},
	{"[%h:%M:%S%f,%i]", bootTime, 0, false},
	{"[%H:%M:%S%f]", dayTime, 0, false},
	{"%H:%M:%S%p ", dayTime, 0, false},
	{"%H:%M:%S%f -> ", dayTime, 0, false},
	{"%H:%M:%S%f ", dayTime, 0, false},
	{"%H:%M:%S%f: ", dayTime, 0, false},
	{"[_%i][%L][%w]", bootTime, 1e-3, false},
	{"%L (%i) ", bootTime, 1e-3, false},
	{"%L (%H:%M:%S%f) ", dayTime, 0, false},
	{"%L (%y-%m-%d %H:%M:%S%f) ", dateTime, 0, false},
	{"[%E]", dateTime, 1, false},
	{"[_%F]", bootTime, 1, false},
	{"(_%F)", bootTime, 1, false},
	{"[%w]\t(%F, +%j)\t", bootTime, 1, false}, // of LVGL
	{"Runtime: %i%$", bootTime, 1e-3, true},   // of WLED
	{"[%6] [%U] ", bootTime, 1e-3, false},     // of ESPurna
	{"[_%i]", noUnit, 1, false},
	{"(_%i)", noUnit, 1, false},
	{"# %Y-%m-%dT%H:%M:%S%f%z", dateTime, 0, true},
	{"top - %H:%M:%S ", dayTime, 0, true},
	{"# scrape %E", dateTime, 1, true},
	{"%E", dateTime, 1, false},
	{"%Z_| %H:%M:%S %i [%w] ", bootTime, 1, false}, // of Meshtastic
	{"%Z_| ??:??:?? %i [%w] ", bootTime, 1, false},
	{"%i ms ", bootTime, 1e-3, false},
	{"%i ms:", bootTime, 1e-3, false},
	{"%i : Info", bootTime, 1e-3, false}, // of ESPEasy
	{"=== %i min", bootTime, 60, true},
	{"Uptime:_%i ", bootTime, 1e-3, true},
}

const (
	months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	days   = "MonTueWedThuFriSatSun"
)

// stampParser reads a time.
type stampParser struct {
	text             []byte
	n                int // bytes read
	year, month, day float64
	hour, min, sec   float64
	fraction, zone   float64
	number           float64
}

// matchStamp reads a time of a form at the beginning of text, and returns its length.
func matchStamp(form string, unit float64, text []byte) (seconds float64, n int, ok bool) {
	p := stampParser{text: text, year: 1970, month: 1, day: 1}
	for i := 0; i < len(form); i++ {
		switch c := form[i]; {
		case c == '_':
			for p.peek() == ' ' {
				p.n++
			}
		case c == '%':
			i++
			if !p.date(form[i]) && !p.other(form[i]) {
				return 0, 0, false
			}
		case !p.skip(c):
			return 0, 0, false
		}
	}
	if unit != 0 {
		return p.number * unit, p.n, true
	}
	minute := time.Date(int(p.year), time.Month(int(p.month)), int(p.day), int(p.hour), int(p.min), 0, 0, time.UTC)
	return float64(minute.Unix()) + p.sec + p.fraction - p.zone, p.n, true
}

// peek returns the next byte, 0 at the end.
func (p *stampParser) peek() byte {
	if p.n < len(p.text) {
		return p.text[p.n]
	}
	return 0
}

func (p *stampParser) skip(c byte) bool {
	if p.peek() != c || c == 0 {
		return false
	}
	p.n++
	return true
}

// digits reads up to most digits.
func (p *stampParser) digits(most int) (v float64, k int) {
	for k < most && isDigit(p.peek()) {
		v = v*10 + float64(p.peek()-'0')
		p.n, k = p.n+1, k+1
	}
	return v, k
}

// two reads one or two digits.
func (p *stampParser) two(to *float64, least, most float64) bool {
	v, k := p.digits(2)
	*to = v
	return k > 0 && v >= least && v <= most
}

// decimals reads digits as those behind a point.
func (p *stampParser) decimals() float64 {
	v, k := p.digits(9)
	for range k {
		v /= 10
	}
	return v
}

// date reads a part of a date or of a time of day.
func (p *stampParser) date(verb byte) bool {
	switch verb {
	case 'Y':
		v, k := p.digits(4)
		p.year = v
		return k == 4 && v > 1900 && v < 2200
	case 'y':
		ok := p.two(&p.year, 0, 99)
		if p.year += 2000; p.year >= 2070 { // a clock that is not set
			p.year -= 100
		}
		return ok
	case 'm':
		return p.two(&p.month, 1, 12)
	case 'd':
		return p.two(&p.day, 1, 31)
	case 'h': // since the boot
		v, k := p.digits(9)
		p.hour = v
		return k > 0
	case 'H':
		return p.two(&p.hour, 0, 23)
	case 'M':
		return p.two(&p.min, 0, 59)
	case 'S':
		return p.two(&p.sec, 0, 60)
	case 'p':
		return p.noon()
	case 'b', 'a':
		return p.name(verb)
	case 'f':
		if c := p.peek(); (c == '.' || c == ',') && digitAt(p.text, p.n+1) {
			p.n++
			p.fraction = p.decimals()
		}
		return true
	case 'z':
		p.offset()
		return true
	}
	return false
}

// name reads the name of a month or of a day.
func (p *stampParser) name(verb byte) bool {
	list := months
	if verb == 'a' {
		list = days
	}
	if len(p.text) < p.n+3 {
		return false
	}
	k := strings.Index(list, string(p.text[p.n:p.n+3]))
	if k < 0 || k%3 != 0 {
		return false
	}
	if p.n += 3; verb == 'b' {
		p.month = float64(k/3 + 1)
	}
	return true
}

// noon reads AM or PM.
func (p *stampParser) noon() bool {
	text := p.text[min(p.n, len(p.text)):]
	if len(text) < 3 || text[0] != ' ' || text[1] != 'A' && text[1] != 'P' || text[2] != 'M' || p.hour < 1 || p.hour > 12 {
		return false
	}
	p.n += 3
	if p.hour = math.Mod(p.hour, 12); text[1] == 'P' {
		p.hour += 12
	}
	return true
}

// offset reads a zone, if there is one: Z, +01:00, -0500.
func (p *stampParser) offset() {
	sign := 1.0
	switch c := p.peek(); {
	case c == 'Z':
		p.n++
		return
	case c == '-':
		sign = -1
	case c != '+':
		return
	}
	at := p.n
	p.n++
	hours, k := p.digits(2)
	p.skip(':')
	minutes, _ := p.digits(2)
	if k < 2 {
		p.n = at
		return
	}
	p.zone = sign * (hours*3600 + minutes*60)
}

// other reads what is no part of a date.
func (p *stampParser) other(verb byte) bool {
	from := p.n
	switch verb {
	case 'Z', 'U':
		for isUpper(p.peek()) {
			p.n++
		}
		return p.n > from+1
	case 'L':
		p.n++
		return from < len(p.text) && isUpper(p.text[from])
	case 'w':
		k := bytes.IndexByte(p.text[p.n:], ']')
		p.n += max(k, 0)
		return k >= 0 && k < 40
	case '$':
		return p.n == len(p.text)
	case 'j':
		_, k := p.digits(20)
		return k > 0
	case 'i', '6':
		v, k := p.digits(20)
		p.number = v
		return k > 0 && (verb == 'i' || k >= 6)
	case 'E':
		return p.epoch()
	case 'F':
		for isDigit(p.peek()) || p.peek() == '.' {
			p.n++
		}
		v, err := strconv.ParseFloat(string(p.text[from:p.n]), 64)
		p.number = v
		return err == nil && bytes.IndexByte(p.text[from:p.n], '.') > 0
	}
	return false
}

// epoch reads a time since 1970 in seconds, ms, µs or ns, by its number of digits.
func (p *stampParser) epoch() bool {
	v, k := p.digits(20)
	if c := p.peek(); k < 10 || (k-10)%3 != 0 || k > 19 || c != 0 && bytes.IndexByte([]byte(" .,\t:]"), c) < 0 {
		return false
	}
	for ; k > 10; k -= 3 {
		v /= 1000
	}
	if p.peek() == '.' {
		p.n++
		v += p.decimals()
	}
	p.number = v
	return v > 1e9 && v < 4e9
}

// epochOf returns the time since 1970 that a number is, if it is one.
func epochOf(raw []byte) (moment, bool) {
	v, _, ok := matchStamp("%E", 1, raw)
	return moment{dateTime, v}, ok
}

// beginsStamp reports whether a line may begin with a time.
func beginsStamp(b []byte) bool {
	switch c := b[0]; {
	case isDigit(c), c == '[', c == '(', c == '#', c == '=', c == '<':
		return true
	case !isUpper(c) && c != 't':
		return false
	case b[1] == ' ', isDigit(b[1]), len(b) > 6 && b[6] == '|':
		return true
	}
	k := strings.Index(months+days+"topUptRun", string(b[:3]))
	return k >= 0 && k%3 == 0
}

// maxStamps is the number of times at the beginning of a line.
const maxStamps = 5

// stamped is a line without its times.
type stamped struct {
	rest     []byte
	wall, up moment
	form     int // of up
	host     []byte
	whole    bool
}

// stamper takes times off lines.
type stamper struct {
	lastStamp int // the form of the last time of a wall clock
}

// Stamp is a time that a line begins with.
type Stamp struct {
	Form int // of its spelling: clocks of one device may differ
	Wall bool
	At   time.Duration // since 1970, the new year, midnight or the boot
	Full time.Duration // after which the clock begins again, 0 if it does not
}

// Stamps returns the times that a line begins with.
func Stamps(line []byte) (list []Stamp) {
	var t stamper
	s := t.stamp(bytes.TrimSpace(plain(line)))
	for _, x := range []struct {
		moment
		form int
	}{{s.wall, t.lastStamp}, {s.up, s.form}} {
		if x.clock == noClock || x.clock == noUnit {
			continue
		}
		most := 0.0
		if x.clock != bootTime || stamps[x.form].unit == 1e-3 {
			most = append(full[x.clock], 0)[0]
		}
		list = append(list, Stamp{x.form, x.clock != bootTime, x.duration(), moment{at: most}.duration()})
	}
	return list
}

// stamp takes the times off the beginning of a line.
func (l *stamper) stamp(b []byte) (s stamped) {
	s.rest, s.form = b, -1
	if host, rest := l.prefix(b); host != nil {
		s.host, b = host, rest
	}
	for range maxStamps {
		b = bytes.TrimLeft(b, " \t")
		if s.rest = b; len(b) < 4 || !beginsStamp(b) {
			return s
		}
		k, at, n := l.findStamp(b)
		if k < 0 {
			if tag := tagOf(b); s.host == nil && (s.wall.clock|s.up.clock) != noClock && tag != nil {
				s.host, b = tag, b[len(tag)+2:]
				continue
			}
			return s
		}
		switch f := &stamps[k]; {
		case f.clock == bootTime || f.clock == noUnit:
			if s.up.clock != noClock {
				return s
			}
			s.up, s.form = moment{f.clock, at}, k
		case s.wall.clock == noClock: // else one of another program behind it
			s.wall, l.lastStamp = moment{f.clock, at}, k
		}
		b = bytes.TrimPrefix(b[n:], []byte("-> "))
		if s.whole = s.whole || stamps[k].whole; strings.HasSuffix(stamps[k].form, "%b_%d %H:%M:%S%f ") {
			s.host, b = hostOf(b)
		}
	}
	s.rest = b
	return s
}

// prefix returns the name of a container or a pod before a date, as docker compose, pm2 and kubectl write it; nil if there
// is none.
func (l *stamper) prefix(b []byte) (host, rest []byte) {
	head := b[:min(len(b), 60)]
	k := bytes.Index(head, []byte("| 2"))
	if k < 0 {
		if k = bytes.Index(head, []byte("] 2")); k < 0 || b[0] != '[' || bytes.IndexByte(head[:k], '/') < 0 {
			return nil, nil
		}
	}
	if _, _, ok := tryStamp(0, b[k+2:]); k == 0 || !ok {
		return nil, nil
	}
	return bytes.TrimSpace(bytes.Trim(b[:k], "[|")), b[k+2:]
}

// findStamp returns the form of the time at the beginning of b, -1 if there is none.
func (l *stamper) findStamp(b []byte) (form int, at float64, n int) {
	if at, n, ok := tryStamp(l.lastStamp, b); ok {
		return l.lastStamp, at, n
	}
	for k := range stamps {
		if at, n, ok := tryStamp(k, b); ok {
			return k, at, n
		}
	}
	return -1, 0, 0
}

func tryStamp(k int, b []byte) (at float64, n int, ok bool) {
	f := &stamps[k]
	at, n, ok = matchStamp(f.form, f.unit, b)
	switch last := f.form[len(f.form)-1]; {
	case !ok:
	case f.whole && f.clock == dateTime && n < len(bytes.TrimRight(b, " =\t")):
		ok = false
	case last != ' ' && last != ']' && last != ')' && n < len(b) && (isDigit(b[n]) || continues(b[n:])): // goes on
		ok = false
	}
	return at, n, ok
}

// tagOf returns the name in brackets at the beginning of b, nil if there is none, or if it is a word of the
// vocabulary or the level of a log.
func tagOf(b []byte) []byte {
	k := bytes.IndexByte(b, ']')
	if b[0] != '[' || k < 4 || k > 32 || k+1 == len(b) || b[k+1] != ' ' || bytes.ContainsAny(b[1:k], " []=") || classOf(string(b[1:k])).q.level() {
		return nil
	}
	if tag := b[1:k]; !isUpper(tag[0]) || !isUpper(tag[1]) {
		return tag
	}
	return nil
}

// hostOf returns the host behind a time of syslog, if a tag with a colon follows.
func hostOf(b []byte) (host, rest []byte) {
	k := bytes.IndexByte(b, ' ')
	if k > 0 && b[k-1] != ':' && bytes.IndexByte(b[k+1:], ':') > 0 && !isMemory(b[:k]) && !classOf(string(b[:k])).q.level() {
		return b[:k], b[k+1:]
	}
	return nil, b
}

// FirstDate returns the first date and time that a line begins with. ok is false if there is none.
func FirstDate(text []byte) (at time.Time, ok bool) {
	var l stamper
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(plain(line))
		first, _, _ := bytes.Cut(bytes.ReplaceAll(bytes.ReplaceAll(line, []byte(";"), []byte(",")), []byte("\t"), []byte(",")), []byte(",")) // of a row of a table
		for _, part := range [][]byte{line, bytes.Trim(first, `" `)} {
			if s := l.stamp(part); s.wall.clock == dateTime {
				return time.Unix(0, int64(s.wall.at*1e9)).UTC(), true
			}
		}
	}
	return at, false
}
