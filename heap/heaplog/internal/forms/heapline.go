package forms

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// byGroups reads a line by the groups of an expression: of the user's, or of a form.
func (l *Levels) byGroups(s *stamped) bool {
	for _, e := range l.named {
		for _, m := range e.FindAllSubmatchIndex(s.rest, maxHeaps) {
			l.groups(e, m, s, "named")
		}
		if e.Match(s.rest) {
			return true
		}
	}
	for k, e := range l.forms {
		if hint := lineForms[k][1]; hint != "" && bytes.Contains(s.rest, []byte(hint)) || hint == "" && strings.HasPrefix(l.context, "0x") {
			if m := e.FindSubmatchIndex(s.rest); m != nil {
				l.groups(e, m, s, lineForms[k][1])
				return true
			}
		}
	}
	return false
}

// groups puts the values of the groups of an expression.
func (l *Levels) groups(e *regexp.Regexp, m []int, s *stamped, shape string) {
	var list []field
	heap := ""
	if shape == "" { // below a heading
		heap = l.context
	}
	for g, name := range e.SubexpNames() {
		if g == 0 || m[2*g] < 0 {
			continue
		}
		text := s.rest[m[2*g]:m[2*g+1]]
		q, unit, _ := strings.Cut(name, "_")
		switch q {
		case "":
		case "heap":
			heap = strings.TrimSpace(string(text))
		case "epoch", "time":
			l.timeOf(text, "", s)
		default:
			_, raw, suffix, ok := scanNumber(text, 0)
			if rest := bytes.TrimSpace(text[len(raw):]); ok && len(suffix) == 0 && unitAt(rest) == len(rest) {
				suffix = rest
			}
			if len(suffix) > 0 {
				unit = string(suffix)
			}
			list = append(list, field{nil, raw, []byte(unit), &class{q: groupQuantity(q), hit: true}, 2 * g})
		}
	}
	for i := range list {
		l.put(s, identity{context: heap, words: shape, cell: true}, &list[i])
	}
}

// groupQuantity returns the quantity of a group of --heap-line.
func groupQuantity(name string) Quantity {
	switch name {
	case "min":
		return Least
	case "size":
		return Total
	}
	return Quantity(name)
}

// CheckHeapLine returns an error if an expression for heap lines lacks what it needs.
func CheckHeapLine(expr *regexp.Regexp) error {
	if expr.SubexpIndex("free") < 0 && expr.SubexpIndex("used") < 0 {
		return errors.New("no group free: write (?P<free>\\d+) where the number of free bytes is, or (?P<used>\\d+)")
	}
	for _, name := range expr.SubexpNames() {
		base, unit, _ := strings.Cut(name, "_")
		_, known := units[strings.ToLower(unit)]
		known = known || allDigits([]byte(unit))
		if name != "" && (!slices.Contains(groupNames, base) || unit != "" && !known) {
			return fmt.Errorf("group %q, expected %s, with a unit behind _ if the text has none", name, strings.Join(groupNames, ", "))
		}
	}
	return nil
}

var groupNames = []string{"free", "largest", "min", "size", "used", "heap", "time"}
