package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/graph"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// holdsOptions are the flags of btcore holds.
type holdsOptions struct {
	heapOptions
	path   string
	before string // file with the JSON of an earlier image
	most   int
	// Blocks that words hold which may be old, and their bytes.
	doubtful   int
	doubtBytes uint64
}

// holdsCommand returns btcore holds.
func holdsCommand() *cobra.Command {
	var in input
	var o holdsOptions
	c := &cobra.Command{
		Use:   "holds [flags] [CORE]",
		Short: "print which variables hold the blocks of the heap",
		Long: `
holds prints what would be free without a variable: the blocks that are
reachable only through it. Blocks that several variables reach are shared; they
are listed by their size, with the variable that has the shortest path to them.
A block that a global variable reaches is not charged to a stack.

With --path, it prints the shortest way from a variable to one block.

Blocks get a type where it is sure. If the first word points to a vtable, the
type is the class, with -g the whole object's; if it points to a constant with
functions, the block is an "object of" it. By the debug information of -e, a
block has the type T to which a pointer T * of a variable or known struct
points. Types change no number.`,
		Example: `
btcore holds core -e app.elf                     what holds the memory
btcore holds core -e app.elf --path 0x55d0c0a31b90
btcore holds core -e app.elf --json > before.json
btcore holds core2 -e app.elf --since before.json
btcore holds --ram 0x20000000=ram.bin -e fw.elf`,
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&o.path, "path", "", "print the path from a variable to the block that holds `0xADDR`")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.before, "since", "", "print what changed since an earlier image, of which --json wrote `FILE`")
	f.IntVarP(&o.most, "number", "n", 20, "print up to `N` holders; 0: all, as --json without -n")
	f.StringVar(&o.allocator, "allocator", "", "read the blocks of allocator `NAME`, as btcore heap")
	cli.ExitCodes(c, `0 as expected, 1 the image is damaged or incomplete,
2 usage, unreadable input or no heap in it, 3 something outside failed.`)
	return in.command(c, "Holders", f, func(c *cobra.Command) error { return o.run(c, &in) })
}

func (o *holdsOptions) run(c *cobra.Command, in *input) error {
	if o.most < 0 {
		return cli.BadArgsf("-n %d: expected 0 or more", o.most)
	}
	if o.path != "" && o.json {
		return cli.BadArgsf("--path: not with --json")
	}
	if o.before != "" && (o.json || o.path != "") {
		return cli.BadArgsf("--since: not with --json or --path")
	}
	if o.json && !c.Flags().Changed("number") {
		o.most = 0
	}
	if err := in.addRegs(); err != nil {
		return err
	}
	h, err := o.find(in)
	if err != nil {
		in.warn(c)
		return err
	}
	o.absent = in.Absent(in.roots())
	if o.path == "" && !o.json && o.before == "" && len(unproven(o.arenas)) == 0 && h.Foreign { // before the graph: less memory
		l := in.findLeaks(h)
		o.doubtful, o.doubtBytes = l.Count(h, core.OnSlack, core.OnStack)
		in.Release()
	}
	names := in.rootNames()
	g := graph.Build(&in.Image, h, in.roots(), names.at)
	t := in.types(h)
	g.Types = t.names.At
	err = in.write(c, func(w io.Writer) error { return o.write(w, in, g, names) })
	o.warn(c, in, h)
	if err != nil {
		return err
	}
	if text := t.describe(h); text != "" {
		say(c, text)
	}
	return o.short(in, h)
}

func (o *holdsOptions) write(w io.Writer, in *input, g *graph.Graph, names *rootNames) error {
	if o.path != "" {
		return o.writePath(w, g, names)
	}
	in.Release()
	t := g.Dominators()
	if o.json {
		return o.writeJSON(w, in, g, t)
	}
	if o.before != "" {
		return o.since(w, in, g, t)
	}
	in.Release()
	o.table(w, in, g, t)
	return nil
}

// holderName describes a holder.
func holderName(g *graph.Graph, h *graph.Holder) string {
	name := cli.Printable(g.Roots[h.Root].Name)
	if !h.Shared {
		return name
	}
	if h.Type != "" {
		return fmt.Sprintf("%d × %s, shared: %s is nearest", len(h.Top), cli.Printable(h.Type), name)
	}
	size := cli.Count(h.Most, "byte")
	if h.Least < h.Most {
		size = cli.Number(h.Least) + " to " + size
	}
	return fmt.Sprintf("%s of %s, shared: %s is nearest", cli.Count(len(h.Top), "block"), size, name)
}

