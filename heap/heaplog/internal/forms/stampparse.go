package forms

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

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
