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
	index := map[SiteID]int{}
	var order []SiteID
	s := n.stacks(d)
	var stack []LocationID
	for i := range s.sums.n {
		stack = s.append(stack[:0], i)
		for _, f := range stack {
			if _, ok := index[SiteID(f)]; !ok {
				index[SiteID(f)] = len(order)
				order = append(order, SiteID(f))
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
		for i := range s.sums.n {
			total.Add(*s.sums.at(i))
		}
		w.WriteString(`{"type":"sampled","name":"` + name + `","unit":"` + unit + `","startValue":0,"endValue":`)
		w.WriteString(strconv.FormatUint(weight.Of(total), 10))
		w.WriteString(`,"samples":[`)
		for i := range s.sums.n {
			if i > 0 {
				w.WriteString(",\n")
			}
			stack = s.append(stack[:0], i)
			list := make([]int, 0, len(stack))
			for _, f := range stack {
				list = append(list, index[SiteID(f)])
			}
			writeJSON(w, list)
		}
		w.WriteString(`],"weights":[`)
		for i := range s.sums.n {
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

// stackSites lists the sites of a stack, innermost first.
func (n *Names) stackSites(stack []LocationID) []Site {
	list := make([]Site, 0, len(stack))
	for _, f := range slices.Backward(stack) {
		list = append(list, n.Site(SiteID(f)))
	}
	return list
}
