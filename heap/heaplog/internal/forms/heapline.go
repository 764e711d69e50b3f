package forms

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// lineForms are lines whose words do not say what they are, and lineKeys the texts that they have. A group is a quantity, with
// a unit behind _ if its text has none, epoch, time, or heap. One without a text counts only below a heading with an address.
var lineForms, lineExprs, lineKeys = func() (list [][]string, exprs []expression, keys *index) {
	list, keys = rows("lines"), &index{}
	for i, row := range list {
		if exprs = append(exprs, compiled(row[2])); row[1] != "" {
			keys.add(row[1], i)
		}
	}
	return list, exprs, keys
}()

// maxHeaps is the number of heaps of a line that the user names.
const maxHeaps = 16

// byGroups reads a line by the groups of an expression: of the user's, or of a form.
func (l *Levels) byGroups(s *stamped) (found bool) {
	if l.named != nil {
		for _, m := range l.named.FindAllSubmatchIndex(s.rest, maxHeaps) {
			l.groups(l.named, m, s, "named")
			found = true
		}
	}
	try := func(k int) bool {
		e := lineExprs[k]()
		if m := e.FindSubmatchIndex(s.rest); m != nil && !found {
			l.groups(e, m, s, lineForms[k][1])
			found = true
		}
		return !found
	}
	if !found {
		lineKeys.find(s.rest, try)
	}
	if !found && strings.HasPrefix(l.context, "0x") {
		for k, row := range lineForms {
			if row[1] == "" {
				try(k)
			}
		}
	}
	return found
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
			if i := slices.Index([]string{"min", "size"}, q); i >= 0 {
				q = string([]Quantity{Least, Total}[i])
			}
			list = append(list, field{nil, raw, []byte(unit), &class{q: Quantity(q), hit: true}, 2 * g})
		}
	}
	for i := range list {
		l.put(s, identity{context: heap, words: shape, cell: true}, &list[i])
	}
}

// CheckHeapLine returns an error if an expression for heap lines lacks what it needs.
func CheckHeapLine(expr *regexp.Regexp) error {
	if expr.SubexpIndex("free") < 0 && expr.SubexpIndex("used") < 0 {
		return errors.New("no group free: write (?P<free>\\d+) where the number of free bytes is, or (?P<used>\\d+)")
	}
	names := []string{"free", "largest", "min", "size", "used", "heap", "time"}
	for _, name := range expr.SubexpNames() {
		base, unit, _ := strings.Cut(name, "_")
		_, known := units[strings.ToLower(unit)]
		if name != "" && (!slices.Contains(names, base) || unit != "" && !known && !allDigits([]byte(unit))) {
			return fmt.Errorf("group %q, expected %s, with a unit behind _ if the text has none", name, strings.Join(names, ", "))
		}
	}
	return nil
}
