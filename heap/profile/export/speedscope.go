package export

import (
	"bufio"
	"cmp"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// speedscopeSchema is the "$schema" of the files of speedscope.app.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// writeSpeedscope writes the file format of speedscope.app: one profile of bytes,
// one of allocations.
func writeSpeedscope(w *bufio.Writer, p *profile.Profile, o Options) ([]string, error) {
	d, last := last(p)
	w.WriteString(`{"$schema":"` + speedscopeSchema + `","exporter":`)
	writeJSON(w, cmp.Or(o.Program, "btheap"))
	w.WriteString(`,"name":`)
	writeJSON(w, cmp.Or(d.Name, "live allocations"))
	w.WriteString(`,"activeProfileIndex":0,"shared":{"frames":[`)
	sites := newSiteTree(p)
	s := speedscope{Writer: w, sites: sites, total: p.Total(last)}
	for row, v := range rows(p) {
		s.nodes = append(s.nodes, sites.row(row))
		s.values = append(s.values, v)
	}
	writeJoined(w, ",\n", slices.Values(sites.sites), func(s profile.Site) {
		writeJSON(w, speedscopeFrame{cmp.Or(s.Func, s.String()), s.File, s.Line})
	})
	w.WriteString(`]},"profiles":[`)
	s.write(profile.Bytes, `"bytes","unit":"bytes"`)
	w.WriteByte(',')
	s.write(profile.Count, `"allocations","unit":"none"`)
	_, err := w.WriteString("]}\n")
	return inexact(d, "speedscope"), err
}

// speedscope has the rows that are written.
type speedscope struct {
	*bufio.Writer
	sites  *siteTree
	nodes  []uint32 // by row
	values []profile.Value
	total  profile.Value
}

// write writes the rows with one weight.
func (s *speedscope) write(weight profile.Weight, name string) {
	s.WriteString(`{"type":"sampled","name":` + name + `,"startValue":0,"endValue":`)
	writeUint(s.Writer, weight.Of(s.total))
	s.WriteString(`,"samples":[`)
	var stack []uint32
	writeJoined(s.Writer, ",\n", slices.Values(s.nodes), func(node uint32) {
		s.WriteByte('[')
		stack = s.sites.append(stack[:0], node)
		for i, site := range slices.Backward(stack) {
			writeUint(s.Writer, uint64(site))
			if i > 0 {
				s.WriteByte(',')
			}
		}
		s.WriteByte(']')
	})
	s.WriteString(`],"weights":[`)
	writeJoined(s.Writer, ",", slices.Values(s.values), func(v profile.Value) { writeUint(s.Writer, weight.Of(v)) })
	s.WriteString(`]}`)
}
