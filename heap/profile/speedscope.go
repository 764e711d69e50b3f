package profile

import (
	"bufio"
	"cmp"
	"iter"
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
		for s := range p.lastSites() {
			if _, known := number[s]; known {
				continue
			}
			number[s] = uint64(len(number))
			if !yield(rows.names.siteAt(s)) {
				return
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

// lastSites yields the sites of the rows with a value in the last dump, each row from the outermost
// site inward, those of a node of the tree once.
func (p *Profile) lastSites() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		rows := p.rows()
		var seen []bool // by node
		var stack []uint32
		for row := range p.lastRows() {
			node, tail := rows.stacks.stack(rows.stackOf(row.number))
			if n := int(node) + 1; n > len(seen) {
				seen = slices.Grow(seen, n-len(seen))[:n]
			}
			stack = append(stack[:0], tail...)
			for node != 0 && !seen[node] {
				n := rows.stacks.nodes.at(int(node))
				seen[node] = true
				stack, node = append(stack, n.value), n.parent
			}
			for _, site := range slices.Backward(stack) {
				if !yield(site) {
					return
				}
			}
		}
	}
}

// writeSpeedscopeProfile writes the rows with one weight. number has the numbers of the sites.
func (p *Profile) writeSpeedscopeProfile(w *bufio.Writer, number map[uint32]uint64, total Value, weight Weight, name string) {
	rows := p.rows()
	w.WriteString(`{"type":"sampled","name":` + name + `,"startValue":0,"endValue":`)
	writeUint(w, weight.Of(total))
	w.WriteString(`,"samples":[`)
	var stack []uint32
	writeJoined(w, ",\n", p.lastRows(), func(row lastRow) {
		w.WriteByte('[')
		stack = rows.stack(stack[:0], row.number)
		for i, s := range slices.Backward(stack) {
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
