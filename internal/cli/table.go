package cli

import (
	"bytes"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Table is a table of text in the style of all commands: no borders, a line below the
// headings, numbers to the right. Each column has a heading.
type Table struct {
	Head  []string
	Right []bool // by column: whether it is aligned to the right; false for missing elements
	Rows  [][]string
	// Each, if not nil, is used instead of Rows, for tables too large to hold: Write
	// calls it twice.
	Each iter.Seq[[]string]
	// Width is the maximum width of a line in columns of text, 0 for no limit. The last
	// column is cut to fit, with an ellipsis, but not below minLast columns of text.
	Width int
}

// gap is the spaces between columns.
const gap = 2

// minLast is the smallest width of the last column.
const minLast = 20

// columns is the width of characters, not by the locale: bars and ellipses have one column.
var columns = &runewidth.Condition{}

// Write writes the table. Cells are printed as they are: the caller escapes them.
func (t *Table) Write(w io.Writer) error {
	each := t.Each
	if each == nil {
		each = slices.Values(t.Rows)
	}
	widths := t.widths(each)
	if err := t.row(w, t.Head, widths); err != nil {
		return err
	}
	rule := 0 // ends with a gap, where there is space for it
	for _, n := range widths {
		rule += n + gap
	}
	if t.Width > 0 {
		rule = min(rule, max(t.Width, rule-gap))
	}
	line := strings.Repeat("-", rule) + "\n"
	for r := range each {
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		if err := t.row(w, r, widths); err != nil {
			return err
		}
		line = ""
	}
	return nil
}

// row writes a row, without spaces at its end.
func (t *Table) row(w io.Writer, cells []string, widths []int) error {
	var line []byte
	for i, c := range cells {
		if t.Width > 0 && i == len(widths)-1 {
			c = Fit(c, widths[i])
		}
		space := bytes.Repeat([]byte(" "), max(0, widths[i]-columns.StringWidth(c)))
		if i < len(t.Right) && t.Right[i] {
			line = append(append(line, space...), c...)
		} else if line = append(line, c...); i < len(cells)-1 {
			line = append(line, space...)
		}
		line = append(line, strings.Repeat(" ", gap)...)
	}
	_, err := w.Write(append(bytes.TrimRight(line, " "), '\n'))
	return err
}

// widths returns the widths of the columns, without gaps.
func (t *Table) widths(each iter.Seq[[]string]) []int {
	widths := make([]int, len(t.Head))
	for i, h := range t.Head {
		widths[i] = columns.StringWidth(h)
	}
	for r := range each {
		for i, c := range r {
			widths[i] = max(widths[i], columns.StringWidth(c))
		}
	}
	if last := len(widths) - 1; t.Width > 0 {
		most := t.Width
		for _, n := range widths[:last] {
			most -= n + gap
		}
		widths[last] = min(widths[last], max(most, minLast, columns.StringWidth(t.Head[last])))
	}
	return widths
}

// Wrap breaks text between words, and at line ends, into lines of at most n characters. A longer
// word has a line of its own.
func Wrap(text string, n int) (lines []string) {
	for whole := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.SplitSeq(whole, " ") {
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n:
				lines = append(lines, strings.TrimRight(line, " "))
				line = word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Fit returns s cut to n columns of text. In "function file:line" it drops directories
// first, and then the middle of the function; in other text it drops the middle.
func Fit(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	i := strings.LastIndexByte(s, ' ')
	name, place := s[:max(i, 0)], s[i+1:]
	if i < 0 || !isPlace.MatchString(place) {
		return middle(s, n)
	}
	place = place[strings.LastIndexAny(place, `/\`)+1:]
	width := utf8.RuneCountInString(place)
	if width > n/2 {
		width = min(width, max(n/2, n-1-utf8.RuneCountInString(name)))
		place = middle(place, width)
	}
	return middle(name, n-1-width) + " " + place
}

// isPlace matches a file and a line.
var isPlace = regexp.MustCompile(`^\S+:[0-9]+$`)

// middle returns s cut to n columns, with an ellipsis for its middle.
func middle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 4 {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
