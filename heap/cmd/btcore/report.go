package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// report prints damaged and leaked blocks.
type report struct {
	w     io.Writer
	in    *input
	h     *core.Heap
	names *symbols
	types *types.Names // of the blocks, for leaks

	byAddr map[uint64]int // damaged blocks: index of Heap.Blocks
}

// damage prints each damaged block with its damage and the block that was probably written
// past its end.
func (r *report) damage() {
	if len(r.h.Damage) == 0 {
		fmt.Fprintln(r.w, "No damage found.")
		r.checked()
		return
	}
	if r.h.Foreign {
		fmt.Fprintf(r.w, "%s in a heap of %s.\n", cli.Count(len(r.h.Damage), "damaged place"), cli.Count(len(r.h.Blocks), "block"))
	} else {
		fmt.Fprintf(r.w, "%s of %s.\n", cli.Count(len(r.h.Damage), "damaged block"), cli.Number(len(r.h.Blocks)))
	}
	r.byAddr = map[uint64]int{}
	for i := range r.h.Blocks {
		if b := &r.h.Blocks[i]; b.Damaged {
			r.byAddr[b.Addr] = i
		}
	}
	for i := range r.h.Damage {
		r.damaged(&r.h.Damage[i])
	}
	fmt.Fprintln(r.w)
	r.checked()
}

// checked prints which checks were done and which were not.
func (r *report) checked() {
	ends, most, device := 0, 0, false
	for i := range r.h.Blocks {
		if b := &r.h.Blocks[i]; b.Checked > 0 {
			ends++
			most = max(most, int(b.Checked))
		}
	}
	for i := range r.h.Owners {
		device = device || r.h.Owners[i].Device
	}
	n := len(r.h.Blocks)
	fmt.Fprintf(r.w, "Checked: the metadata of %s", cli.Count(n, "block"))
	if ends > 0 {
		fmt.Fprintf(r.w, "; up to %s behind the end of %s", cli.Count(most, "byte"), cli.Count(ends, "block"))
	}
	fmt.Fprint(r.w, ".\nNot checked: ")
	switch {
	case !device:
		fmt.Fprint(r.w, "short writes past the end of a block, behind which nothing known\n  was written; ")
	case ends < n:
		fmt.Fprintf(r.w, "short writes past the end of %s without spare bytes; ", cli.Count(n-ends, "block"))
	}
	fmt.Fprintln(r.w, "contents; freed memory.")
}

func (r *report) damaged(d *core.Damage) {
	own, known := r.byAddr[d.Addr]
	if r.h.Foreign {
		r.foreignDamage(d)
		return
	}
	what := "The metadata of"
	if d.Parts == core.DamagedEnd {
		what = "Memory behind"
	}
	fmt.Fprintf(r.w, "\n%s the block at %#x was overwritten:\n", what, d.Addr)
	for _, what := range d.What {
		fmt.Fprintf(r.w, "  - %s\n", cli.Printable(what))
	}
	readable := known && r.h.Blocks[own].Sized() && d.Parts&(core.DamagedCalls|core.DamagedBlob) == 0
	switch {
	case d.Parts == core.DamagedEnd:
		fmt.Fprintf(r.w, "  It looks like a write past the end of the block itself, of\n  %s, allocated by\n", cli.Count(r.h.Blocks[own].Size, "byte"))
		r.names.print(r.w, r.h.Blob(own), r.in.Word)
		return
	case known && d.Suspect == own:
		fmt.Fprintf(r.w, "  The bytes before the links are intact, so they were not overwritten from\n"+
			"  below: it looks like a write before the start of the block itself, of\n  %s, allocated by\n", cli.Count(r.h.Blocks[own].Size, "byte"))
		r.names.print(r.w, r.h.Blob(own), r.in.Word)
		return
	case d.Suspect >= 0:
		s := &r.h.Blocks[d.Suspect]
		fmt.Fprintf(r.w, "  It looks like a write past the end of the block before it: %s at\n  %#x, ending %s before these links, allocated by\n",
			cli.Count(s.Size, "byte"), s.Addr, cli.Count(d.Gap, "byte"))
		r.names.print(r.w, r.h.Blob(d.Suspect), r.in.Word)
	default:
		fmt.Fprintf(r.w, "  No block before it could have overflowed into it.\n")
	}
	if readable {
		fmt.Fprintf(r.w, "  The block itself, of %s, was allocated by\n", cli.Count(r.h.Blocks[own].Size, "byte"))
		r.names.print(r.w, r.h.Blob(own), r.in.Word)
	}
}

// foreignDamage prints damage of an allocator's structures: where, what was found, and who wrote there as far as the
// bytes show it.
func (r *report) foreignDamage(d *core.Damage) {
	what := "a header"
	switch d.Parts {
	case core.DamagedEnd:
		what = "behind a block"
	case core.DamagedFreed:
		what = "a link in freed memory"
		if d.Addr == 0 {
			what = "a link in the allocator's data"
		}
	}
	fmt.Fprintf(r.w, "\n%#x, %s, was overwritten:\n", d.At(), what)
	for _, what := range d.What {
		fmt.Fprintf(r.w, "  - %s\n", cli.Printable(what))
	}
	switch {
	case d.Suspect >= 0:
		s := &r.h.Blocks[d.Suspect]
		fmt.Fprintf(r.w, "  The bytes go on from the end of the block before it, which was written past\n  its end: %#x, %s%s\n", s.Addr, cli.Count(s.Size, "byte"), r.allocatedBy())
		r.stack(r.h.Blob(d.Suspect))
	case d.Parts == core.DamagedFreed && d.Addr != 0:
		fmt.Fprintf(r.w, "  The block at %#x is free: it was written after it was freed, or with a wrong\n  pointer. The bytes before it do not go on here.\n", d.Addr)
	default:
		fmt.Fprintf(r.w, "  The bytes before it do not show who wrote here.\n")
	}
}

