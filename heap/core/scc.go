package core

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// leakGraph holds the leaked blocks and the pointers between them.
type leakGraph struct {
	*graph
	leaked []int32   // indexes of Heap.Blocks
	edges  [][]int32 // positions in leaked, by position in leaked
	parts  [][]int32 // strongly connected components
	part   []int32   // component of each leaked block
	// For each component: whether another component points to it, and whether its blocks
	// form a cycle.
	pointed, cycle []bool
}

// group sets l.Groups. It computes the strongly connected components of the leaked blocks by
// Tarjan's algorithm, without recursion. It then groups the components that no other
// component points to by their call stacks.
func (g *graph) group(l *Leaks) {
	x := leakGraph{graph: g}
	for i, r := range l.Reach {
		if r == Leaked {
			x.leaked = append(x.leaked, int32(i))
		}
	}
	if len(x.leaked) == 0 {
		return
	}
	x.link()
	x.condense()
	for _, group := range x.groups() {
		slices.Sort(group.Direct)
		slices.Sort(group.Indirect)
		for _, i := range append(slices.Clone(group.Direct), group.Indirect...) {
			group.Bytes = addSize(group.Bytes, g.h.Blocks[i].Size)
		}
		l.Groups = append(l.Groups, *group)
	}
	slices.SortStableFunc(l.Groups, func(a, b LeakGroup) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Direct[0], b.Direct[0]))
	})
	if len(l.Absent) > 0 {
		x.doubt(l)
	}
}

// maxReach limits the steps that doubt takes.
const maxReach = 1 << 24

// doubt makes the leaked blocks uncertain, because absent memory may point to them. A pointer there reaches at most
// the blocks behind the component with the most, two pointers those behind two: what exceeds these sums is leaked.
func (x *leakGraph) doubt(l *Leaks) {
	pointers := uint64(0)
	for _, a := range l.Absent {
		pointers += (a.End - a.Start) / uint64(x.m.PointerSize())
	}
	var blocks, bytes []uint64 // behind each component that no other points to
	steps := 0
	for p := range x.parts {
		if x.pointed[p] {
			continue
		}
		all := LeakGroup{}
		for _, n := range x.parts[p] {
			all.Direct = append(all.Direct, int(x.leaked[n]))
		}
		taken := map[int32]bool{int32(p): true}
		if steps += x.behind(&all, int32(p), func(t int32) bool { was := taken[t]; taken[t] = true; return was }); steps > maxReach {
			break
		}
		sum := uint64(0)
		for _, i := range append(all.Direct, all.Indirect...) {
			sum = addSize(sum, x.h.Blocks[i].Size)
		}
		blocks, bytes = append(blocks, uint64(len(all.Direct)+len(all.Indirect))), append(bytes, sum)
	}
	n, size := l.Count(x.h, Leaked)
	for i := range l.Reach {
		l.Reach[i] = max(l.Reach[i], Uncertain)
	}
	if steps <= maxReach && pointers < uint64(len(blocks)) {
		l.Least = n - int(min(most(blocks, pointers), uint64(n)))
		l.LeastBytes = size - min(most(bytes, pointers), size)
	}
}

// most returns the sum of the n largest numbers.
func most(list []uint64, n uint64) (sum uint64) {
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, v := range list[:n] {
		sum = addSize(sum, v)
	}
	return sum
}

// link finds the pointers between leaked blocks.
func (x *leakGraph) link() {
	x.edges = make([][]int32, len(x.leaked))
	for n, i := range x.leaked {
		var out []int32
		x.pointers(x.content(int(i)), func(to int) {
			t, leaked := slices.BinarySearch(x.leaked, int32(to))
			if !leaked {
				return
			}
			out = append(out, int32(t))
			if len(out) > 64 && len(out)&(len(out)-1) == 0 { // drop duplicates
				slices.Sort(out)
				out = slices.Compact(out)
			}
		})
		slices.Sort(out)
		x.edges[n] = slices.Compact(out)
	}
}

// condense computes the components.
func (x *leakGraph) condense() {
	x.parts = components(x.edges)
	x.part = make([]int32, len(x.leaked))
	for p, members := range x.parts {
		for _, n := range members {
			x.part[n] = int32(p)
		}
	}
	x.pointed, x.cycle = make([]bool, len(x.parts)), make([]bool, len(x.parts))
	for n, out := range x.edges {
		for _, to := range out {
			if x.part[to] != x.part[n] {
				x.pointed[x.part[to]] = true
			} else {
				x.cycle[x.part[n]] = true
			}
		}
	}
}

