package image

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// group makes groups of the leaked blocks: strongly connected components, by
// Tarjan's algorithm without recursion, and of those no other one points to, the
// ones with the same call stacks together.
func (g *graph) group(l *Leaks) {
	var leaked []int32 // indexes of Heap.Blocks
	number := make([]int32, len(l.Reach))
	for i, r := range l.Reach {
		number[i] = -1
		if r == Leaked {
			number[i] = int32(len(leaked))
			leaked = append(leaked, int32(i))
		}
	}
	if len(leaked) == 0 {
		return
	}
	edges := make([][]int32, len(leaked))
	for n, i := range leaked {
		var out []int32
		g.pointers(g.content(int(i)), func(to int) {
			if t := number[to]; t >= 0 {
				out = append(out, t)
				if len(out) > 64 && len(out)&(len(out)-1) == 0 { // the same again and again
					slices.Sort(out)
					out = slices.Compact(out)
				}
			}
		})
		slices.Sort(out)
		edges[n] = slices.Compact(out)
	}
	parts := components(edges)
	part := make([]int32, len(leaked)) // of each
	for p, members := range parts {
		for _, n := range members {
			part[n] = int32(p)
		}
	}
	pointed := make([]bool, len(parts))
	cycle := make([]bool, len(parts))
	for n, out := range edges {
		for _, to := range out {
			if part[to] != part[n] {
				pointed[part[to]] = true
			} else {
				cycle[part[n]] = true
			}
		}
	}
	taken := make([]bool, len(parts))
	groups := map[string]*LeakGroup{}
	var order []string
	// Components come in reverse order of their links: those that nothing points
	// to are the last of what they lead to.
	for p := len(parts) - 1; p >= 0; p-- {
		if pointed[p] {
			continue
		}
		key := g.key(leaked, parts[p])
		if cycle[p] {
			key = "cycle" + key
		}
		group := groups[key]
		if group == nil {
			group = &LeakGroup{Cycle: cycle[p], Stacks: g.stacks(leaked, parts[p])}
			groups[key] = group
			order = append(order, key)
		}
		for _, n := range parts[p] {
			group.Direct = append(group.Direct, int(leaked[n]))
		}
		taken[p] = true
		for work := []int{p}; len(work) > 0; {
			q := work[len(work)-1]
			work = work[:len(work)-1]
			for _, n := range parts[q] {
				for _, to := range edges[n] {
					if t := part[to]; !taken[t] {
						taken[t] = true
						work = append(work, int(t))
						for _, x := range parts[t] {
							group.Indirect = append(group.Indirect, int(leaked[x]))
						}
					}
				}
			}
		}
	}
	for _, key := range order {
		group := groups[key]
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
}

// key identifies the call stacks of a component, whatever their number and order.
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

// stackKey is the call stack of a block in bytes, without the size.
func (g *graph) stackKey(block int) string {
	var s codec.Stack
	if b := g.h.Blocks[block].Blob; b == nil || codec.DecodeWord(&s, b, g.m.Word) != nil {
		return ""
	}
	var out []byte
	for _, pc := range s.PCs {
		out = binary.BigEndian.AppendUint64(out, pc)
	}
	return string(out)
}

// components returns the strongly connected components of a graph, each before
// those that point to it.
func components(edges [][]int32) (parts [][]int32) {
	const unseen = -1
	n := len(edges)
	index, low := make([]int32, n), make([]int32, n)
	on := make([]bool, n)
	for i := range index {
		index[i] = unseen
	}
	type visit struct{ node, edge int32 }
	var stack []int32
	var calls []visit
	next := int32(0)
	for root := range edges {
		if index[root] != unseen {
			continue
		}
		calls = append(calls, visit{int32(root), 0})
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			v := c.node
			if c.edge == 0 && index[v] == unseen {
				index[v], low[v] = next, next
				next++
				stack = append(stack, v)
				on[v] = true
			}
			if int(c.edge) < len(edges[v]) {
				w := edges[v][c.edge]
				c.edge++
				if index[w] == unseen {
					calls = append(calls, visit{w, 0})
				} else if on[w] {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				u := calls[len(calls)-1].node
				low[u] = min(low[u], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			var part []int32
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				on[w] = false
				part = append(part, w)
				if w == v {
					break
				}
			}
			parts = append(parts, part)
		}
	}
	return parts
}
