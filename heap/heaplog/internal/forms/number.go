package forms

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// scanNumber reads the number at text[i:], and a unit that has grown onto it. Without a number, ok is
// false, and end is behind the word.
func scanNumber(text []byte, i int) (end int, raw, unit []byte, ok bool) {
	if len(text) > i+2 && text[i] == '0' && text[i+1]|0x20 == 'x' {
		j := span(text, i+2, isHex)
		return j, text[i:j], nil, j-i > 2
	}
	j := scanDigits(text, i)
	if raw = text[i:j]; bytes.Count(raw, []byte(".")) >= 3 && !groups(string(raw), '.') { // an address of the net
		return j, nil, nil, false
	}
	if j < len(text) && text[j] == '%' {
		return j + 1, raw, text[j : j+1], true
	}
	k := span(text, j, isAlnum)
	suffix := text[j:k]
	switch e := k > j && suffix[0]|0x20 == 'e'; {
	case k == j:
		return j, raw, nil, true
	case e && k > j+1 && allDigits(suffix[1:]):
		return k, text[i:k], nil, true
	case e && k == j+1 && digitAt(text, k+1) && (text[k] == '+' || text[k] == '-'):
		k = span(text, k+1, isDigit)
		return k, text[i:k], nil, true
	case unitAt(suffix) == len(suffix):
		return k, raw, suffix, true
	case only(text[i:k], isHex):
		return k, text[i:k], nil, true
	}
	return k, raw, nil, len(suffix) == 1 && (suffix[0] == 'i' || suffix[0] == 'u') // an integer of InfluxDB
}

// groupSigns are what groups digits besides ASCII: ’, a narrow space and one that does not break.
var groupSigns = []string{"’", "\u202f", "\u00a0"}

// scanDigits returns the end of digits with what groups them.
func scanDigits(text []byte, i int) int {
	j := i
scan:
	for j < len(text) {
		switch c := text[j]; {
		case isDigit(c), (c == ',' || c == '.' || c == '\'' || c == '_') && digitAt(text, j+1), c == ' ' && groupsBySpace(text, i, j):
			j++
			continue
		case c < 0x80:
			return j
		}
		for _, s := range groupSigns {
			if bytes.HasPrefix(text[j:], []byte(s)) && digitAt(text, j+len(s)) {
				j += len(s)
				continue scan
			}
		}
		break
	}
	return j
}

// groupsBySpace reports whether the space at text[j] groups the number that begins at text[i]: 90 000 bytes.
func groupsBySpace(text []byte, i, j int) bool {
	if i < 2 || text[i-1] != ':' && text[i-1] != '=' && text[i-2] != ':' && text[i-2] != '=' || j-i > 3 && (j-i > 15 || bytes.IndexByte(text[i:j], ' ') < 0) {
		return false
	}
	k := span(text, j+1, isDigit)
	rest := bytes.TrimLeft(text[k:], " ")
	return k-j == 4 && (len(rest) == 0 || rest[0] == ',' || unitAt(rest) > 0 || isDigit(rest[0]) && len(text[k:]) > len(rest))
}

func digitAt(text []byte, i int) bool { return i < len(text) && isDigit(text[i]) }

// unitAt returns the length of the unit at the start of text, 0 if there is none.
func unitAt(text []byte) int {
	var word [10]byte
	n := 0
	for ; n < len(text) && n < len(word) && (isLetter(text[n]) || text[n] == '%'); n++ {
		if word[n] = text[n]; isUpper(word[n]) {
			word[n] |= 0x20
		}
	}
	if _, ok := units[string(word[:n])]; ok && n < len(word) {
		return n
	}
	return 0
}

// scale is what is known of the unit of a column.
type scale uint8

const (
	anyScale scale = iota
	bytesScale
	largerScale // KiB or the like: there are fractions
)

// separator counts the numbers of a column that have a comma or a point: all, those with one, and those with groups of
// three behind it.
type separator struct{ all, one, three int }

func (x *separator) add(s string, sep byte) (found bool) {
	n := strings.Count(s, string(sep))
	if n == 0 {
		return false
	}
	if x.all++; n == 1 {
		x.one++
	}
	if groups(s, sep) {
		x.three++
	}
	return true
}

// spelling counts how the numbers of a column are spelled.
type spelling struct {
	n                     int
	hexDigits, hexLetters int // numbers of hexadecimal digits only, and those with a letter
	comma, point          separator
	zeroPoint, both       int
	pointLast             bool // of the first number with both, the point is the decimal sign
}