// groups returns the components that no other component points to, grouped by call stacks.
// A group includes the blocks that are reachable only from it.
func (x *leakGraph) groups() (list []*LeakGroup) {
	taken := make([]bool, len(x.parts))
	groups := map[string]*LeakGroup{}
	// A component precedes the components that point to it: iterate backwards.
	for p := len(x.parts) - 1; p >= 0; p-- {
		if x.pointed[p] {
			continue
		}
		key := x.key(x.leaked, x.parts[p])
		if x.cycle[p] {
			key = "cycle" + key
		}
		group := groups[key]
		if group == nil {
			group = &LeakGroup{Cycle: x.cycle[p], Stacks: x.stacks(x.leaked, x.parts[p])}
			groups[key] = group
			list = append(list, group)
		}
		for _, n := range x.parts[p] {
			group.Direct = append(group.Direct, int(x.leaked[n]))
		}
		taken[p] = true
		x.behind(group, int32(p), func(t int32) bool { was := taken[t]; taken[t] = true; return was })
	}
	return list
}

// behind adds to a group the blocks that are reachable from a component. take takes a component, and reports whether
// it was taken before. behind returns the number of its steps.
func (x *leakGraph) behind(group *LeakGroup, p int32, take func(int32) bool) (steps int) {
	for work := []int32{p}; len(work) > 0; {
		q := work[len(work)-1]
		work = work[:len(work)-1]
		for _, n := range x.parts[q] {
			steps += len(x.edges[n])
			for _, to := range x.edges[n] {
				t := x.part[to]
				if take(t) {
					continue
				}
				work = append(work, t)
				for _, m := range x.parts[t] {
					group.Indirect = append(group.Indirect, int(x.leaked[m]))
				}
			}
		}
	}
	return steps
}

// key identifies the set of call stacks of a component.
func (g *graph) key(leaked []int32, members []int32) string {
	var keys []string
	for _, n := range members {
		keys = append(keys, g.stackKey(int(leaked[n])))
	}
	slices.Sort(keys)
	var out []byte
	for _, k := range slices.Compact(keys) {
		out = binary.AppendUvarint(out, uint64(len(k)))
		out = append(out, k...)
	}
	return string(out)
}

// stacks returns one block for each call stack of a component.
func (g *graph) stacks(leaked []int32, members []int32) (list []int) {
	seen := map[string]bool{}
	for _, n := range members {
		if k := g.stackKey(int(leaked[n])); !seen[k] {
			seen[k] = true
			list = append(list, int(leaked[n]))
		}
	}
	return list
}

// stackKey returns the call stack of a block as bytes, without the size. Blocks of an allocator
// that stores no call stacks are distinguished by their size.
func (g *graph) stackKey(block int) string {
	var s codec.Stack
	if b := g.h.Blob(block); b == nil || (codec.Decoder{Word: g.m.Word}).Decode(&s, nil, b) != nil {
		return ""
	}
	var out []byte
	if g.h.Foreign && len(s.PCs) == 0 {
		out = binary.BigEndian.AppendUint64(out, s.Size)
	}
	for _, pc := range s.PCs {
		out = binary.BigEndian.AppendUint64(out, pc)
	}
	return string(out)
}

// unseen is the index of a node that was not visited yet.
const unseen = -1

// tarjan is the state of Tarjan's algorithm.
type tarjan struct {
	edges      [][]int32
	index, low []int32
	on         []bool // whether a node is on stack
	stack      []int32
	calls      []visit
	next       int32
	parts      [][]int32
}

// visit is a call of the recursive function: a node, and the next of its edges.
type visit struct{ node, edge int32 }

// components returns the strongly connected components of a graph. A component precedes the
// components that point to it.
func components(edges [][]int32) (parts [][]int32) {
	n := len(edges)
	t := tarjan{edges: edges, index: make([]int32, n), low: make([]int32, n), on: make([]bool, n)}
	for i := range t.index {
		t.index[i] = unseen
	}
	for root := range edges {
		if t.index[root] != unseen {
			continue
		}
		for t.calls = append(t.calls, visit{int32(root), 0}); len(t.calls) > 0; {
			t.step()
		}
	}
	return t.parts
}

// step continues the innermost call: it visits the next edge, or returns.
func (t *tarjan) step() {
	c := &t.calls[len(t.calls)-1]
	v := c.node
	if c.edge == 0 && t.index[v] == unseen {
		t.index[v], t.low[v] = t.next, t.next
		t.next++
		t.stack = append(t.stack, v)
		t.on[v] = true
	}
	if int(c.edge) < len(t.edges[v]) {
		w := t.edges[v][c.edge]
		c.edge++
		if t.index[w] == unseen {
			t.calls = append(t.calls, visit{w, 0})
		} else if t.on[w] {
			t.low[v] = min(t.low[v], t.index[w])
		}
		return
	}
	t.calls = t.calls[:len(t.calls)-1]
	if len(t.calls) > 0 {
		u := t.calls[len(t.calls)-1].node
		t.low[u] = min(t.low[u], t.low[v])
	}
	if t.low[v] == t.index[v] {
		t.pop(v)
	}
}

// pop removes the component of v from the top of the stack.
func (t *tarjan) pop(v int32) {
	i := len(t.stack) - 1
	for t.stack[i] != v {
		i--
	}
	part := slices.Clone(t.stack[i:])
	slices.Reverse(part)
	t.stack = t.stack[:i]
	for _, w := range part {
		t.on[w] = false
	}
	t.parts = append(t.parts, part)
}
