package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/alloc"
	"github.com/lwsbt/lwsbt/heap/core/graph"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// mostHolders is the number of holders in the overview.
const mostHolders = 3

// overview prints on one screen whether memory leaks or free memory is divided, by whom, and what to look at next.
func (o *heapOptions) overview(w io.Writer, in *input, h *core.Heap) error {
	var leaks *core.Leaks
	if len(unproven(o.arenas)) == 0 {
		leaks = in.findLeaks(h)
	}
	names := in.rootNames()
	g := graph.Build(&in.Image, h, in.roots(), names.at)
	g.Types = in.types(h).names.At
	in.Release()
	fmt.Fprintf(w, "%s in %s", cli.Count(h.Bytes(), "byte"), cli.Count(len(h.Blocks), "block"))
	free, holes, largest := uint64(0), 0, uint64(0)
	var way alloc.Way
	for _, a := range o.arenas {
		n, bytes := a.Count(alloc.Free)
		free, holes = free+bytes, holes+n
		if x, ok := a.InTheWay(); ok && a.Largest() >= largest && x.Hole > way.Hole {
			way = x
		}
		largest = max(largest, a.Largest())
	}
	if len(o.arenas) > 0 {
		fmt.Fprintf(w, "; %s free in %s", cli.Count(free, "byte"), cli.Count(holes, "hole"))
	}
	sure := len(unproven(o.arenas)) == 0
	if !sure {
		fmt.Fprint(w, ", as far as found")
	}
	fmt.Fprintln(w)
	leaked, err := o.leakLines(w, in, h, leaks)
	if err != nil {
		return err
	}
	if holes > 0 && sure {
		fmt.Fprintf(w, "\nLargest hole: %s, %.1f %% of the free memory.\n  A larger request fails%s.\n",
			cli.Count(largest, "byte"), 100*float64(largest)/float64(max(free, 1)), growth(o.arenas))
	}
	if way.Hole > largest && sure {
		fmt.Fprintf(w, "  In the way: %#x, %s, %s. Without it: %s.\n", way.Block.Addr, cli.Count(way.Block.Size, "byte"), holderOf(g, way.Block.Addr, leaked), cli.Number(way.Hole))
	}
	fmt.Fprintln(w)
	line := shares(w, "Retained", "Holder", float64(h.Bytes()))
	holders := g.Dominators().Holders()
	for _, x := range holders[:min(mostHolders, len(holders))] {
		line(x.Bytes, x.Blocks, holderName(g, &x))
	}
	fmt.Fprintln(w, "\nMore: btcore heap --leaks, --damage, --blocks; btcore holds")
	return nil
}

// growth says where more memory may come from: allocators of C libraries get it from the system, or by sbrk.
func growth(arenas []*alloc.Heap) string {
	for _, a := range arenas {
		switch a.Kind {
		case alloc.Glibc, alloc.MuslNG, alloc.JeMalloc:
			return ", unless the system gives more memory"
		case alloc.Newlib, alloc.NewlibNano, alloc.Picolibc:
			return ", unless sbrk gives more memory"
		}
	}
	return ""
}

// leakLines prints the sums of what leaks, and the largest group. leaked reports whether a block leaks.
func (o *heapOptions) leakLines(w io.Writer, in *input, h *core.Heap, l *core.Leaks) (leaked func(block int) bool, err error) {
	if n := unproven(o.arenas); l == nil {
		fmt.Fprintf(w, "\nLeaks: cannot tell: %s.\n", cli.Printable(n[0]))
		return func(int) bool { return false }, nil
	}
	n, bytes := l.Count(h, core.Leaked)
	unsure, unsureBytes := l.Count(h, core.Uncertain)
	fmt.Fprintf(w, "\nLeaked: %s in %s, %.1f %% of the memory in use.\n", cli.Count(bytes, "byte"), cli.Count(n, "block"), 100*float64(bytes)/float64(max(h.Bytes(), 1)))
	names, err := in.symbols()
	if err != nil {
		return nil, err
	}
	defer names.Close()
	r := report{w: w, in: in, h: h, names: names}
	if n, bytes := l.Count(h, core.OnSlack, core.OnStack); n > 0 {
		fmt.Fprintf(w, "Doubtful: %s in %s: old words may hold them (--leaks)\n", cli.Count(bytes, "byte"), cli.Count(n, "block"))
	}
	if unsure > 0 {
		fmt.Fprintf(w, "Uncertain: %s in %s%s\n", cli.Count(unsureBytes, "byte"), cli.Count(unsure, "block"), r.why(l))
	}
	for _, t := range append(absentLines(l.Absent, in.core != ""), in.passed(n)...) {
		fmt.Fprintf(w, "(%s)\n", cli.Printable(t))
	}
	if len(l.Groups) > 0 {
		x := &l.Groups[0]
		fmt.Fprintf(w, "  Most: %s in %s: %s\n", cli.Count(x.Bytes, "byte"), cli.Count(len(x.Direct)+len(x.Indirect), "block"), r.addrs(x.Direct))
		if f := names.function(h.Blob(x.Direct[0]), in.Word); f != "" {
			fmt.Fprintf(w, "  allocated by %s\n", f)
		}
	}
	return func(i int) bool { return l.Reach[i] == core.Leaked }, nil
}

