package profile

import (
	"bufio"
	"fmt"
	"slices"
)

// heaptrackVersion is the program version that files of format 3 come from.
const heaptrackVersion = 0x10400

// heaptrackMost is how many allocations are written at most.
const heaptrackMost = 100_000_000

// writeHeaptrack writes what heaptrack_print and heaptrack_gui read, in file format
// 3: each allocation of the dump, and that it was not freed. A call path keeps its
// bytes and allocations and not their single sizes: they are written as near to
// equal as adds up.
func writeHeaptrack(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) ([]string, error) {
	if d.Total.Count > heaptrackMost {
		return nil, fmt.Errorf("heaptrack: the format takes a line per allocation, and %d are too many", d.Total.Count)
	}
	fmt.Fprintf(w, "v %x 3\nX %s\nI 1000 0\n", heaptrackVersion, or(o.Command, or(d.Name, "btheap")))
	h := &heaptrackWriter{w: w, names: n, strings: map[string]int{}}
	t := &trie{}
	var stack, path []SiteID
	for id := range d.Values() {
		var shown bool
		if stack, shown = n.AppendStack(stack[:0], id); shown {
			path = h.appendPath(path[:0], id)
			t.add(uint32(id), path)
		}
	}
	// In the order of the tree, only the traces of the current path need be known.
	t.order(t.branches, 0)
	infos := 0
	for _, b := range t.branches {
		id := PathID(t.path(b))
		v := d.Value(id)
		if v.Count == 0 {
			continue
		}
		path = h.appendPath(path[:0], id)
		trace := h.trace(path)
		size, larger := v.Bytes/v.Count, v.Bytes%v.Count
		for _, part := range []Value{{size + 1, larger}, {size, v.Count - larger}} {
			if part.Count == 0 {
				continue
			}
			fmt.Fprintf(w, "a %x %x\n", part.Bytes, trace)
			for range part.Count {
				if _, err := fmt.Fprintf(w, "+ %x\n", infos); err != nil {
					return nil, err
				}
			}
			infos++
		}
	}
	_, err := fmt.Fprintf(w, "c %x\n", d.Time/1000)
	return nil, err
}

type heaptrackWriter struct {
	w       *bufio.Writer
	names   *Names
	strings map[string]int
	ips     array[uint32] // by LocationID: the instruction pointer
	written uint32        // instruction pointers
	path    []LocationID
	current []SiteID // locations that the last trace was of, outermost first,
	traces  []int    // and the traces down to each
	last    int      // traces written
}

// appendPath appends the locations of a call path of which the view shows something,
// outermost first.
func (h *heaptrackWriter) appendPath(dst []SiteID, path PathID) []SiteID {
	h.path = h.names.prof.AppendPath(h.path[:0], path)
	for _, l := range slices.Backward(h.path) {
		if !h.names.allHidden(l) {
			dst = append(dst, SiteID(l))
		}
	}
	return dst
}

// str is the number of a string, from 1; 0 is none.
func (h *heaptrackWriter) str(s string) int {
	if s == "" {
		return 0
	}
	i := h.strings[s]
	if i == 0 {
		i = len(h.strings) + 1
		h.strings[s] = i
		fmt.Fprintf(h.w, "s %x %s\n", len(s), s)
	}
	return i
}

// ip is the number of an instruction pointer.
func (h *heaptrackWriter) ip(id LocationID) uint32 {
	for h.ips.n <= int(id) {
		h.ips.push(0)
	}
	ip := h.ips.at(int(id))
	if *ip != 0 {
		return *ip
	}
	l := h.names.prof.LocationAt(id)
	module := 0
	if l.Module != nil {
		module = h.str(l.Module.Path)
	}
	line := ""
	if len(l.Frames) > 0 {
		frames := h.names.Shown(id)
		for i, f := range frames {
			fn, file := h.str(f.Func), h.str(f.File)
			if i == 0 && file == 0 && len(frames) == 1 {
				line = fmt.Sprintf(" %x", fn)
				break
			}
			line += fmt.Sprintf(" %x %x %x", fn, file, f.Line)
		}
	}
	h.written++
	*ip = h.written
	fmt.Fprintf(h.w, "i %x %x%s\n", l.Call, module, line)
	return *ip
}

// trace is the number of a call path's trace, 0 if it is empty. What it has in
// common with the one before has been written.
func (h *heaptrackWriter) trace(path []SiteID) int {
	common := 0
	for common < min(len(path), len(h.current)) && path[common] == h.current[common] {
		common++
	}
	h.current, h.traces = append(h.current[:common], path[common:]...), h.traces[:common]
	for _, l := range path[common:] {
		ip, parent := h.ip(LocationID(l)), 0
		if n := len(h.traces); n > 0 {
			parent = h.traces[n-1]
		}
		h.last++
		h.traces = append(h.traces, h.last)
		fmt.Fprintf(h.w, "t %x %x\n", ip, parent)
	}
	if len(path) == 0 {
		return 0
	}
	return h.traces[len(path)-1]
}
