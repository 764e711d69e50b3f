package profile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Limits for the formats of Export that repeat the frames of each call path. A few bytes of a log may
// add a call path of 1,024 frames that shares all but one with others.
const (
	freeFrames  = 1 << 23 // are always written
	repetitions = 32      // of a frame on average; ordinary profiles have 10
)

// heaviestPaths returns which of n stacks of a tree a format writes, if all frames would be beyond the
// limits: the heaviest ones. It returns nil for all.
func heaviestPaths(tree *stackTree, n int, stack func(i int) (id uint32, v Value)) (kept []bool) {
	depth := make([]uint32, tree.nodes.n) // by node; parents have lower numbers
	for i := 1; i < len(depth); i++ {
		depth[i] = depth[tree.nodes.at(i).parent] + 1
	}
	frames := func(i int) int {
		id, _ := stack(i)
		node, tail := tree.stack(id)
		return int(depth[node]) + len(tail)
	}
	all, own := 0, len(depth)
	for i := range n {
		id, _ := stack(i)
		_, tail := tree.stack(id)
		all += frames(i)
		own += len(tail)
	}
	left := max(freeFrames, repetitions*own)
	if all <= left {
		return nil
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		_, x := stack(int(a))
		_, y := stack(int(b))
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Count, x.Count), cmp.Compare(a, b))
	})
	kept = make([]bool, n)
	for _, i := range order {
		if left -= frames(int(i)); left < 0 {
			break
		}
		kept[i] = true
	}
	return kept
}

// limited returns the profile of the last dump with the call paths that a format writes. The others
// are added up as the path for which [Path.Other] is true, and a note says so.
func (p *Profile) limited() (*Profile, []string) {
	d, _ := p.last()
	if d.in == nil {
		return p, nil
	}
	ids, values := d.live.whole()
	kept := heaviestPaths(&d.in.stackTree, len(ids), func(i int) (uint32, Value) { return ids[i], values[i] })
	if kept == nil {
		return p, nil
	}
	b := NewBuilder(0)
	i, left := 0, 0
	for a := range d.all() { // freed ones are last, and are not kept
		if i >= len(kept) || !kept[i] {
			a.Path = b.otherPath()
			left++
		}
		b.AddAllocation(a)
		i++
	}
	most := b.End(d.DumpInfo)
	most.Records, most.Ended, most.Loss = d.Records, d.Ended, d.Loss
	return view([]*Dump{most}, p.view), []string{limitNote(left)}
}

func limitNote(left int) string {
	return fmt.Sprintf("%s with the least bytes are added up as %q: the format repeats the frames of each, which would be over %d per frame of the profile",
		printable.Count(left, "call path"), OtherName, repetitions)
}

// StackLimit limits the call sites of a list of stacks: a few bytes of a log may add a stack that
// shares a thousand outer call sites with others. The first 2^18 call sites are listed; stacks from
// there on have only those that they share with no other row, and the last one says so.
type StackLimit struct {
	// Cut is the number of stacks that lack outer call sites.
	Cut   int
	sites int
}

// MaxStackSites is the number of call sites after which a [StackLimit] leaves out those that
// stacks share.
const MaxStackSites = 1 << 18

// outerLeftOut is the outermost call site of a stack that lacks others.
var outerLeftOut = Site{Func: "(outer frames left out)"}

// Stack returns the call sites of a row, innermost first, as far as the limit allows.
func (l *StackLimit) Stack(r Row) []Site {
	if r.p == nil {
		return nil
	}
	rows := r.p.rows()
	node, tail := rows.stacks.stack(rows.stackOf(r.number))
	if l.sites < MaxStackSites || node == 0 {
		stack := r.Stack()
		l.sites += len(stack)
		return stack
	}
	l.Cut++
	if len(tail) == 0 {
		tail = []uint32{rows.stacks.nodes.at(int(node)).value}
	}
	return append(rows.names.sites(tail), outerLeftOut)
}

// Leak returns the call sites of a leak, as Stack does.
func (l *StackLimit) Leak(k *Leak) []Site {
	if k.stack != nil || k.p == nil {
		return k.stack
	}
	return l.Stack(k.row())
}