// shares begins a table of parts of all bytes, and returns what prints a row.
func shares(w io.Writer, bytes, name string, all float64) func(bytes uint64, blocks int, name string) {
	fmt.Fprintf(w, "%11s  %5s  %8s  %s\n", bytes, "%", "Blocks", name)
	fmt.Fprintln(w, "--------------------------------------------------------------------------")
	return func(bytes uint64, blocks int, name string) {
		fmt.Fprintf(w, "%11s  %5.1f  %8s  %s\n", cli.Number(bytes), 100*float64(bytes)/max(all, 1), cli.Number(blocks), name)
	}
}

// table prints the holders.
func (o *holdsOptions) table(w io.Writer, in *input, g *graph.Graph, t *graph.Tree) {
	line := shares(w, "Retained", "Holder", float64(g.Heap.Bytes()))
	list := t.Holders()
	var bytes uint64
	blocks, left := 0, 0
	for i := range list {
		h := &list[i]
		if o.most > 0 && i >= o.most {
			bytes, blocks, left = bytes+h.Bytes, blocks+h.Blocks, left+1
			continue
		}
		line(h.Bytes, h.Blocks, holderName(g, h))
	}
	if left > 0 {
		line(bytes, blocks, cli.Count(left, "more holder"))
	}
	if bytes, blocks := g.Unreached(); blocks > 0 {
		if len(unproven(o.arenas)) > 0 {
			line(bytes, blocks, "not reached; the heap is unproven")
		} else {
			line(bytes, blocks, "not reached: btcore heap --leaks")
		}
	}
	if o.doubtful > 0 {
		fmt.Fprintf(w, "Doubtful: %s in %s, held by words that may be old.\n", cli.Count(o.doubtBytes, "byte"), cli.Count(o.doubtful, "block"))
	}
}

// jsonHolder is a holder in JSON.
type jsonHolder struct {
	Holder string   `json:"holder"`
	Shared bool     `json:"shared"`
	Type   string   `json:"type,omitempty"` // of the blocks of Top
	Bytes  uint64   `json:"bytes"`
	Blocks int      `json:"blocks"`
	Least  uint64   `json:"least,omitempty"` // sizes of the blocks of Top
	Most   uint64   `json:"most,omitempty"`
	Top    []string `json:"top,omitempty"` // up to 4 of them
}

func (o *holdsOptions) writeJSON(w io.Writer, in *input, g *graph.Graph, t *graph.Tree) error {
	out := jsonHeld{Build: in.build(), Bytes: g.Heap.Bytes(), Blocks: len(g.Heap.Blocks), Unproven: unproven(o.arenas), Holders: []jsonHolder{}}
	out.Leaked, out.LeakedN = g.Unreached()
	for i, h := range t.Holders() {
		if o.most > 0 && i >= o.most {
			out.Omitted++
			continue
		}
		x := jsonHolder{Holder: g.Roots[h.Root].Name, Shared: h.Shared, Type: h.Type, Bytes: h.Bytes, Blocks: h.Blocks, Least: h.Least, Most: h.Most}
		for _, b := range h.Top[:min(len(h.Top), maxAddrs)] {
			x.Top = append(x.Top, fmt.Sprintf("%#x", g.Heap.Blocks[b].Addr))
		}
		out.Holders = append(out.Holders, x)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// writePath prints the way to a block.
func (o *holdsOptions) writePath(w io.Writer, g *graph.Graph, names *rootNames) error {
	addr, err := strconv.ParseUint(o.path, 0, 64)
	if err != nil {
		return cli.BadArgsf("--path %q: expected 0xADDR", o.path)
	}
	block := -1
	for i := range g.Heap.Blocks {
		if b := &g.Heap.Blocks[i]; addr == b.Addr || addr > b.Addr && addr-b.Addr < b.Size {
			block = i
		}
	}
	if block < 0 {
		return cli.Usagef("--path %s: in no block", o.path)
	}
	at := func(i int) string {
		text := fmt.Sprintf("%#x  %s", g.Heap.Blocks[i].Addr, cli.Count(g.Heap.Blocks[i].Size, "byte"))
		if t := g.Type(i); t != "" {
			text += "  " + cli.Printable(t)
		}
		return text
	}
	fmt.Fprintln(w, at(block))
	path := g.Path(block)
	for _, s := range path {
		switch {
		case s.Block >= 0:
			fmt.Fprintf(w, "  +%d of %s\n", s.At-g.Heap.Blocks[s.Block].Addr, at(s.Block))
		case s.At != 0:
			fmt.Fprintf(w, "  in %s\n", cli.Printable(names.place(s.At)))
		default:
			fmt.Fprintf(w, "  in %s\n", cli.Printable(g.Roots[s.Root].Name))
		}
	}
	if len(path) == 0 {
		fmt.Fprintln(w, "  no variable, stack or register leads to it")
	}
	return nil
}