// allocatedBy begins a line before a call stack, if the allocator stores them.
func (r *report) allocatedBy() string {
	if r.h.Stacks {
		return ", allocated by"
	}
	return ""
}

// stack prints the call stack of a block, if the allocator stores them.
func (r *report) stack(blob []byte) {
	if r.h.Stacks {
		r.names.print(r.w, blob, r.in.Word)
	}
}

// maxAddrs is the most addresses printed for a group.
const maxAddrs = 4

// why returns why blocks are uncertain.
func (r *report) why(l *core.Leaks) string {
	if len(l.Absent) == 0 {
		return ": only what may be old leads to them\n  (a link, memory in no block, a pointer past their end or just in front of\n  them, an odd address at the end of a block), or a header is in doubt."
	}
	return ": memory that is not in the image may point to them."
}

// absentLines says which memory is not in the image, and how to add it.
func absentLines(list []core.Absent, core bool) (lines []string) {
	for _, a := range list {
		access := "writable"
		if a.File != "" && !a.Write {
			access = "which others or write() may fill"
		}
		text := fmt.Sprintf("not in the image: %s, %#x to %#x, %s, %s", a.Name, a.Start, a.End, cli.Count(a.End-a.Start, "byte"), access)
		if !core {
			text += fmt.Sprintf(": add it by --ram %#x=FILE", a.Start)
		}
		lines = append(lines, text)
	}
	return lines
}

// leaks prints the leaked blocks by call stack, or if memory is absent, those to which nothing in the image points.
func (r *report) leaks(l *core.Leaks) {
	n, bytes := l.Count(r.h, core.Leaked)
	reachable, kept := l.Count(r.h, core.Reachable, core.OnSlack, core.OnStack)
	unsure, unsureBytes := l.Count(r.h, core.Uncertain)
	groups, what := len(l.Groups), "call stack"
	if n == 0 { // all are uncertain
		groups = 0
	}
	if r.h.Foreign && !r.h.Stacks {
		what = "size"
	}
	by := cli.Count(groups, what)
	fmt.Fprintf(r.w, "%s leaked, %s, by %s.\n", cli.Count(n, "block"), cli.Count(bytes, "byte"), by)
	fmt.Fprintf(r.w, "%s reachable, %s.\n", cli.Count(reachable, "block"), cli.Count(kept, "byte"))
	r.doubtful(l)
	if unsure > 0 {
		fmt.Fprintf(r.w, "%s uncertain, %s%s\n", cli.Count(unsure, "block"), cli.Count(unsureBytes, "byte"), r.why(l))
	}
	for _, t := range slices.Concat(absentLines(l.Absent, r.in.core != ""), r.in.passed(n), l.Notes()) {
		fmt.Fprintf(r.w, "(%s)\n", cli.Printable(t))
	}
	for i := range l.Groups {
		r.leakGroup(&l.Groups[i])
	}
}

// doubtful prints how many of the reachable blocks may be leaked, because what holds them may be old.
func (r *report) doubtful(l *core.Leaks) {
	for _, x := range []struct {
		core.Reach
		by string
	}{
		{core.OnSlack, "the last words of blocks, which the program may not\n  have requested"},
		{core.OnStack, "memory without a variable, or unused stack: what is there may be old"},
	} {
		if n, bytes := l.Count(r.h, x.Reach); n > 0 {
			fmt.Fprintf(r.w, "  Of these %s, %s, may be leaked: what holds them is in\n  %s.\n", cli.Number(n), cli.Count(bytes, "byte"), x.by)
		}
	}
}

func (r *report) leakGroup(g *core.LeakGroup) {
	what, behind := cli.Count(len(g.Direct)+len(g.Indirect), "block"), ""
	if n := len(g.Indirect); n > 0 {
		behind = fmt.Sprintf(", and %s reachable only from %s", cli.Number(n), map[bool]string{true: "it", false: "these"}[len(g.Direct) == 1])
	}
	if g.Cycle {
		what += fmt.Sprintf(", %s in a cycle", cli.Number(len(g.Direct)))
	}
	fmt.Fprintf(r.w, "\n%s in %s: %s%s\n", cli.Count(g.Bytes, "byte"), what, r.addrs(g.Direct), behind)
	if t := describeTypes(r.h, r.types, g.Direct); t != "" {
		fmt.Fprintf(r.w, "    %s\n", t)
	}
	for i, b := range g.Stacks {
		if r.h.Foreign && !r.h.Stacks {
			break
		}
		if i == maxAddrs {
			fmt.Fprintf(r.w, "  and by %s\n", cli.Count(len(g.Stacks)-i, "more call stack"))
			break
		}
		if i > 0 {
			fmt.Fprintln(r.w, "  and by")
		}
		r.names.print(r.w, r.h.Blob(b), r.in.Word)
	}
}

func (r *report) addrs(blocks []int) string {
	var list []string
	for i, b := range blocks {
		if i == maxAddrs {
			list = append(list, "…")
			break
		}
		list = append(list, fmt.Sprintf("%#x", r.h.Blocks[b].Addr))
	}
	return strings.Join(list, " ")
}
