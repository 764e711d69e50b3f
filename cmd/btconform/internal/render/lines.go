package render

import (
	"strings"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// compared shows two answers around the first field that differs, with a caret under it and its name.
func compared(op conformance.Op, want, got string) []string {
	field, w, g := conformance.FirstDifference(op, want, got)
	if field == "outcome" {
		return append(few(answer("want  ", want)), few(answer("got   ", got))...)
	}
	if field == "" || len(want) <= maxShown && len(got) <= maxShown && w < 60 && strings.Count(want, " ") < 3 {
		return append(answer("want  ", want), answer("got   ", got)...)
	}
	wantLine, _ := around(cli.Printable(want), w)
	gotLine, column := around(cli.Printable(got), g)
	name := map[string]string{"less": "the answer ends early", "more": "the answer goes on"}[field]
	if name == "" {
		name = field
	}
	caret := strings.Repeat(" ", len("  got   ")+column) + "^ " + name
	if len(caret) > Width {
		caret = strings.Repeat(" ", len("  got   ")+max(0, column-len(name)-1)) + name + " ^"
	}
	return []string{"  want  " + wantLine, "  got   " + gotLine, caret}
}

// few returns the first lines of an answer.
func few(lines []string) []string {
	const most = 4
	if len(lines) > most {
		lines = append(lines[:most:most], "        …")
	}
	return lines
}

// around returns the part of a text around byte at, in one line, and the column of the byte in it.
func around(text string, at int) (line string, column int) {
	const room, before = Width - len("  want  "), 48
	at = min(at, len(text))
	from := 0
	if at > before {
		from = at - before
		if space := strings.IndexAny(text[from:at], " ;"); space >= 0 {
			from += space + 1
		}
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
	}
	line = text[from:]
	column = at - from
	if from > 0 {
		line, column = "… "+line, column+2
	}
	return clipped(line, room), column
}

// clipped cuts a text to a number of columns.
func clipped(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-2]) + " …"
}
