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
		j := i + 2
		for j < len(text) && isHex(text[j]) {
			j++
		}
		return j, text[i:j], nil, j-i > 2
	}
	j, dots := scanDigits(text, i)
	if dots >= 3 && !groups(string(text[i:j]), '.') { // an address of the net
		return j, nil, nil, false
	}
	raw = text[i:j]
	if j < len(text) && text[j] == '%' {
		return j + 1, raw, text[j : j+1], true
	}
	k := j
	for k < len(text) && (isLetter(text[k]) || isDigit(text[k])) {
		k++
	}
	suffix := text[j:k]
	switch n := exponentAt(text, j, k); {
	case k == j:
		return j, raw, nil, true
	case n > 0:
		return n, text[i:n], nil, true
	case unitAt(suffix) == len(suffix):
		return k, raw, suffix, true
	case isHexWord(text[i:k]):
		return k, text[i:k], nil, true
	case len(suffix) == 1 && (suffix[0] == 'i' || suffix[0] == 'u'): // an integer of InfluxDB
		return k, raw, nil, true
	}
	return k, nil, nil, false
}

// scanDigits returns the end of digits with what groups them, and the number of points.
func scanDigits(text []byte, i int) (end, dots int) {
	j := i
	for j < len(text) {
		c, n := text[j], 1
		switch {
		case isDigit(c):
		case (c == ',' || c == '.' || c == '\'' || c == '_') && digitAt(text, j+1):
			if c == '.' {
				dots++
			}
		case c == 0xe2 && digitAt(text, j+3) && text[j+1] == 0x80 && (text[j+2] == 0x99 || text[j+2] == 0xaf): // ’ and a narrow space
			n = 3
		case c == 0xc2 && digitAt(text, j+2) && text[j+1] == 0xa0: // a space that does not break
			n = 2
		case c == ' ' && groupsBySpace(text, i, j):
		default:
			return j, dots
		}
		j += n
	}
	return j, dots
}

// groupsBySpace reports whether the space at text[j] groups the number that begins at text[i]: 90 000 bytes.
func groupsBySpace(text []byte, i, j int) bool {
	if i < 2 || text[i-1] != ':' && text[i-1] != '=' && text[i-2] != ':' && text[i-2] != '=' {
		return false
	}
	if j-i > 3 && (j-i > 15 || bytes.IndexByte(text[i:j], ' ') < 0) {
		return false
	}
	k := j + 1
	for k < len(text) && isDigit(text[k]) {
		k++
	}
	rest := bytes.TrimLeft(text[k:], " ")
	return k-j == 4 && (len(rest) == 0 || rest[0] == ',' || unitAt(rest) > 0 || isDigit(rest[0]) && len(text[k:]) > len(rest))
}

func digitAt(text []byte, i int) bool { return i < len(text) && isDigit(text[i]) }

// exponentAt returns the end of the exponent at text[j:], whose letters and digits end at k; 0 if there is none.
func exponentAt(text []byte, j, k int) int {
	switch {
	case k == j || text[j]|0x20 != 'e':
		return 0
	case k > j+1 && allDigits(text[j+1:k]):
		return k
	case k == j+1 && digitAt(text, k+1) && (text[k] == '+' || text[k] == '-'):
		for k++; k < len(text) && isDigit(text[k]); k++ {
		}
		return k
	}
	return 0
}

// unitAt returns the length of the unit at the start of text, 0 if there is none.
func unitAt(text []byte) int {
	var word [10]byte
	n := 0
	for n < len(text) && n < len(word) && (isLetter(text[n]) || text[n] == '%') {
		word[n] = text[n]
		if isUpper(word[n]) {
			word[n] |= 0x20
		}
		n++
	}
	if _, ok := units[string(word[:n])]; ok && n < len(word) {
		return n
	}
	return 0
}

func isHexWord(text []byte) bool {
	for _, c := range text {
		if !isHex(c) {
			return false
		}
	}
	return true
}

// scale is what is known of the unit of a column.
type scale uint8

const (
	anyScale scale = iota
	bytesScale
	largerScale // KiB or the like: there are fractions
)

// spelling counts how the numbers of a column are spelled.
type spelling struct {
	n                       int
	hexDigits, hexLetters   int // numbers of hexadecimal digits only, and those with a letter
	comma, commaOne, comma3 int // with a comma, with one, and with groups of three behind it
	point, pointOne, point3 int
	zeroPoint, both         int
	pointLast               bool // of the first number with both, the point is the decimal sign
}

func (p *spelling) add(s string) {
	p.n++
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		return
	}
	if isHexWord([]byte(s)) {
		p.hexDigits++
		if strings.ContainsAny(s, "abcdefABCDEF") && !isExponent(s) {
			p.hexLetters++
		}
	}
	commas, points := strings.Count(s, ","), strings.Count(s, ".")
	if commas > 0 && points > 0 {
		if p.both++; p.both == 1 {
			p.pointLast = strings.LastIndexByte(s, '.') > strings.LastIndexByte(s, ',')
		}
	}
	count := func(n int, sep byte, all, one, three *int) {
		if n > 0 {
			*all++
		}
		if n == 1 {
			*one++
		}
		if n > 0 && groups(s, sep) {
			*three++
		}
	}
	count(commas, ',', &p.comma, &p.commaOne, &p.comma3)
	count(points, '.', &p.point, &p.pointOne, &p.point3)
	if strings.HasPrefix(s, "0.") {
		p.zeroPoint++
	}
}

