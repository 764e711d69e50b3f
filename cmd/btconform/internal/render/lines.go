package render

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/codec/callpath"
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

// wordsOf returns what the codec reads in a line of Part III, without the verb; ok is false if it rejects it.
func wordsOf(op conformance.Op, line []byte) (words []string, ok bool) {
	codec, _ := conformance.Codec(context.Background())
	answers, err := codec.Ask([]conformance.Request{{Op: op, Data: line}})
	if err != nil || answers[0].Outcome != conformance.OK {
		return nil, false
	}
	return strings.Split(answers[0].Words, " "), true
}

// itemRow is some digits of a line, and the words that they say.
type itemRow struct{ digits, words string }

// items divides a ~p# or ~v# line into its items: the digits up to which it is whole if it ends there. What is
// not read is the last row.
func items(op conformance.Op, text string) []itemRow {
	crc := 3
	if op == "vline" {
		crc = 6
	}
	if lead := map[conformance.Op]string{"pline": "~p#", "vline": "~v#"}[op]; len(text) < 3+crc || len(text) > 300 || text[:3] != lead {
		return nil
	}
	body := text[3 : len(text)-crc]
	var rows []itemRow
	from, known := 0, 0
	for n := 1; n <= len(body); n++ {
		words, ok := wordsOf(op, callpath.AppendCRC([]byte(text[:3+n])))
		if ok {
			rows = append(rows, itemRow{body[from:n], strings.Join(words[known:], " ")})
			from, known = n, len(words)
		}
	}
	if len(rows) > 0 && from < len(body) {
		rows = append(rows, itemRow{body[from:], "(rejected)"})
	}
	return rows
}

// drawItems draws a line of Part III, item by item, with a caret under the first that differs.
func drawItems(f *conformance.Failure, r *conformance.Result) []string {
	text := *r.Vector.Text
	rows := items(r.Op, text)
	if len(rows) == 0 {
		return drawText(text, textPlace(f, r.Vector))
	}
	at := len(rows) - 1
	switch {
	case r.Vector.Rejects():
	case f.Answer.Outcome != conformance.OK: // which item it failed at is not known
		at = -1
	default:
		_, w, _ := conformance.FirstDifference(r.Op, f.Want, f.Got)
		before := strings.Count(f.Want[:min(w, len(f.Want))], " ") // words, the verb included
		at = 0
		for n := 0; at < len(rows)-1; at++ {
			if n += len(strings.Fields(rows[at].words)); n >= before {
				break
			}
		}
	}
	lines := []string{"  line  " + text[:3]}
	from := max(0, min(at-3, len(rows)-7))
	if from > 0 {
		lines = append(lines, fmt.Sprintf("        … %s before", cli.Count(from, "item")))
	}
	for i := from; i < min(len(rows), from+7); i++ {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-18s  %s", clipped(rows[i].digits, 18), clipped(rows[i].words, Width-22)), " "))
		if i == at {
			lines = append(lines, "  ^")
		}
	}
	if rest := len(rows) - from - 7; rest > 0 {
		lines = append(lines, fmt.Sprintf("        … %s after", cli.Count(rest, "item")))
	}
	return lines
}

// logLines is how many lines of a log are drawn.
const logLines = 12

// drawLog draws a log around the line that the first difference is about: lines of Part III in words.
func drawLog(f *conformance.Failure, r *conformance.Result) (out []string) {
	var lines []string
	at, offset := -1, 0
	_, w, _ := conformance.FirstDifference(r.Op, f.Want, f.Got)
	about := wordAt(f.Want, w)
	for raw := range strings.Lines(*r.Vector.Text) {
		line := strings.TrimRight(raw, "\r\n")
		for op, lead := range map[conformance.Op]string{"pline": "~p#", "vline": "~v#"} {
			if words, ok := wordsOf(op, []byte(line)); ok {
				line = lead + " " + strings.Join(words, " ")
			}
		}
		if concerns(about, line, offset, len(raw)) {
			at = len(lines)
		}
		offset += len(raw)
		lines = append(lines, clipped(cli.Printable(line), Width-8))
	}
	from := max(0, min(at-logLines/2, len(lines)-logLines))
	if from > 0 {
		out = append(out, fmt.Sprintf("        … %s before", cli.Count(from, "line")))
	}
	for i := from; i < min(len(lines), from+logLines); i++ {
		out = append(out, []string{"        ", "  log   "}[b2i(i == from)]+lines[i])
		if i == at && r.Op == "log" {
			out = append(out, "        ^")
		}
	}
	if rest := len(lines) - from - logLines; rest > 0 {
		out = append(out, fmt.Sprintf("        … %s after", cli.Count(rest, "line")))
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wordAt returns the word of a text that holds byte at.
func wordAt(text string, at int) string {
	at = min(at, len(text))
	from := strings.LastIndexByte(text[:at], ' ') + 1
	word, _, _ := strings.Cut(text[from:], " ")
	return word
}

// concerns reports whether a line of a log at this offset is what a word of an answer is about: the place of
// a record, the entries of a path, or the number of a dump.
func concerns(word, line string, offset, length int) bool {
	first, _, _ := strings.Cut(word, ";")
	if _, place, ok := strings.Cut(first, "@"); ok && !strings.Contains(first, ":") {
		n, err := strconv.Atoi(strings.Split(place, "+")[0])
		return err == nil && n >= offset && n < offset+length
	}
	if dump, ok := strings.CutPrefix(first, "dump="); ok {
		return strings.HasPrefix(line, "~h#begin "+dump) || strings.HasPrefix(line, "~h#end "+dump)
	}
	return strings.Contains(line, " "+first+";")
}
