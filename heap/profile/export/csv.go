package export

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// writeCSV writes a line per row: its value, its innermost frame, and all frames, innermost
// first.
func writeCSV(w *bufio.Writer, p *profile.Profile, _ Options) ([]string, error) {
	c := csv.NewWriter(w)
	c.Write([]string{"dump", "bytes", "count", "function", "file", "line", "stack"})
	d, _ := last(p)
	var names []string
	for row, v := range rows(p) {
		stack := row.Stack()
		names = names[:0]
		for _, s := range stack {
			names = append(names, foldedName.Replace(s.String()))
		}
		var first profile.Site
		if len(stack) > 0 {
			first = stack[0]
		}
		line := ""
		if first.Line > 0 {
			line = strconv.Itoa(first.Line)
		}
		if err := c.Write([]string{csvText(d.Name), strconv.FormatUint(v.Bytes, 10), strconv.FormatUint(v.Count, 10),
			csvText(cmp.Or(first.Func, first.Module)), csvText(first.File), line, csvText(strings.Join(names, ";"))}); err != nil {
			return nil, err
		}
	}
	c.Flush()
	return nil, c.Error()
}

// csvText returns a name for a cell of a spreadsheet. Names come from untrusted ELF files and
// logs. If a name begins like a formula, csvText adds an apostrophe in front, which makes it
// text.
func csvText(s string) string {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}