// nearlyAll allows for damaged lines.
func nearlyAll(n, of int) bool { return n*50 >= of*49 }

// hex reports whether the numbers are hexadecimal without 0x: one in twenty has a letter.
func (p *spelling) hex() bool {
	return p.hexLetters > 0 && p.hexLetters*20 >= p.n && (p.hexLetters > 1 || p.n < 8) && p.hexDigits*10 > p.n*9
}

// signs decides what commas and points are. A separator that other than three digits follow is a decimal
// sign; one that occurs twice in a number groups. why refuses what may be either.
func (p *spelling) signs(k scale) (decimalComma, groupingPoint bool, why string) {
	if p.both > 0 {
		return !p.pointLast, !p.pointLast, ""
	}
	decimalComma = p.comma > 0 && !nearlyAll(p.comma3, p.comma) && nearlyAll(p.commaOne, p.comma)
	groupingPoint = p.point > 0 && nearlyAll(p.point3, p.point) && (!nearlyAll(p.pointOne, p.point) || k == bytesScale)
	switch {
	case k == anyScale && !groupingPoint && p.point > 2 && p.point3 == p.point && p.pointOne == p.point && p.zeroPoint == 0:
		why = "a point before three digits: a thousand or a fraction? say the unit"
	case k == largerScale && p.comma > 2 && p.comma == p.n && p.comma3 == p.comma && p.commaOne == p.comma:
		why = "a comma before three digits of a larger unit: a thousand or a fraction?"
	}
	return decimalComma, groupingPoint, why
}

var ungroup = strings.NewReplacer("'", "", "’", "", "_", "", " ", "", "\u00a0", "", "\u202f", "")

// readColumn reads the numbers of a column by one rule, so that 152a90 beside 152,910 decides both. bad
// marks what is no value; why refuses the column.
func readColumn(raw []string, k scale) (v []float64, bad []bool, why string) {
	var p spelling
	for _, s := range raw {
		p.add(s)
	}
	hex := p.hex()
	decimalComma, groupingPoint, why := p.signs(k)
	v, bad = make([]float64, len(raw)), make([]bool, len(raw))
	for i, s := range raw {
		s = ungroup.Replace(s)
		if groupingPoint {
			s = strings.ReplaceAll(s, ".", "")
		}
		if decimalComma {
			s = strings.ReplaceAll(s, ",", ".")
		} else {
			s = strings.ReplaceAll(s, ",", "")
		}
		var ok bool
		v[i], ok = parse(s, hex)
		bad[i] = !ok
	}
	return v, bad, why
}

// parse reads a number without what groups digits. ok is false if it is none, or no number of bytes.
func parse(s string, hex bool) (v float64, ok bool) {
	var err error
	digits, prefixed := strings.CutPrefix(strings.ToLower(s), "0x")
	if prefixed || hex {
		var u uint64
		u, err = strconv.ParseUint(digits, 16, 64)
		v = float64(u)
	} else {
		v, err = strconv.ParseFloat(s, 64)
	}
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) && v >= 0 && v <= 1<<64
}

// isExponent reports whether a number of hexadecimal digits is one with an exponent: 9e4.
func isExponent(s string) bool { return strings.ToLower(strings.Trim(s, "0123456789")) == "e" }

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
func underflows(v []float64, bad []bool) (n int) {
	var most float64
	for i, x := range v {
		if !bad[i] && x < 1<<31 {
			most = max(most, x)
		}
	}
	for i, x := range v {
		if !bad[i] && most < 1<<31 && (x > 1<<32-1<<24 && x < 1<<32 || x > 1<<62) {
			bad[i] = true
			n++
		}
	}
	return n
}

// wordsFollow reports whether words stand behind the number at the start of b: 5 total 3 free.
func wordsFollow(b []byte) bool {
	end, _, unit, ok := scanNumber(b, 0)
	rest := bytes.TrimLeft(b[end:], " ")
	if n := unitAt(rest); ok && unit == nil && n > 0 {
		rest = rest[n:]
	}
	return hasLetter(rest)
}

// idAt returns the length of a UUID, a MAC address or a hexadecimal name of at least ten digits at the start of b, 0 if
// there is none.
func idAt(b []byte) int {
	n, letters := 0, 0
	for n < len(b) && n < 40 && (isHex(b[n]) || b[n] == '-') {
		if !isDigit(b[n]) && b[n] != '-' {
			letters++
		}
		n++
	}
	switch {
	case n < len(b) && (isLetter(b[n]) || isDigit(b[n])):
	case n == 36 && b[8] == '-' && b[13] == '-' && b[18] == '-' && b[23] == '-':
		return n
	case n >= 10 && letters > 1 && bytes.IndexByte(b[:n], '-') < 0:
		return n
	}
	return macAt(b)
}

// macAt returns the length of a MAC address at the start of b, 0 if there is none.
func macAt(b []byte) int {
	const length = 17
	if len(b) < length || !isHex(b[0]) || b[2] != ':' && b[2] != '-' {
		return 0
	}
	for k := range length {
		if k%3 == 2 && b[k] != b[2] || k%3 != 2 && !isHex(b[k]) {
			return 0
		}
	}
	return length
}
