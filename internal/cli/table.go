package cli

import (
	"bytes"
	"cmp"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/tw"
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

// Write writes the table. Cells are printed as they are: the caller escapes them.
func (t *Table) Write(w io.Writer) error {
	each := t.Each
	if each == nil {
		each = slices.Values(t.Rows)
	}
	last := len(t.Head) - 1
	widths := t.widths(each)
	lines := &trimmer{w: w}
	open := t.Width == 0 && (last >= len(t.Right) || !t.Right[last])
	if open { // the last cell of a row may be very wide: the others are not filled with spaces to that width
		for _, n := range widths {
			lines.rule += n + gap
		}
		widths[last] = twwidth.Width(t.Head[last])
		lines.last = widths[last] + gap
	}
	out := t.writer(lines, widths)
	if err := out.Start(); err != nil {
		return err
	}
	out.Header(t.Head)
	for r := range each {
		if len(r) == last+1 && t.Width > 0 {
			r = slices.Clone(r)
			r[last] = Fit(r[last], widths[last])
		}
		if len(r) == last+1 && open {
			r = slices.Clone(r)
			lines.cell, r[last] = r[last], ""
		}
		if err := cmp.Or(out.Append(r), lines.err); err != nil {
			return err
		}
	}
	return cmp.Or(out.Close(), lines.err)
}

// widths returns the widths of the columns, without gaps.
func (t *Table) widths(each iter.Seq[[]string]) []int {
	widths := make([]int, len(t.Head))
	for i, h := range t.Head {
		widths[i] = twwidth.Width(h)
	}
	for r := range each {
		for i, c := range r {
			widths[i] = max(widths[i], twwidth.Width(c))
		}
	}
	if last := len(widths) - 1; t.Width > 0 {
		most := t.Width
		for _, n := range widths[:last] {
			most -= n + gap
		}
		widths[last] = min(widths[last], max(most, minLast, twwidth.Width(t.Head[last])))
	}
	return widths
}

// writer returns the writer of a table with columns of these widths. It writes each row at once.
func (t *Table) writer(w io.Writer, widths []int) *tablewriter.Table {
	n := len(widths)
	align, padding, padded := make([]tw.Align, n), make([]tw.Padding, n), tw.NewMapper[int, int]()
	total := 0
	for i := range n {
		align[i], padding[i] = tw.AlignLeft, tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}
		if i < len(t.Right) && t.Right[i] {
			align[i] = tw.AlignRight
		}
		if over := total + widths[i] + gap - t.Width; i == n-1 && t.Width > 0 && over > 0 {
			padding[i].Right = strings.Repeat(" ", max(gap-over, 0)) // the line below the headings has the gap, too
		}
		padded.Set(i, widths[i]+len(padding[i].Right))
		total += widths[i] + gap
	}
	return tablewriter.NewTable(w,
		tablewriter.WithStreaming(tw.StreamConfig{Enable: true, StrictColumns: true}),
		tablewriter.WithWidths(tw.CellWidth{PerColumn: padded}),
		tablewriter.WithAlignment(align),
		tablewriter.WithHeaderPaddingPerColumn(padding),
		tablewriter.WithRowPaddingPerColumn(padding),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithEastAsian(tw.Off), // not by the locale: bars and ellipses have one column
		tablewriter.WithSymbols(tw.NewSymbols(tw.StyleASCII)),
		tablewriter.WithRendition(tw.Rendition{Borders: tw.BorderNone, Settings: tw.Settings{
			Lines:      tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On},
			Separators: tw.Separators{ShowHeader: tw.On, BetweenRows: tw.Off, BetweenColumns: tw.Off},
		}}))
}

// trimmer is a writer that removes the spaces at the ends of lines. It writes whole lines, and
// keeps the first error, because a tablewriter ignores it.
type trimmer struct {
	w    io.Writer
	line []byte // the beginning of a line
	err  error

	// If rule is not 0, the second line has so many dashes, and cell replaces the last bytes of each
	// line after it, which are spaces.
	rule, last int
	cell       string
	lines      int // that were written
}

func (t *trimmer) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		t.line = append(t.line, part...)
		if bytes.HasSuffix(part, []byte("\n")) {
			t.end()
		}
	}
	return len(p), t.err
}

// end writes the line.
func (t *trimmer) end() {
	switch {
	case t.rule > 0 && t.lines == 1:
		t.line = append(t.line[:0], strings.Repeat("-", t.rule)...)
	case t.rule > 0 && t.lines > 1:
		t.line = append(t.line[:len(t.line)-len("\n")-t.last], t.cell...)
	}
	if t.err == nil {
		_, t.err = t.w.Write(append(bytes.TrimRight(t.line, " \n"), '\n'))
	}
	t.line = t.line[:0]
	t.lines++
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