func (p *spelling) add(s string) {
	p.n++
	if isAddress([]byte(s)) {
		return
	}
	if only([]byte(s), isHex) {
		p.hexDigits++
		if strings.ContainsAny(s, "abcdefABCDEF") && strings.ToLower(strings.Trim(s, "0123456789")) != "e" { // 9e4
			p.hexLetters++
		}
	}
	if comma, point := p.comma.add(s, ','), p.point.add(s, '.'); comma && point {
		if p.both++; p.both == 1 {
			p.pointLast = strings.LastIndexByte(s, '.') > strings.LastIndexByte(s, ',')
		}
	}
	if strings.HasPrefix(s, "0.") {
		p.zeroPoint++
	}
}

// nearlyAll allows for damaged lines.
func nearlyAll(n, of int) bool { return n*50 >= of*49 }

// signs decides what commas and points are. A separator that other than three digits follow is a decimal
// sign; one that occurs twice in a number groups. why refuses what may be either.
func (p *spelling) signs(k scale) (decimalComma, groupingPoint bool, why string) {
	if p.both > 0 {
		return !p.pointLast, !p.pointLast, ""
	}
	c, d := p.comma, p.point
	decimalComma = c.all > 0 && !nearlyAll(c.three, c.all) && nearlyAll(c.one, c.all)
	groupingPoint = d.all > 0 && nearlyAll(d.three, d.all) && (!nearlyAll(d.one, d.all) || k == bytesScale)
	switch {
	case k == anyScale && !groupingPoint && d.all > 2 && d.three == d.all && d.one == d.all && p.zeroPoint == 0:
		why = "a point before three digits: a thousand or a fraction? say the unit"
	case k == largerScale && c.all > 2 && c.all == p.n && c.three == c.all && c.one == c.all:
		why = "a comma before three digits of a larger unit: a thousand or a fraction?"
	}
	return decimalComma, groupingPoint, why
}

// readColumn reads the numbers of a column by one rule, so that 152a90 beside 152,910 decides both. bad
// marks what is no value; why refuses the column.
func readColumn(raw []string, k scale) (v []float64, bad []bool, why string) {
	var p spelling
	for _, s := range raw {
		p.add(s)
	}
	hex := p.hexLetters > 0 && p.hexLetters*20 >= p.n && (p.hexLetters > 1 || p.n < 8) && p.hexDigits*10 > p.n*9 // one in twenty has a letter
	decimalComma, groupingPoint, why := p.signs(k)
	signs := []string{"'", "", "_", "", " ", ""}
	for _, s := range groupSigns {
		signs = append(signs, s, "")
	}
	comma := ""
	if decimalComma {
		comma = "."
	}
	if signs = append(signs, ",", comma); groupingPoint {
		signs = append(signs, ".", "")
	}
	clean := strings.NewReplacer(signs...)
	v, bad = make([]float64, len(raw)), make([]bool, len(raw))
	for i, s := range raw {
		s = clean.Replace(s)
		var err error
		if prefixed := isAddress([]byte(s)); prefixed || hex {
			var u uint64
			if prefixed {
				s = s[2:]
			}
			u, err = strconv.ParseUint(s, 16, 64)
			v[i] = float64(u)
		} else {
			v[i], err = strconv.ParseFloat(s, 64)
		}
		bad[i] = err != nil || math.IsNaN(v[i]) || v[i] < 0 || v[i] > 1<<64
	}
	return v, bad, why
}

// isAddress reports whether a number begins with 0x.
func isAddress(raw []byte) bool { return len(raw) > 2 && raw[1]|0x20 == 'x' }

// groups reports whether a separator groups the digits of a number by three, or as in India: 1,23,456.
func groups(s string, sep byte) bool {
	parts := strings.Split(s, string(sep))
	for i, p := range parts[1:] {
		if len(p) != 3 && !(sep == ',' && len(p) == 2 && i < len(parts)-2) {
			return false
		}
	}
	return len(parts[0]) <= 3 && parts[0] != "0"
}

// underflows marks values that are a negative number written unsigned: near 2^32 or 2^64, above all others.
func underflows(v []float64, bad []bool) {
	var most float64
	for i, x := range v {
		if !bad[i] && x < 1<<31 {
			most = max(most, x)
		}
	}
	for i, x := range v {
		bad[i] = bad[i] || most < 1<<31 && (x > 1<<32-1<<24 && x < 1<<32 || x > 1<<62)
	}
}
