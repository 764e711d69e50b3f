package forms

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// table is the header that rows follow.
type table struct {
	separator byte // 0: spaces
	wide      bool // at least two of them
	columns   []tableColumn
	kib       bool
	named     bool   // a column has names
	other     *table // the same header split at two spaces
}

type tableColumn struct {
	name string
	*class
	named, timed bool   // has names, has dates
	part, whole  *class // of MEM USAGE / LIMIT
}

// value reports whether a column has numbers that are no name and no time.
func (c *tableColumn) value() bool {
	return !c.named && !c.timed && c.hit && c.q != uptime && c.q != ident
}

// split returns the fields of a line.
func (t *table) split(b []byte) []string {
	if !t.wide && t.separator == 0 {
		list := strings.Fields(string(b))
		for i := 1; i < len(list); i++ { // 116 Mi
			if allDigits([]byte(list[i-1])) && unitAt([]byte(list[i])) == len(list[i]) && len(list[i]) > 1 {
				list[i-1] += list[i]
				list = slices.Delete(list, i, i+1)
			}
		}
		return list
	}
	sep := string(t.separator)
	if t.wide {
		sep = "  "
	}
	list := strings.Split(string(b), sep)
	for i := range list {
		list[i] = strings.Trim(strings.TrimSpace(list[i]), `"`)
	}
	if t.wide {
		list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	}
	return list
}

// header reports whether a line has the names of columns, one of which is a level.
func (l *Levels) header(b []byte) bool {
	above := l.heading
	l.heading = nil
	start, letters := b[:min(len(b), 400)], 0
	for _, c := range start {
		if isLetter(c) {
			letters++
		} else if isDigit(c) {
			return false
		}
	}
	if letters >= 4 && l.table != nil && l.table.separator == 0 {
		l.table = nil // it has ended, or the next one begins
	}
	if letters < 4 || bytes.ContainsAny(b, "={") {
		return false
	}
	t, all := &table{}, string(b)
	if i := strings.IndexAny(all, "\t;,"); i >= 0 {
		t.separator = all[i]
	}
	names := t.split(b)
	if t.separator == 0 && !l.spaced(t, names, above, b) {
		return false
	}
	if len(above) > 0 && t.separator == 0 {
		all += " " + strings.Join(above, " ")
	}
	if last := b[len(b)-1]; bytes.Contains(b, []byte(": ")) || last == ':' || last == '.' && !isUpper(b[len(b)-2]) {
		return false
	}
	if !t.name(names, all) {
		t = t.other
	}
	if t != nil {
		l.table = t
	}
	return t != nil
}

// spaced takes the names of columns that spaces separate, with those of a line above, and reports whether there are
// enough.
func (l *Levels) spaced(t *table, names, above []string, b []byte) bool {
	named := func(s string) bool { return is("names", strings.ToLower(s)) }
	if len(names) < 3 && !(len(names) == 2 && slices.ContainsFunc(names, named)) {
		if len(b) <= 12 || bytes.Contains(b, []byte("---")) {
			l.heading = above
		}
		return false
	}
	if l.heading = slices.Clone(names); len(above) == len(names) { // two lines of names
		for i := range names {
			names[i] = above[i] + " " + names[i]
		}
	}
	wide := &table{wide: true}
	if w := wide.split(b); len(w) >= 3 && len(w) != len(names) && wide.name(w, string(b)) {
		t.other = wide
	}
	return true
}

// name classifies the columns. It reports whether they are those of a table of levels.
func (t *table) name(names []string, all string) bool {
	for k := range slices.Chunk(words["kib"], 2) {
		t.kib = t.kib || strings.Contains(all, k[0]) && strings.Contains(all, k[1])
	}
	levels, known := map[Quantity]bool{}, 0
	for _, n := range names {
		small := strings.ToLower(strings.TrimSuffix(n, " Name"))
		c := tableColumn{name: n, class: classOf(n), named: (is("names", small) || strings.HasPrefix(n, "CONTAINER")) && !(t.kib && n == "id"), timed: is("times", small)}
		if part, whole, ok := strings.Cut(n, "/"); ok {
			if p, w := classOf(part), classOf("memory "+whole); p.q.level() && (w.q == Total || w.q == Limit) {
				c.part, c.whole = p, w
			}
		}
		if c.named || c.timed || c.hit {
			known++
		}
		if t.named = t.named || c.named; !c.named && c.hit && c.q.level() {
			levels[c.q] = true
		}
		t.columns = append(t.columns, c)
	}
	sure := t.named || t.kib
	switch {
	case len(levels) == 0, known < 2:
		return false
	case t.separator == 0 && !sure && (len(levels) < 2 || len(levels) == 2 && levels[unknown] || known*2 < len(names)): // words of a heading
		return false
	}
	return sure || levels[Free] && levels[Used] || isMemory([]byte(all))
}

