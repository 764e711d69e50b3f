package forms

import (
	"bytes"
	"math"
	"regexp"
	"slices"
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

func (m moment) duration() time.Duration { return time.Duration(m.at * 1e9) }

// stampForm is a time at the beginning of a line. See tables/stamps.tsv.
type stampForm struct {
	form  string
	clock clock
	unit  float64 // of %i and %F, in seconds
	whole bool    // the line has nothing else: the time of what follows
}

// stamps are the forms of times, and stampsAt those that may begin with a byte.
var stamps, stampsAt = func() (list []stampForm, at [256][]int) {
	clocks := []string{"", "date", "day", "year", "boot", "count"}
	for i, row := range rows("stamps") {
		unit, _ := strconv.ParseFloat(row[1], 64)
		f := stampForm{row[3], clock(slices.Index(clocks, row[0])), unit, row[2] != ""}
		list = append(list, f)
		for c := range 256 {
			switch {
			case f.form[0] != '%' && f.form[0] != byte(c), f.form[0] == '%' && strings.IndexByte("baLZ", f.form[1]) >= 0 && !isUpper(byte(c)):
			case f.form[0] != '%' || strings.IndexByte("baLZ", f.form[1]) >= 0 || isDigit(byte(c)):
				at[c] = append(at[c], i)
			}
		}
	}
	return list, at
}()

// The parts of a time.
const (
	atYear = iota
	atMonth
	atDay
	atHour
	atMinute
	atSecond // with its fraction
	atZone   // in seconds
	atNumber // of %i, %E and %F
	atIgnored
	parts
)

// stampNumbers are parts of a time that are numbers: their digits, range and part.
var stampNumbers = [128]struct {
	least, most int
	low, high   float64
	part        int
}{'Y': {4, 4, 1901, 2199, atYear}, 'y': {1, 2, 0, 99, atYear}, 'm': {1, 2, 1, 12, atMonth}, 'd': {1, 2, 1, 31, atDay}, 'h': {1, 9, 0, 1e9, atHour}, 'H': {1, 2, 0, 23, atHour}, 'M': {1, 2, 0, 59, atMinute},
	'S': {1, 2, 0, 60, atSecond}, 'i': {1, 20, 0, 1e20, atNumber}, '6': {6, 20, 0, 1e20, atNumber}, 'j': {1, 20, 0, 1e20, atIgnored}}

const (
	months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	days   = "MonTueWedThuFriSatSun"
)

// matchStamp reads a time of a form at the beginning of text, and returns its length.
func matchStamp(form string, unit float64, text []byte) (seconds float64, n int, ok bool) {
	v := [parts]float64{atYear: 1970, atMonth: 1, atDay: 1}
	for i := 0; i < len(form); i++ {
		switch c := form[i]; {
		case c == '_':
			n = span(text, n, isSpace)
		case c == '%':
			i++
			k := stampPart(form[i], text[n:], &v)
			if k < 0 {
				return 0, 0, false
			}
			n += k
		case n == len(text) || text[n] != c:
			return 0, 0, false
		default:
			n++
		}
	}
	if unit != 0 {
		return v[atNumber] * unit, n, true
	}
	if v[atYear] < 100 { // those from 70 on are of a clock that is not set
		v[atYear] = math.Mod(v[atYear]+30, 100) + 1970
	}
	at := time.Date(int(v[atYear]), time.Month(int(v[atMonth])), int(v[atDay]), int(v[atHour]), int(v[atMinute]), 0, 0, time.UTC)
	return float64(at.Unix()) + v[atSecond] - v[atZone], n, true
}

// digitsOf reads up to most digits.
func digitsOf(b []byte, most int) (v float64, k int) {
	for k < min(len(b), most) && isDigit(b[k]) {
		v = v*10 + float64(b[k]-'0')
		k++
	}
	return v, k
}

// stampTexts are parts of a time that are texts.
var stampTexts = map[byte]*regexp.Regexp{'z': regexp.MustCompile(`^(?:Z|([+-]\d\d):?(\d\d)?)?`), 'p': regexp.MustCompile(`^ ([AP])M`), 'Z': regexp.MustCompile(`^[A-Z]{2,}`),
	'L': regexp.MustCompile(`^[A-Z]`), 'w': regexp.MustCompile(`^[^\]]{0,39}`), 't': regexp.MustCompile(`^\t`), '$': regexp.MustCompile(`^$`), 'F': regexp.MustCompile(`^\d+\.\d+`),
	'E': regexp.MustCompile(`^(\d{10}(?:\d{3}){0,3})(\.\d+)?(?:[ .,\t:\]]|$)`)}

// stampPart reads a part of a time, and returns its length, negative if b does not begin with it.
func stampPart(verb byte, b []byte, v *[parts]float64) int {
	if f := &stampNumbers[verb]; f.most > 0 {
		x, k := digitsOf(b, f.most)
		if v[f.part] = x; k < f.least || x < f.low || x > f.high {
			return -1
		}
		return k
	}
	switch {
	case verb == 'b' || verb == 'a':
		names := months
		if verb == 'a' {
			names = days
		}
		k := strings.Index(names, string(b[:min(3, len(b))]))
		if len(b) < 3 || k < 0 || k%3 != 0 {
			return -1
		}
		if verb == 'b' {
			v[atMonth] = float64(k/3 + 1)
		}
		return 3
	case verb == 'f':
		if len(b) < 2 || b[0] != '.' && b[0] != ',' || !isDigit(b[1]) {
			return 0
		}
		x, k := digitsOf(b[1:], 9)
		v[atSecond] += x / math.Pow10(k)
		return k + 1
	case verb == 'z' && (len(b) == 0 || bytes.IndexByte([]byte("Z+-"), b[0]) < 0):
		return 0
	}
	m := stampTexts[verb].FindSubmatch(b)
	if m == nil {
		return -1
	}
	switch verb {
	case 'p':
		if v[atHour] < 1 || v[atHour] > 12 {
			return -1
		}
		if v[atHour] = math.Mod(v[atHour], 12); m[1][0] == 'P' {
			v[atHour] += 12
		}
	case 'z':
		hours, _ := strconv.ParseFloat(string(m[1]), 64)
		minutes, _ := strconv.ParseFloat(string(m[2]), 64)
		v[atZone] = hours*3600 + math.Copysign(minutes*60, hours)
	case 'F':
		v[atNumber], _ = strconv.ParseFloat(string(m[0]), 64)
	case 'E': // s, ms, µs or ns, by the number of digits
		x, _ := strconv.ParseFloat(string(m[1])+string(m[2]), 64)
		if v[atNumber] = x / math.Pow10(len(m[1])-10); v[atNumber] <= 1e9 || v[atNumber] >= 4e9 {
			return -1
		}
		return len(m[1]) + len(m[2])
	}
	return len(m[0])
}

// epochOf returns the time since 1970 that a number is, if it is one.
func epochOf(raw []byte) (moment, bool) {
	v, _, ok := matchStamp("%E", 1, raw)
	return moment{dateTime, v}, ok
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
	if s.wall.clock != noClock {
		list = append(list, Stamp{t.lastStamp, true, s.wall.duration(), moment{at: append(full[s.wall.clock], 0)[0]}.duration()})
	}
	if s.up.clock == bootTime {
		most := 0.0
		if stamps[s.form].unit == 1e-3 {
			most = full[bootTime][0]
		}
		list = append(list, Stamp{s.form, false, s.up.duration(), moment{at: most}.duration()})
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
		if s.rest = b; len(b) < 4 {
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
	for _, k := range stampsAt[b[0]] {
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
	if b[0] != '[' || k < 4 || k > 32 || k+1 == len(b) || b[k+1] != ' ' || bytes.ContainsAny(b[1:k], " []=") || classOf(string(b[1:k])).q.level() || isUpper(b[1]) && isUpper(b[2]) {
		return nil
	}
	return b[1:k]
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
		first := line[:span(line, 0, func(c byte) bool { return c != ';' && c != '\t' && c != ',' })] // of a row of a table
		for _, part := range [][]byte{line, bytes.Trim(first, `" `)} {
			if s := l.stamp(part); s.wall.clock == dateTime {
				return time.Unix(0, int64(s.wall.at*1e9)).UTC(), true
			}
		}
	}
	return at, false
}
