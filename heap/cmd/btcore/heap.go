package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/alloc"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// heapOptions are the flags of btcore heap.
type heapOptions struct {
	owner  []string
	carve  bool
	leaks  bool
	damage bool
	only   string
	by     string
	json   bool
	blocks bool
	record bool

	allocator string
	arenas    []*alloc.Heap // of allocators, if no list of blocks was found
	absent    []core.Absent // writable memory that is not in the image
}

// heapCommand returns btcore heap.
func heapCommand() *cobra.Command {
	var in input
	var o heapOptions
	c := &cobra.Command{
		Use:   "heap [flags] [CORE]",
		Short: "print what leaks, the free memory, and who holds the rest",
		Long: `
heap prints how much of the heap is leaked, the largest request that can be met,
which block is in its way, and the three largest holders. --leaks lists the
leaked blocks, to which nothing points: no register, stack or data, and no
reachable block. --damage lists overwritten metadata, and what was not checked.
--blocks lists all blocks. --by type sums them by type: btcore holds --help.

The blocks are those in the list of libwebsockets or of lwsbt's device library
that a variable of the ELF file holds, with call stacks; else those in the
structures of the program's allocator. --carve searches memory for such a list
if there are no symbols.

-o FILE writes the heap as a recording, for btheap and btdecode, --record prints
it.`,
		Example: `
btcore heap core -e app.elf                      leak or fragmentation, who
btcore heap --leaks core -e app.elf              what is leaked
btcore heap --blocks --json core -e app.elf      each block
btcore heap --ram 0x20000000=ram.bin -e fw.elf   a device's RAM
btcore heap core -e app.elf -o heap.rec          the heap, for btheap
btcore heap --only leaked core -e app.elf | btheap top`,
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringArrayVar(&o.owner, "owner", nil, "find the list in variable `NAME`, or at 0xADDR")
	f.BoolVar(&o.carve, "carve", false, "search all memory for blocks, and ignore the list")
	f.BoolVar(&o.damage, "damage", false, "print overwritten metadata, the blocks that were probably written past their end, and what was not checked")
	f.BoolVar(&o.leaks, "leaks", false, "print the leaked blocks, by call stack")
	f.StringVar(&o.only, "only", "", "print a recording of the blocks of one `KIND`: reachable, doubtful, uncertain, leaked, damaged")
	f.StringVar(&o.by, "by", "", "print bytes and blocks by `type`; with --only, of one kind of blocks")
	f.BoolVar(&o.json, "json", false, "with --by type or --blocks, print JSON")
	f.BoolVar(&o.blocks, "blocks", false, "print each block: address, size, function, holder, type")
	f.BoolVar(&o.record, "record", false, "print the recording")
	in.frameFlags(f)
	f.StringVar(&o.allocator, "allocator", "", "read the blocks of allocator `NAME`: "+strings.Join(alloc.Names(), ", "))
	cli.ExitCodes(c, `0 as expected, 1 the image is damaged or incomplete,
2 usage, unreadable input or no heap in it, 3 something outside failed.`)
	return in.command(c, "Heap", f, func(c *cobra.Command) error { return o.run(c, &in) })
}

// check rejects flags that exclude each other.
func (o *heapOptions) check() error {
	kinds := []string{"", "reachable", "doubtful", "uncertain", "leaked", "damaged"}
	prints := o.leaks || o.damage // instead of a recording
	switch {
	case !slices.Contains(kinds, o.only):
		return cli.BadArgsf("--only %q: expected %s", o.only, strings.Join(kinds[1:], ", "))
	case o.carve && len(o.owner) > 0:
		return cli.BadArgsf("--carve and --owner: expected one of them")
	case o.only != "" && prints:
		return cli.BadArgsf("--only is for recordings: not with --leaks or --damage")
	case o.by != "" && o.by != "type":
		return cli.BadArgsf("--by %q: expected type", o.by)
	case o.by != "" && prints:
		return cli.BadArgsf("--by: not with --leaks or --damage")
	case o.json && o.by == "" && !o.blocks:
		return cli.BadArgsf("--json: expected --by type or --blocks")
	case o.blocks && (prints || o.by != "" || o.only != ""), o.record && (prints || o.blocks || o.by != ""):
		return cli.BadArgsf("--blocks, --record, --leaks, --damage, --by: expected one of them")
	case o.allocator != "" && (o.carve || len(o.owner) > 0):
		return cli.BadArgsf("--allocator: not with --owner or --carve")
	}
	return nil
}

func (o *heapOptions) run(c *cobra.Command, in *input) error {
	if err := o.check(); err != nil {
		return err
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
	err = in.write(c, func(w io.Writer) error { return o.write(w, in, h) })
	o.warn(c, in, h)
	if err != nil {
		return err
	}
	return o.short(in, h)
}

// short returns the exit code: that of an answer that is not whole if the image is damaged or lacks memory.
func (o *heapOptions) short(in *input, h *core.Heap) error {
	if len(in.Notes())+len(o.absent)+len(unproven(o.arenas))+len(h.Damage)+len(h.Notes()) > 0 {
		return cli.Exit(cli.Short)
	}
	return nil
}

// find finds the heap that the flags select.
func (o *heapOptions) find(in *input) (*core.Heap, error) {
	kinds, err := allocators(o.allocator)
	if err != nil {
		return nil, err
	}
	if len(kinds) > 0 {
		h, err := o.findForeign(in, kinds)
		if errors.Is(err, alloc.ErrNone) {
			err = cli.Usagef("no heap of %s in this image%s", o.allocator, in.hint())
		}
		return h, err
	}
	search, err := o.search(in)
	if err != nil {
		return nil, err
	}
	search.FollowsCall = in.followsCall()
	return o.findHeap(in, search)
}

// addRegs adds the thread of --regs.
func (in *input) addRegs() error {
	if in.regs == "" {
		return nil
	}
	regs, err := in.readRegs()
	if err != nil {
		return err
	}
	sp, ok := core.StackPointer(in.Machine, in.Word)
	if !ok {
		return cli.Usagef("--regs: the stack pointer of %v is not known", in.Machine)
	}
	t := core.Thread{PC: regs.PC, Regs: map[int]uint64{}}
	t.SP, _ = regs.Get(sp)
	for n := range maxDWARF {
		if v, ok := regs.Get(n); ok {
			t.Values, t.Regs[n] = append(t.Values, v), v
		}
	}
	in.Threads = slices.Insert(in.Threads, 0, t)
	return nil
}

// maxDWARF is above the DWARF number of every register that can hold an address.
const maxDWARF = 128

// write writes the output that the flags select.
func (o *heapOptions) write(w io.Writer, in *input, h *core.Heap) error {
	switch {
	case o.by != "":
		return o.writeTypes(w, in, h)
	case o.leaks || o.damage:
		names, err := in.symbols()
		if err != nil {
			return err
		}
		defer names.Close()
		r := report{w: w, in: in, h: h, names: names}
		if o.damage {
			r.damage()
		}
		if o.leaks {
			if o.damage {
				fmt.Fprintln(w)
			}
			if n := unproven(o.arenas); len(n) > 0 {
				fmt.Fprintf(w, "No leaks are reported: %s.\n", cli.Printable(n[0]))
				return nil
			}
			r.types = in.types(h).names
			r.leaks(in.findLeaks(h))
		}
		return nil
	}
	switch {
	case o.blocks:
		return o.writeBlocks(w, in, h)
	case !o.record && o.only == "" && in.output == "-":
		return o.overview(w, in, h)
	}
	return in.WriteRecording(w, h, o.keep(in, h))
}

// keep returns a function that reports whether --only selects a block; nil selects
// every block.
func (o *heapOptions) keep(in *input, h *core.Heap) func(int) bool {
	kinds := map[string][]core.Reach{"reachable": {core.OnStack, core.OnSlack, core.Reachable}, "doubtful": {core.OnStack, core.OnSlack}, "leaked": {core.Leaked}, "uncertain": {core.Uncertain}}
	if o.only == "damaged" {
		return func(i int) bool { return h.Blocks[i].Damaged }
	}
	selected := kinds[o.only]
	if selected == nil {
		return nil
	}
	l := in.findLeaks(h)
	for _, n := range l.Notes() {
		in.note("%s", n)
	}
	return func(i int) bool { return slices.Contains(selected, l.Reach[i]) }
}

// warn writes notes, and the lists that were found, to standard error.
func (o *heapOptions) warn(c *cobra.Command, in *input, h *core.Heap) {
	in.warn(c)
	for _, t := range h.Notes() {
		say(c, t)
	}
	for _, t := range unproven(o.arenas) {
		say(c, t)
	}
	if !o.leaks || len(unproven(o.arenas)) > 0 {
		for _, t := range absentLines(o.absent, in.core != "") {
			say(c, t)
		}
	}
	describe(c, o.arenas)
	for _, x := range h.Owners {
		if h.Foreign {
			break
		}
		by := "found by its blocks"
		if !x.Carved {
			by = "found by address"
			if x.Name != "" {
				by = "variable " + x.Name
			}
		}
		say(c, fmt.Sprintf("%s in the list at %#x (%s)", cli.Count(x.Blocks, "block"), x.Addr, by))
	}
	if len(h.Damage) > 0 && !o.damage {
		what := "damaged block"
		if h.Foreign {
			what = "damaged place"
		}
		say(c, cli.Count(len(h.Damage), what)+": --damage says more")
	}
}
