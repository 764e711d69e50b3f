package profile

import (
	"bufio"
	"encoding/json"
	"slices"
	"strconv"
)

// speedscopeSchema is what files of speedscope.app name as theirs.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

// writeSpeedscope writes the file format of speedscope.app: one profile of bytes,
// one of allocations.
func writeSpeedscope(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) ([]string, error) {
	type frame struct {
		Name string `json:"name"`
		File string `json:"file,omitempty"`
		Line int    `json:"line,omitempty"`
	}
	s := n.stacks(d)
	number := make([]uint32, n.Sites()) // by SiteID: 1 + the frame's number
	var order []SiteID
	var stack []SiteID
	for i := range s.rows() {
		stack = s.append(stack[:0], i)
		for _, f := range slices.Backward(stack) {
			if number[f] == 0 {
				order = append(order, f)
				number[f] = uint32(len(order))
			}
		}
	}
	w.WriteString(`{"$schema":"` + speedscopeSchema + `","exporter":`)
	writeJSON(w, or(o.Program, "btheap"))
	w.WriteString(`,"name":`)
	writeJSON(w, or(d.Name, "live allocations"))
	w.WriteString(`,"activeProfileIndex":0,"shared":{"frames":[`)
	for i, id := range order {
		if i > 0 {
			w.WriteString(",\n")
		}
		at := n.Site(id)
		writeJSON(w, frame{or(at.Func, at.String()), at.File, at.Line})
	}
	w.WriteString(`]},"profiles":[`)
	for p, weight := range []Weight{Bytes, Count} {
		name, unit := "bytes", "bytes"
		if weight == Count {
			name, unit = "allocations", "none"
		}
		if p > 0 {
			w.WriteByte(',')
		}
		var total Value
		for i := range s.rows() {
			total.Add(*s.sums.at(i))
		}
		w.WriteString(`{"type":"sampled","name":"` + name + `","unit":"` + unit + `","startValue":0,"endValue":`)
		w.WriteString(strconv.FormatUint(weight.Of(total), 10))
		w.WriteString(`,"samples":[`)
		for i := range s.rows() {
			if i > 0 {
				w.WriteString(",\n")
			}
			stack = s.append(stack[:0], i)
			w.WriteByte('[')
			for j, f := range slices.Backward(stack) {
				w.Write(strconv.AppendUint(w.AvailableBuffer(), uint64(number[f]-1), 10))
				if j > 0 {
					w.WriteByte(',')
				}
			}
			w.WriteByte(']')
		}
		w.WriteString(`],"weights":[`)
		for i := range s.rows() {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(strconv.FormatUint(weight.Of(*s.sums.at(i)), 10))
		}
		w.WriteString(`]}`)
	}
	_, err := w.WriteString("]}\n")
	return inexact(d, "speedscope"), err
}

// writeJSON writes a value that has a JSON form.
func writeJSON(w *bufio.Writer, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("profile: " + err.Error()) // strings and numbers always have one
	}
	w.Write(b)
}
