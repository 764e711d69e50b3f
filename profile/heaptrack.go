package profile

import (
	"bufio"
	"fmt"
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
	h := &heaptrackWriter{w: w, strings: map[string]int{}, ips: map[LocationID]int{}, traces: map[[2]int]int{}}
	fmt.Fprintf(w, "v %x 3\nX %s\nI 1000 0\n", heaptrackVersion, or(o.Command, or(d.Name, "btheap")))
	if d.Total.Count > heaptrackMost {
		return nil, fmt.Errorf("heaptrack: the format takes a line per allocation, and %d are too many", d.Total.Count)
	}
	infos := 0
	err := n.locationStacks(d, func(path []LocationID, v Value) error {
		if v.Count == 0 {
			return nil
		}
		trace := 0
		for i := len(path) - 1; i >= 0; i-- {
			if ip := h.ip(n, path[i]); ip > 0 {
				trace = h.trace(ip, trace)
			}
		}
		size, larger := v.Bytes/v.Count, v.Bytes%v.Count
		for _, part := range []Value{{size + 1, larger}, {size, v.Count - larger}} {
			if part.Count == 0 {
				continue
			}
			fmt.Fprintf(w, "a %x %x\n", part.Bytes, trace)
			for range part.Count {
				if _, err := fmt.Fprintf(w, "+ %x\n", infos); err != nil {
					return err
				}
			}
			infos++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(w, "c %x\n", d.Time/1000)
	return nil, err
}

type heaptrackWriter struct {
	w       *bufio.Writer
	strings map[string]int
	ips     map[LocationID]int
	written int // instruction pointers
	traces  map[[2]int]int
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

// ip is the number of an instruction pointer, 0 if the view hides all of it.
func (h *heaptrackWriter) ip(n *Names, id LocationID) int {
	if i, ok := h.ips[id]; ok {
		return i
	}
	frames := n.Shown(id)
	if len(frames) == 0 {
		h.ips[id] = 0
		return 0
	}
	l := n.prof.LocationAt(id)
	module := 0
	if l.Module != nil {
		module = h.str(l.Module.Path)
	}
	line := ""
	if len(l.Frames) > 0 {
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
	h.ips[id] = h.written
	fmt.Fprintf(h.w, "i %x %x%s\n", l.Call, module, line)
	return h.ips[id]
}

// trace is the number of a frame called from the trace parent; 0 is the root.
func (h *heaptrackWriter) trace(ip, parent int) int {
	key := [2]int{ip, parent}
	i := h.traces[key]
	if i == 0 {
		i = len(h.traces) + 1
		h.traces[key] = i
		fmt.Fprintf(h.w, "t %x %x\n", ip, parent)
	}
	return i
}
