package profile

import (
	"bufio"
	"slices"
	"strconv"
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
	writeJSON(w, or(o.Program, "btheap"))
	w.WriteString(`,"name":`)
	writeJSON(w, or(d.Name, "live allocations"))
	w.WriteString(`,"activeProfileIndex":0,"shared":{"frames":[`)
	number := p.writeSpeedscopeFrames(w)
	w.WriteString(`]},"profiles":[`)
	p.writeSpeedscopeProfile(w, number, p.Total(last), Bytes, "bytes", "bytes")
	w.WriteByte(',')
	p.writeSpeedscopeProfile(w, number, p.Total(last), Count, "allocations", "none")
	_, err := w.WriteString("]}\n")
	return inexact(d, "speedscope"), err
}

// writeSpeedscopeFrames writes the frames that rows have, and returns their numbers.
func (p *Profile) writeSpeedscopeFrames(w *bufio.Writer) (number map[uint32]int) {
	rows := p.rows()
	number = map[uint32]int{} // by site
	for row := range p.lastRows() {
		for _, s := range slices.Backward(rows.stack(row)) {
			if _, known := number[s]; known {
				continue
			}
			if len(number) > 0 {
				w.WriteString(",\n")
			}
			number[s] = len(number)
			at := rows.names.siteAt(s)
			writeJSON(w, speedscopeFrame{or(at.Func, at.String()), at.File, at.Line})
		}
	}
	return number
}

func (p *Profile) writeSpeedscopeProfile(w *bufio.Writer, number map[uint32]int, total Value, weight Weight, name, unit string) {
	rows := p.rows()
	w.WriteString(`{"type":"sampled","name":"` + name + `","unit":"` + unit + `","startValue":0,"endValue":`)
	w.WriteString(strconv.FormatUint(weight.Of(total), 10))
	w.WriteString(`,"samples":[`)
	separator := ""
	for row := range p.lastRows() {
		w.WriteString(separator)
		separator = ",\n"
		w.WriteByte('[')
		for i, s := range slices.Backward(rows.stack(row)) {
			w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(number[s]), 10))
			if i > 0 {
				w.WriteByte(',')
			}
		}
		w.WriteByte(']')
	}
	w.WriteString(`],"weights":[`)
	separator = ""
	for _, v := range p.lastRows() {
		w.WriteString(separator)
		separator = ","
		w.WriteString(strconv.FormatUint(weight.Of(v), 10))
	}
	w.WriteString(`]}`)
}
