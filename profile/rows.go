package profile

import (
	"bufio"
	"encoding/csv"
	"strconv"
	"strings"
)

// jsonStack is a call path of jsonl output.
type jsonStack struct {
	Dump   string      `json:"dump,omitempty"`
	Bytes  uint64      `json:"bytes"`
	Count  uint64      `json:"count"`
	Frames []jsonFrame `json:"frames"` // innermost first
}

type jsonFrame struct {
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Module   string `json:"module,omitempty"`
}

// writeJSONL writes an object per call path.
func writeJSONL(w *bufio.Writer, n *Names, d *Dump, _ ExportOptions) ([]string, error) {
	s := n.stacks(d)
	var stack []SiteID
	var sites []Site
	for i := range s.rows() {
		v := *s.sums.at(i)
		stack = s.append(stack[:0], i)
		sites = n.appendSites(sites[:0], stack)
		row := jsonStack{d.Name, v.Bytes, v.Count, []jsonFrame{}}
		for _, f := range sites {
			row.Frames = append(row.Frames, jsonFrame{f.Func, f.File, f.Line, f.Module})
		}
		writeJSON(w, row)
		if err := w.WriteByte('\n'); err != nil {
			return nil, err
		}
	}
	return inexact(d, "jsonl"), nil
}

// writeCSV writes a row per call path: what it holds, its innermost frame, and all
// of it, innermost first.
func writeCSV(w *bufio.Writer, n *Names, d *Dump, _ ExportOptions) ([]string, error) {
	s := n.stacks(d)
	c := csv.NewWriter(w)
	c.Write([]string{"dump", "bytes", "count", "function", "file", "line", "stack"})
	var stack []SiteID
	var sites []Site
	var names []string
	for i := range s.rows() {
		v := *s.sums.at(i)
		stack = s.append(stack[:0], i)
		sites = n.appendSites(sites[:0], stack)
		names = names[:0]
		for _, f := range sites {
			names = append(names, foldedName.Replace(f.String()))
		}
		first := Site{}
		if len(sites) > 0 {
			first = sites[0]
		}
		line := ""
		if first.Line > 0 {
			line = strconv.Itoa(first.Line)
		}
		if err := c.Write([]string{csvText(d.Name), strconv.FormatUint(v.Bytes, 10), strconv.FormatUint(v.Count, 10),
			csvText(or(first.Func, first.Module)), csvText(first.File), line, csvText(strings.Join(names, ";"))}); err != nil {
			return nil, err
		}
	}
	c.Flush()
	return nil, c.Error()
}

// csvText returns a name for a cell of a spreadsheet. One that begins as a formula does
// would be computed, and names come from ELF files and logs that are not trusted: it gets
// an apostrophe in front, which makes it text.
func csvText(s string) string {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}
