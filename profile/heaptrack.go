package profile

import (
	"bufio"
	"fmt"
	"slices"
)

// heaptrackVersion is the version of heaptrack that introduced file format 3.
const heaptrackVersion = 0x10400

// heaptrackMost is the maximum number of allocations written.
const heaptrackMost = 100_000_000

// writeHeaptrack writes file format 3 of heaptrack_print and heaptrack_gui: each allocation
// of the dump, none of them freed. A call path has only the sum of its sizes, so the sizes
// are written as equal as the sum allows.
func writeHeaptrack(w *bufio.Writer, p *Profile, o ExportOptions) ([]string, error) {
	d, _ := p.last()
	if d.Total.Count > heaptrackMost {
		return nil, fmt.Errorf("heaptrack: the format takes a line per allocation, and %d are too many", d.Total.Count)
	}
	fmt.Fprintf(w, "v %x 3\nX %s\nI 1000 0\n", heaptrackVersion, or(o.Command, or(d.Name, "btheap")))
	h := &heaptrackWriter{w: w, names: p.names(), strings: map[string]int{}, ips: map[uint32]int{}}
	order := stackOrder{at: h.names.inPath, outermost: true}
	var list []branch
	for id := range p.lastPaths() {
		list = append(list, branch{index: id})
	}
	// in the order of the tree, only the traces of the current path are needed
	order.sort(list, 0)
	for _, b := range list {
		if err := h.path(b.index, d.Value(Path{d.in, b.index})); err != nil {
			return nil, err
		}
	}
	_, err := fmt.Fprintf(w, "c %x\n", d.Time.Milliseconds())
	return nil, err
}

// inPath returns the address numbers of a path.
func (n *names) inPath(path uint32) []uint32 { return n.in.at(path) }

type heaptrackWriter struct {
	w       *bufio.Writer
	names   *names
	strings map[string]int
	ips     map[uint32]int // instruction pointers by address
	infos   int            // written
	buf     []uint32
	current []uint32 // addresses of the last trace, outermost first,
	traces  []int    // and the traces down to each
	last    int      // traces written
}

// path writes the allocations of a call path.
func (h *heaptrackWriter) path(id uint32, v Value) error {
	if v.Count == 0 {
		return nil
	}
	h.buf = h.buf[:0]
	for _, addr := range slices.Backward(h.names.inPath(id)) {
		if !h.names.hidden(addr) {
			h.buf = append(h.buf, addr)
		}
	}
	trace := h.trace(h.buf)
	size, larger := v.Bytes/v.Count, v.Bytes%v.Count
	for _, part := range []Value{{size + 1, larger}, {size, v.Count - larger}} {
		if part.Count == 0 {
			continue
		}
		fmt.Fprintf(h.w, "a %x %x\n", part.Bytes, trace)
		for range part.Count {
			if _, err := fmt.Fprintf(h.w, "+ %x\n", h.infos); err != nil {
				return err
			}
		}
		h.infos++
	}
	return nil
}

// str returns the number of a string, from 1; 0 for "".
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

// ip returns the number of an instruction pointer.
func (h *heaptrackWriter) ip(addr uint32) int {
	if n := h.ips[addr]; n != 0 {
		return n
	}
	a := h.names.in.addrs.at(int(addr))
	pc, module, line := a.PC, 0, ""
	if l := a.Location; l != nil {
		pc = callOf(a)
		if l.Module != nil {
			module = h.str(l.Module.Name)
		}
	}
	if len(a.Frames()) > 0 {
		frames := h.names.frames(*a)
		for i, f := range frames {
			fn, file := h.str(f.Name), h.str(f.File)
			if i == 0 && file == 0 && len(frames) == 1 {
				line = fmt.Sprintf(" %x", fn)
				break
			}
			line += fmt.Sprintf(" %x %x %x", fn, file, f.Line)
		}
	}
	n := len(h.ips) + 1
	h.ips[addr] = n
	fmt.Fprintf(h.w, "i %x %x%s\n", pc, module, line)
	return n
}

// trace returns the number of a call path's trace, 0 if the path is empty. It writes only
// the part that the path does not share with the previous path.
func (h *heaptrackWriter) trace(path []uint32) int {
	common := 0
	for common < min(len(path), len(h.current)) && path[common] == h.current[common] {
		common++
	}
	h.current, h.traces = append(h.current[:common], path[common:]...), h.traces[:common]
	for _, addr := range path[common:] {
		ip, parent := h.ip(addr), 0
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