// holderOf returns who holds a block.
func holderOf(g *graph.Graph, addr uint64, leaked func(block int) bool) string {
	i, ok := g.BlockAt(addr)
	if !ok {
		return "of the allocator"
	}
	root, ok := g.Nearest(i)
	switch {
	case leaked(i):
		return "leaked"
	case !ok:
		return "not reached"
	}
	return "held by " + cli.Printable(g.Roots[root].Name)
}

// jsonBlock is a block in JSON.
type jsonBlock struct {
	Addr     string `json:"address"`
	Size     uint64 `json:"size"`            // requested, or usable if the allocator does not store it
	Chunk    uint64 `json:"chunk,omitempty"` // with the allocator's header
	State    string `json:"state"`           // reachable, doubtful, uncertain, leaked; "" if the heap is unproven
	Function string `json:"function,omitempty"`
	Holder   string `json:"holder,omitempty"` // the nearest variable, stack or register
	Type     string `json:"type,omitempty"`
}

// about returns what is known of a block, in words.
func (x *jsonBlock) about() string {
	var words []string
	for _, w := range [][2]string{{"by ", x.Function}, {"held by ", x.Holder}, {"", x.Type}} {
		if w[1] != "" {
			words = append(words, w[0]+w[1])
		}
	}
	return strings.Join(words, ", ")
}

// writeBlocks prints each block.
func (o *heapOptions) writeBlocks(w io.Writer, in *input, h *core.Heap) error {
	roots := in.rootNames()
	g := graph.Build(&in.Image, h, in.roots(), roots.at)
	g.Types = in.types(h).names.At
	names, err := in.symbols()
	if err != nil {
		return err
	}
	defer names.Close()
	var reach []core.Reach
	if len(unproven(o.arenas)) == 0 {
		reach = in.findLeaks(h).Reach
	}
	functions := map[string]string{} // by blob
	e := json.NewEncoder(w)
	if !o.json {
		fmt.Fprintf(w, "%-14s  %9s  %9s  %-9s  %s\n", "Address", "Size", "Chunk", "State", "Function, holder, type")
	}
	for i := range h.Blocks {
		b, blob := &h.Blocks[i], h.Blob(i)
		f, seen := functions[string(blob)]
		if !seen {
			f = names.function(blob, in.Word)
			functions[string(blob)] = f
		}
		x := jsonBlock{Addr: fmt.Sprintf("%#x", b.Addr), Size: b.Size, Chunk: h.Chunk(i), Function: f, Type: cli.Printable(g.Type(i))}
		if reach != nil {
			x.State = [...]string{core.Leaked: "leaked", core.Uncertain: "uncertain", core.OnStack: "doubtful", core.OnSlack: "doubtful", core.Reachable: "reachable"}[reach[i]]
		}
		if root, ok := g.Nearest(i); ok {
			x.Holder = cli.Printable(g.Roots[root].Name)
		}
		if o.json { // a line for each block
			if err := e.Encode(x); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(w, "%-14s  %9d  %9d  %-9s  %s\n", x.Addr, x.Size, x.Chunk, x.State, x.about()); err != nil {
			return err
		}
	}
	return nil
}

// function returns the innermost function of a call stack, "" if there is none.
func (s *symbols) function(blob []byte, word int) string {
	var st codec.Stack
	if blob == nil || (codec.Decoder{Word: word}).Decode(&st, nil, blob) != nil || len(st.PCs) == 0 {
		return ""
	}
	s.addrs = s.Resolve(s.addrs[:0], &st, blob)
	for _, a := range s.addrs {
		for _, f := range a.Frames() {
			if f.Name != "" {
				return f.Name
			}
		}
	}
	return ""
}
