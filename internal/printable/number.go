package printable

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number returns n with a comma between groups of three digits.
func Number[T int | int64 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count returns n and the noun, in the plural unless n is 1.
func Count[T int | int64 | uint64](n T, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey"):
		noun = noun[:len(noun)-1] + "ies"
	default:
		noun += "s"
	}
	return Number(n) + " " + noun
}

// Duration returns hours in a unit that gives a small number, such as "28.7 h".
func Duration(hours float64) string {
	for _, u := range []struct {
		least, hours float64
		name         string
	}{{2 * 24 * 365, 24 * 365, "years"}, {2 * 24, 24, "days"}, {1, 1, "h"}, {1.0 / 60, 1.0 / 60, "min"}} {
		switch {
		case hours < u.least:
		case hours/u.hours >= 999.5:
			return "over 1,000 " + u.name
		default:
			return strconv.FormatFloat(hours/u.hours, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(hours*3600, 'g', 3, 64) + " s"
}

// Amount returns v as Signed does, with a fraction only if it is small.
func Amount(v float64) string {
	if math.Abs(v) >= 100 {
		v = math.Round(v)
	}
	return Signed(v)
}

// Signed returns v with its sign, rounded to a tenth.
func Signed(v float64) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', 1, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	if n, err := strconv.ParseUint(whole, 10, 64); err == nil {
		whole = Number(n)
	}
	sign := "+"
	if v < 0 && s != "0.0" {
		sign = "-"
	}
	return sign + strings.TrimSuffix(whole+"."+fraction, ".0")
}