// row reads a row of the table.
func (l *Levels) row(b []byte, s *stamped) bool {
	t := l.table
	if t.separator == 0 && bytes.Contains(b, []byte("0x")) {
		return false
	}
	if t.other != nil && !t.fits(bytes.Fields(b)) {
		if n := len(t.other.split(b)); n == len(t.other.columns) || n == len(t.other.columns)+1 {
			t = t.other
		}
	}
	owner, cells := t.cells(b)
	if cells == nil || strings.EqualFold(owner, "swap") {
		return cells != nil
	}
	const leastKiB = 16 << 10
	if v, err := strconv.ParseFloat(cells[0], 64); t.kib && owner == "Mem" && err == nil && v < leastKiB { // free -m
		l.put(s, identity{context: owner, words: "column " + t.columns[0].name, cell: true},
			&field{[]byte(t.columns[0].name), []byte(cells[0]), nil, &class{hit: true, why: "KiB or MiB is not said: this is little memory for KiB"}, 0})
		return true
	}
	at := *s
	names, good := l.rowNames(t, cells, &at)
	if !good {
		return false
	}
	id := identity{context: strings.TrimSpace(owner + " " + strings.Join(names, " ")), cell: true}
	for i, text := range cells {
		if t.columns[i].value() {
			l.cell(t, i, text, id, &at)
		}
	}
	return true
}

// cells returns the fields of a row, nil if they are none, and the name before them if there is one.
func (t *table) cells(b []byte) (owner string, f []string) {
	f = t.split(b)
	n := len(t.columns)
	switch {
	case len(f) == 0, t.separator != 0 && len(f) != n:
		return "", nil
	case t.separator != 0:
		return "", f
	case strings.HasSuffix(f[0], ":") && len(f)-1 <= n && len(f) > 2, len(f) == n+1 && (t.wide || !isNumber(f[0]) && isNumber(f[1])):
		return strings.TrimSuffix(f[0], ":"), f[1:]
	case len(f) == n:
		return "", f
	case len(f) > n && t.named && !t.wide: // the last column has spaces
		f[n-1] = strings.Join(f[n-1:], " ")
		return "", f[:n]
	}
	if w := (&table{wide: true}).split(b); !t.wide && len(w) == n+1 && !isNumber(w[0]) && isNumber(w[1]) {
		return w[0], w[1:]
	}
	return "", nil
}

// rowNames returns the names in a row, and sets its time. good reports whether the row has a value.
func (l *Levels) rowNames(t *table, cells []string, s *stamped) (names []string, good bool) {
	for i, text := range cells {
		switch c := &t.columns[i]; {
		case c.timed:
			if at := l.stamp([]byte(text)); len(at.rest) == 0 && (at.wall.clock|at.up.clock) != noClock {
				s.wall, s.up, good = at.wall, at.up, true
			}
		case c.hit && c.q == uptime:
			l.timeOf([]byte(text), c.name, s)
		case c.named && strings.EqualFold(c.name, "pid") && !allDigits([]byte(text)):
			return nil, false
		case c.named, i == 0 && !t.named && !c.hit && text != "" && isLetter(text[0]): // whose, whatever the column is called
			names = append(names, text)
		default:
			good = good || c.hit && isNumber(text)
		}
	}
	return names, good
}

// cell puts the value of a cell, or both of USAGE / LIMIT.
func (l *Levels) cell(t *table, i int, text string, id identity, s *stamped) {
	c := &t.columns[i]
	parts, classes := []string{text}, []*class{c.class}
	if c.part != nil {
		parts, classes = strings.SplitN(text, "/", 2), []*class{c.part, c.whole}
	}
	id.words = "column " + c.name
	for k, p := range parts {
		if p = strings.TrimSpace(p); !isNumber(p) {
			continue
		}
		end, raw, unit, ok := scanNumber([]byte(p), 0)
		if rest := strings.TrimSpace(p[end:]); rest != "" {
			ok, unit = ok && unitAt([]byte(rest)) > 0, []byte(rest)
		}
		if !ok {
			if t.separator == 0 {
				continue
			}
			raw, unit = []byte(p), nil
		}
		own := *classes[k]
		if own.q == unknown && t.named {
			own.q, own.why = Used, "" // the memory of a process, a pod or a container is what it uses
		}
		if own.unit == "" && t.kib && len(unit) == 0 {
			own.unit = "kib"
		}
		l.put(s, id, &field{[]byte(c.name), raw, unit, &own, 4*i + k})
	}
}

// fits reports whether a row has a field for each column (the last takes the rest), and numbers where
// the levels are.
func (t *table) fits(f [][]byte) bool {
	if len(f) < len(t.columns) || len(f) > len(t.columns) && !t.named {
		return false
	}
	for i := range t.columns {
		if c := t.columns[i].class; c.hit && c.q.level() && !isNumber(string(f[i])) {
			return false
		}
	}
	return true
}

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && isDigit(s[0])
}
