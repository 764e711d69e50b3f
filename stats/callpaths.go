package stats

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// CallPaths holds the size of the dump if it were recorded by call path: as text in the lines
// of spec/callpaths.md, and in the memory of a device. Sizes are in bytes.
type CallPaths struct {
	Paths   int          `json:"paths"` // distinct call paths that were encoded
	Records uint64       `json:"records"`
	Shift   int          `json:"shift"` // code offsets count units of 2^Shift bytes
	Code    uint64       `json:"code"`  // bytes of the code ranges, inferred from the addresses of the dump
	Partial bool         `json:"partial"`
	Deep    uint64       `json:"deep"` // allocations with more than 31 frames; only 31 of them count
	Forms   []PathForm   `json:"forms"`
	Memory  []PathMemory `json:"memory"`
}

// PathForm is the size of the dump as text, without ~h# lines.
type PathForm struct {
	Name    string  `json:"name"`
	Bytes   uint64  `json:"bytes"`
	Lines   uint64  `json:"lines"`
	PerPath float64 `json:"per_path"`
	Each    float64 `json:"per_allocation"`
	OfText  float64 `json:"of_text"`
}

// Names of forms of text.
const (
	PathText   = "~m# lines"
	PathHost   = "~p#, lines of 240"
	PathSerial = "~p#, lines of 120"
	PathOuter  = "~p#, outer frames by name"
	PathNames  = "~p#, known paths by name"
)

// PathMemory is the memory that a device takes for the live allocations.
type PathMemory struct {
	Word   int     `json:"word"`
	Inline uint64  `json:"inline"` // blobs of lws in front of the blocks, and the list nodes
	Packed uint64  `json:"packed"` // the same, with packed stacks in place of blobs
	Blocks uint64  `json:"blocks"` // with a table: the words of each block
	Nodes  uint64  `json:"nodes"`  // the table: frames
	Sums   uint64  `json:"sums"`   // the table: paths with live blocks
	Table  uint64  `json:"table"`  // Blocks, Nodes and Sums
	Share  float64 `json:"share"`  // Table / Inline
}

// maxEncoded is the largest number of frames of the call paths that are encoded. If there are more,
// the sizes are extrapolated.
const maxEncoded = 1 << 18

// textSize returns the length of all records as ~m# lines: their length in the log, or else
// the length of lines for blobs with these lengths.
func (c *Collector) textSize(blobs counts) uint64 {
	if c.hasText {
		return c.textBytes
	}
	total := uint64(0)
	for n, times := range blobs {
		total += times * uint64(len(codec.LeadIn)+(n+2)/3*4+1)
	}
	return total
}

// callPaths encodes the call paths, and adds up the memory that they take on a device.
func (v *view) callPaths(overhead []Overhead, text uint64) CallPaths {
	out := CallPaths{Records: v.records, Deep: v.deep}
	ranges, code := v.ranges()
	out.Shift, out.Code = int(ranges.Shift), code
	entries := v.entries(ranges)
	out.Paths, out.Partial = len(entries), v.paths.all.n > len(entries)
	scale := ratio(uint64(v.paths.all.n), uint64(max(1, len(entries))))
	scaled := func(n uint64) uint64 { return uint64(float64(n)*scale + 0.5) }
	form := func(name string, bytes, lines uint64) {
		out.Forms = append(out.Forms, PathForm{Name: name, Bytes: bytes, Lines: lines, PerPath: ratio(bytes, uint64(v.paths.all.n)),
			Each: ratio(bytes, v.records), OfText: ratio(bytes, text)})
	}
	form(PathText, text, v.records)
	for _, f := range []struct {
		name   string
		writer callpath.Writer
		named  bool
	}{{PathHost, callpath.Writer{}, false}, {PathSerial, callpath.Writer{Limit: callpath.MaxSerial}, false},
		{PathOuter, callpath.Writer{Whole: 8}, false}, {PathNames, callpath.Writer{Limit: callpath.MaxSerial}, true}} {
		bytes, lines := written(&f.writer, entries, f.named)
		form(f.name, scaled(bytes), scaled(lines))
	}
	nodes := scaled(countNodes(entries))
	for _, o := range overhead {
		w := uint64(o.Word / 8)
		m := PathMemory{Word: o.Word, Inline: o.Total, Packed: v.packed(o.Word, code>>ranges.Shift), Blocks: 2 * w * v.records,
			Nodes: w * nodes, Sums: (8 + w) * uint64(v.paths.all.n)}
		m.Table = m.Blocks + m.Nodes + m.Sums
		m.Share = ratio(m.Table, m.Inline)
		out.Memory = append(out.Memory, m)
	}
	return out
}

// ranges returns code ranges that hold all addresses of the dump, and their sum in bytes.
func (v *view) ranges() (r *callpath.Ranges, bytes uint64) {
	seen := map[uint64]struct{}{}
	v.eachPath(func(_ *path, pcs []uint64) {
		for _, pc := range pcs {
			seen[pc] = struct{}{}
		}
	})
	list, shift := callpath.InferRanges(slices.Collect(maps.Keys(seen)))
	r = &callpath.Ranges{Shift: uint8(shift)}
	for _, x := range list {
		r.Add(x, "")
		bytes += x.Length
	}
	return r, bytes
}

