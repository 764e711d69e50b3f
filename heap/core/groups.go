package core

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// leakGraph holds the leaked blocks and the pointers between them.
type leakGraph struct {
	*graph
	leaked []int32   // indexes of Heap.Blocks
	edges  [][]int32 // positions in leaked, by position in leaked
}

// origin is a leaked block that no other one points to, or a cycle of such blocks, by positions in leaked.
type origin struct {
	members []int32
	cycle   bool
	behind  []int32 // what only it and later origins lead to
}

// group sets l.Groups: the origins, grouped by their call stacks.
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
	for _, group := range x.groups() {
		slices.Sort(group.Direct)
		slices.Sort(group.Indirect)
		group.Bytes = addSize(x.size(group.Direct), x.size(group.Indirect))
		l.Groups = append(l.Groups, *group)
	}
	slices.SortStableFunc(l.Groups, func(a, b LeakGroup) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Direct[0], b.Direct[0]))
	})
	if len(l.Absent) > 0 { // it may point to each of them
		for i := range l.Reach {
			l.Reach[i] = max(l.Reach[i], Uncertain)
		}
	}
}

// size returns the bytes of blocks.
func (g *graph) size(blocks []int) (sum uint64) {
	for _, i := range blocks {
		sum = addSize(sum, g.h.Blocks[i].Size)
	}
	return sum
}

// blocks appends the blocks of positions in leaked.
func (x *leakGraph) blocks(list []int, positions []int32) []int {
	for _, n := range positions {
		list = append(list, int(x.leaked[n]))
	}
	return list
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

// origins returns the origins, by Kosaraju's algorithm: of the blocks that are left, the one at which a depth-first search
// ended last is in an origin.
func (x *leakGraph) origins() (list []origin) {
	back := make([][]int32, len(x.edges))
	for from, out := range x.edges {
		for _, to := range out {
			back[to] = append(back[to], int32(from))
		}
	}
	taken, in := make([]int32, len(x.edges)), make([]int32, len(x.edges))
	for _, v := range slices.Backward(postorder(x.edges)) {
		if taken[v] != 0 {
			continue
		}
		s := origin{members: reach(back, v, in, 1)} // only its own members lead to an origin
		s.cycle = len(back[v]) > 0
		for _, n := range reach(x.edges, v, taken, 1) {
			if in[n] == 0 {
				s.behind = append(s.behind, n)
			}
		}
		list = append(list, s)
	}
	return list
}

// reach returns a node and those that it leads to, without those that have the mark in seen, and marks them.
func reach(edges [][]int32, from int32, seen []int32, mark int32) []int32 {
	list := []int32{from}
	seen[from] = mark
	for i := 0; i < len(list); i++ {
		for _, to := range edges[list[i]] {
			if seen[to] != mark {
				seen[to] = mark
				list = append(list, to)
			}
		}
	}
	return list
}

// postorder returns the nodes in the order in which a depth-first search ends at them.
func postorder(edges [][]int32) (order []int32) {
	next := make([]int32, len(edges)) // edge of each node, plus 1; 0 if it was not visited
	for root := range edges {
		if next[root] > 0 {
			continue
		}
		next[root] = 1
		for stack := []int32{int32(root)}; len(stack) > 0; {
			v := stack[len(stack)-1]
			k := next[v] - 1
			if int(k) == len(edges[v]) {
				order, stack = append(order, v), stack[:len(stack)-1]
				continue
			}
			next[v]++
			if to := edges[v][k]; next[to] == 0 {
				next[to] = 1
				stack = append(stack, to)
			}
		}
	}
	return order
}

// groups returns the origins, grouped by call stacks. A group includes the blocks that are reachable only from it.
func (x *leakGraph) groups() (list []*LeakGroup) {
	groups := map[string]*LeakGroup{}
	for _, s := range x.origins() {
		direct := x.blocks(nil, s.members)
		key, stacks := x.key(direct)
		if s.cycle {
			key = "cycle" + key
		}
		group := groups[key]
		if group == nil {
			group = &LeakGroup{Cycle: s.cycle, Stacks: stacks}
			groups[key] = group
			list = append(list, group)
		}
		group.Direct, group.Indirect = append(group.Direct, direct...), x.blocks(group.Indirect, s.behind)
	}
	return list
}

// key identifies the set of call stacks of blocks, and returns one block for each of them.
func (g *graph) key(blocks []int) (key string, stacks []int) {
	at := map[string]int{}
	for _, i := range blocks {
		k := g.stackKey(i)
		if _, seen := at[k]; !seen {
			at[k], stacks = i, append(stacks, i)
		}
	}
	var out []byte
	for _, k := range slices.Sorted(maps.Keys(at)) {
		out = binary.AppendUvarint(out, uint64(len(k)))
		out = append(out, k...)
	}
	return string(out), stacks
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
