package graph

import (
	"cmp"
	"math/bits"
	"slices"
)

// Holder is a root, or blocks of one type, or of similar sizes, that have the same nearest root, with what is
// reachable only through them.
type Holder struct {
	Root int // index of Graph.Roots
	// Shared reports whether several roots reach the blocks Top, so that none of them holds them
	// alone. Root is then the nearest.
	Shared bool
	Top    []int // blocks; empty if a root is the holder
	// Least and Most are the sizes of the smallest and largest block of Top, in bytes. Both are in
	// the same range from a power of two to the next.
	Least, Most uint64
	Type        string // of the blocks of Top, "" if not known

	Bytes  uint64
	Blocks int
}

// Holders returns the holders that no other block holds, the largest first. Each reachable block is
// counted once.
func (t *Tree) Holders() []Holder {
	type key struct {
		root int
		bits int // of the size
		typ  string
	}
	groups := map[key]*Holder{}
	var list []*Holder
	for _, v := range t.order[1:] {
		if t.idom[v] != 0 || t.blocks[v] == 0 {
			continue
		}
		b, isBlock := t.g.block(int(v))
		if !isBlock {
			list = append(list, &Holder{Root: int(v) - 1, Bytes: t.bytes[v], Blocks: int(t.blocks[v])})
			continue
		}
		root, _ := t.g.Nearest(b)
		size := t.g.Heap.Blocks[b].Size
		k := key{root, bits.Len64(size), t.g.Type(b)}
		h := groups[k]
		if h == nil {
			h = &Holder{Root: root, Shared: true, Least: size, Type: k.typ}
			groups[k] = h
			list = append(list, h)
		}
		h.Top = append(h.Top, b)
		h.Least, h.Most = min(h.Least, size), max(h.Most, size)
		h.Bytes, h.Blocks = plus(h.Bytes, t.bytes[v]), h.Blocks+int(t.blocks[v])
	}
	slices.SortStableFunc(list, func(a, b *Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(t.g.Roots[a.Root].Name, t.g.Roots[b.Root].Name), cmp.Compare(a.Least, b.Least), cmp.Compare(a.Type, b.Type))
	})
	out := make([]Holder, len(list))
	for i, h := range list {
		slices.Sort(h.Top)
		out[i] = *h
	}
	return out
}

// Unreached returns the blocks that no root reaches.
func (g *Graph) Unreached() (bytes uint64, blocks int) {
	for i := range g.Heap.Blocks {
		if !g.Reached(i) {
			bytes, blocks = plus(bytes, g.Heap.Blocks[i].Size), blocks+1
		}
	}
	return bytes, blocks
}
