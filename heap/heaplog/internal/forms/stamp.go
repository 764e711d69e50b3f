package forms

import (
	"bytes"
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
