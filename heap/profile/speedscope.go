package profile

import (
	"bufio"
	"cmp"
	"slices"
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
func writeSpeedscope(w *bufio.Writer, p *Profile, o ExportOptions) ([]string, error) {
	d, last := p.last()
	w.WriteString(`{"$schema":"` + speedscopeSchema + `","exporter":`)
	writeJSON(w, cmp.Or(o.Program, "btheap"))
	w.WriteString(`,"name":`)
	writeJSON(w, cmp.Or(d.Name, "live allocations"))
	w.WriteString(`,"activeProfileIndex":0,"shared":{"frames":[`)
	rows, number := p.rows(), map[uint32]uint64{} // by site
	frames := func(yield func(Site) bool) {
		for row := range p.lastRows() {
			for _, s := range slices.Backward(rows.stack(row.number)) {
				if _, known := number[s]; known {
					continue
				}
				number[s] = uint64(len(number))
				if !yield(rows.names.siteAt(s)) {
					return
				}
			}
		}
	}
	writeJoined(w, ",\n", frames, func(s Site) { writeJSON(w, speedscopeFrame{cmp.Or(s.Func, s.String()), s.File, s.Line}) })
	w.WriteString(`]},"profiles":[`)
	total := p.Total(last)
	p.writeSpeedscopeProfile(w, number, total, Bytes, `"bytes","unit":"bytes"`)
	w.WriteByte(',')
	p.writeSpeedscopeProfile(w, number, total, Count, `"allocations","unit":"none"`)
	_, err := w.WriteString("]}\n")
	return inexact(d, "speedscope"), err
}

// writeSpeedscopeProfile writes the rows with one weight. number has the numbers of the sites.
func (p *Profile) writeSpeedscopeProfile(w *bufio.Writer, number map[uint32]uint64, total Value, weight Weight, name string) {
	rows := p.rows()
	w.WriteString(`{"type":"sampled","name":` + name + `,"startValue":0,"endValue":`)
	writeUint(w, weight.Of(total))
	w.WriteString(`,"samples":[`)
	writeJoined(w, ",\n", p.lastRows(), func(row lastRow) {
		w.WriteByte('[')
		for i, s := range slices.Backward(rows.stack(row.number)) {
			writeUint(w, number[s])
			if i > 0 {
				w.WriteByte(',')
			}
		}
		w.WriteByte(']')
	})
	w.WriteString(`],"weights":[`)
	writeJoined(w, ",", p.lastRows(), func(row lastRow) { writeUint(w, weight.Of(row.Value)) })
	w.WriteString(`]}`)
}