// entries returns the first call paths, with maxEncoded frames at most, in the order of their frames from the
// outermost on.
func (v *view) entries(r *callpath.Ranges) []callpath.Entry {
	var list []callpath.Entry
	left := maxEncoded
	v.eachPath(func(p *path, pcs []uint64) {
		if left -= len(pcs); left < 0 {
			return
		}
		e := callpath.Entry{Path: callpath.Path{Frames: make([]callpath.Frame, 0, len(pcs))}}
		for _, pc := range slices.Backward(pcs) {
			if r.Shift == 1 {
				pc &^= 1
			}
			e.Frames = append(e.Frames, r.Frame(pc))
		}
		for s := range v.paths.sizes(p) {
			e.Live, e.Bytes = e.Live+s.count, satAdd(e.Bytes, s.bytes)
		}
		list = append(list, e)
	})
	slices.SortFunc(list, func(a, b callpath.Entry) int { return callpath.Compare(&a.Path, &b.Path) })
	return list
}

// written returns the number of bytes and lines of entries, with line ends.
func written(w *callpath.Writer, entries []callpath.Entry, named bool) (size, lines uint64) {
	var buf []byte
	for i := range entries {
		e := entries[i]
		if named {
			e.Path = callpath.Path{Base: callpath.Named, Outer: e.Name()}
		}
		var err error
		if buf, err = w.Append(buf[:0], &e); err != nil {
			panic("stats: " + err.Error()) // at most MaxDepth frames, and the frames are of Ranges
		}
		size += uint64(len(buf))
	}
	buf = w.Flush(buf[:0])
	return size + uint64(len(buf)), w.Lines
}

// countNodes returns the number of nodes of the tree of all paths of sorted entries. A frame outside of
// the code ranges takes three.
func countNodes(entries []callpath.Entry) (n uint64) {
	var last []callpath.Frame
	for i := range entries {
		frames := entries[i].Frames
		common := 0
		for common < min(len(last), len(frames)) && last[common] == frames[common] {
			common++
		}
		for _, f := range frames[common:] {
			if n++; f.Escaped {
				n += 2
			}
		}
		last = frames
	}
	return n
}

// packed returns the memory that packed stacks in front of the blocks take: 12 bits for the
// depth and the number of bits of the size, the size, one code offset per frame, and 2 bytes
// for the length; together with the list node, padded to the alignment of device/.
func (v *view) packed(word int, units uint64) (total uint64) {
	ptr := word / 8
	width := bits.Len64(max(units, 2) - 1)
	v.eachPath(func(p *path, pcs []uint64) {
		for s := range v.paths.sizes(p) {
			n := (6+6+int(s.bits)+width*len(pcs)+7)/8 + 2
			total += s.count * uint64(roundUp(n+3*ptr, deviceAlign(word)))
		}
	})
	return total
}

func (r *Report) callPathsSection() Section {
	c := &r.CallPaths
	text := Table{ID: "text", Title: "The dump as text", Head: []string{"form", "bytes", "of ~m#", "lines", "per path", "per alloc."}}
	for _, f := range c.Forms {
		text.Rows = append(text.Rows, []any{f.Name, f.Bytes, percent(f.OfText), f.Lines, decimal(f.PerPath), decimal(f.Each)})
	}
	memory := targetTable(c.Memory, func(m PathMemory) int { return m.Word }, []targetRow[PathMemory]{
		{"inline, lws's blobs", func(m PathMemory) any { return m.Inline }},
		{"inline, packed", func(m PathMemory) any { return m.Packed }},
		{"table: words of blocks", func(m PathMemory) any { return m.Blocks }},
		{"table: frames", func(m PathMemory) any { return m.Nodes }},
		{"table: call paths", func(m PathMemory) any { return m.Sums }},
		{"table, total", func(m PathMemory) any { return m.Table }},
		{"table, of inline by lws", func(m PathMemory) any { return percent(m.Share) }},
	})
	memory.ID, memory.Title = "memory", "Memory on the device"
	s := Section{ID: "paths", Title: "6. Call paths", Tables: []Table{text, memory}, Notes: []string{
		fmt.Sprintf("Code ranges as the addresses show them: %s bytes, in units of %d. Paths are sorted; sizes have no ~h# lines.", count(c.Code), 1<<c.Shift),
		"A table as device/ has it, without spare places: 2 words for each block, a word for each frame, and 2 counts and a word for each path."}}
	if c.Deep > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%s have more than 31 frames, and count with the innermost 31.", printable.Count(c.Deep, "allocation")))
	}
	if c.Partial {
		s.Notes = append(s.Notes, fmt.Sprintf("Extrapolated from the first %s call paths.", count(uint64(c.Paths))))
	}
	return s
}
