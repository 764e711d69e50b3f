package profile

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// series is a list of dumps as changes from one to the next, in an order in which there are few: a dump is
// followed by those that are changes from it. The place of a dump in this order is its rank. Without it,
// two dumps that are continued by turns would take all values that differ between them for each dump.
type series struct {
	dumps []*Dump
	order []uint32 // by rank: the dump; nil if the rank is the index of the dump
	rank  []uint32 // by dump
	paths int      // number of paths of the Builder up to the last one of the dumps
}

func newSeries(dumps []*Dump) series {
	s := series{dumps: dumps}
	inOrder := true
	var last *table[Value]
	for i, d := range dumps {
		live := d.table()
		if live != nil {
			s.paths = max(s.paths, live.top)
			inOrder = inOrder && (i == 0 || live == last || live.from == nil || live.from == last)
		}
		last = live
	}
	if !inOrder {
		s.order = preorder(dumps)
		s.rank = make([]uint32, len(dumps))
		for rank, dump := range s.order {
			s.rank[dump] = uint32(rank)
		}
	}
	return s
}

// table returns the values of a dump, nil if it has none.
func (d *Dump) table() *table[Value] {
	if d == nil {
		return nil
	}
	return d.live
}

// dumpAt returns the dump with a rank.
func (s *series) dumpAt(rank uint32) uint32 {
	if s.order == nil {
		return rank
	}
	return s.order[rank]
}

// rankOf returns the rank of a dump.
func (s *series) rankOf(dump int) uint32 {
	if s.rank == nil {
		return uint32(dump)
	}
	return s.rank[dump]
}

// tableNode is a table with those that are from it.
type tableNode struct {
	dumps []uint32 // that have this table
	kids  []*tableNode
}

// preorder returns the indexes of dumps, those of a table before those of the tables that are from it. To go
// from each dump to the next one takes each change twice at most.
func preorder(dumps []*Dump) []uint32 {
	nodes := map[*table[Value]]*tableNode{}
	origins := map[*byte]*tableNode{}
	top := &tableNode{}
	for i, d := range dumps {
		live := d.table()
		var below *tableNode
		for t := live; ; t = t.from {
			n, known := nodes[t]
			if !known {
				n = &tableNode{}
				nodes[t] = n
			}
			if below != nil {
				n.kids = append(n.kids, below)
			}
			if below = n; known {
				break
			}
			if t == nil || t.from == nil {
				var origin *byte
				if t != nil {
					origin = t.origin
				}
				o, known := origins[origin]
				if !known {
					o = &tableNode{}
					origins[origin], top.kids = o, append(top.kids, o)
				}
				o.kids = append(o.kids, n)
				break
			}
		}
		nodes[live].dumps = append(nodes[live].dumps, uint32(i))
	}
	order := make([]uint32, 0, len(dumps))
	for stack := []*tableNode{top}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		order = append(order, n.dumps...)
		for _, kid := range slices.Backward(n.kids) {
			stack = append(stack, kid)
		}
	}
	return order
}

// each calls change for each path of the first dump by rank, and then for those whose value differs from
// the value in the dump before. It calls end, if not nil, after each dump.
func (s *series) each(change func(rank, path uint32, before, after Value), end func(dump uint32)) {
	var last *table[Value]
	var values []Value // by path, from the second dump on
	if len(s.dumps) > 1 {
		values = make([]Value, s.paths)
	}
	for rank := range uint32(len(s.dumps)) {
		set := func(path uint32, v Value) {
			before := Value{}
			if values != nil {
				before, values[path] = values[path], v
			}
			if before != v {
				change(rank, path, before, v)
			}
		}
		live := s.dumps[s.dumpAt(rank)].table()
		switch {
		case live != nil && live.from != nil && live.from == last:
			for k, id := range live.ids {
				set(id, live.values[k])
			}
		case live != last:
			if values, ok := between(last, live); ok {
				for _, id := range slices.Sorted(maps.Keys(values)) {
					set(id, values[id])
				}
			} else {
				differing(last, live, func(id uint32, _, v Value) { set(id, v) })
			}
		}
		last = live
		if end != nil {
			end(s.dumpAt(rank))
		}
	}
}

// met returns the paths in the order in which the dumps, by index, have them first.
func (s *series) met() []uint32 {
	type first struct{ dump, path uint32 }
	const never = 1<<32 - 1
	firsts := make([]uint32, s.paths)
	since := make([]uint32, s.paths) // 1 + the rank from which on the path has a value, 0 if it has none
	for i := range firsts {
		firsts[i] = never
	}
	earliest := newMinima(s.order)
	upTo := func(path, rank uint32) {
		if since[path] > 0 {
			firsts[path] = min(firsts[path], earliest.of(since[path]-1, rank))
		}
	}
	s.each(func(rank, path uint32, before, after Value) {
		if after.IsZero() {
			upTo(path, rank)
			since[path] = 0
		} else if before.IsZero() {
			since[path] = rank + 1
		}
	}, nil)
	var list []first
	for path := range since {
		if upTo(uint32(path), uint32(len(s.dumps))); firsts[path] != never {
			list = append(list, first{firsts[path], uint32(path)})
		}
	}
	slices.SortFunc(list, func(a, b first) int { return cmp.Or(cmp.Compare(a.dump, b.dump), cmp.Compare(a.path, b.path)) })
	paths := make([]uint32, len(list))
	for i, f := range list {
		paths[i] = f.path
	}
	return paths
}

// minima has the least values of a list from each index on, of 1, 2, 4, ... values.
type minima [][]uint32

func newMinima(list []uint32) minima {
	m := minima{list}
	for n := 1; 2*n <= len(list); n *= 2 {
		half := m[len(m)-1]
		least := make([]uint32, len(half)-n)
		for i := range least {
			least[i] = min(half[i], half[i+n])
		}
		m = append(m, least)
	}
	return m
}

// of returns the least value from an index on and before another one.
func (m minima) of(from, to uint32) uint32 {
	level := bits.Len32(to-from) - 1
	return min(m[level][from], m[level][to-1<<level])
}
