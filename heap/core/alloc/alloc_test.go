package alloc

import "testing"

func TestInTheWay(t *testing.T) {
	block := func(addr, size uint64, s State) Block { return Block{Addr: addr, Size: size, Header: 8, State: s} }
	for _, c := range []struct {
		name   string
		blocks []Block
		addr   uint64
		hole   uint64
	}{
		{"no holes", []Block{block(0x1008, 24, Used), block(0x1028, 24, Used)}, 0, 0},
		{"one hole", []Block{block(0x1008, 24, Free), block(0x1028, 24, Used)}, 0, 0},
		{"a block between holes", []Block{block(0x1008, 56, Free), block(0x1048, 24, Used), block(0x1068, 88, Free)}, 0x1048, 0x1068 + 88 - 0x1008},
		{"two blocks between holes", []Block{block(0x1008, 56, Free), block(0x1048, 24, Used), block(0x1068, 24, Used), block(0x1088, 88, Free)}, 0, 0},
		{"a larger hole elsewhere", []Block{block(0x1008, 56, Free), block(0x1048, 24, Used), block(0x1068, 88, Free),
			block(0x10c8, 24, Used), block(0x10e8, 1000, Free)}, 0x10c8, 0x10e8 + 1000 - 0x1068},
		{"memory of others between", []Block{block(0x1008, 56, Free), block(0x2048, 24, Used), block(0x2068, 88, Free)}, 0, 0},
		{"a cached block is no hole", []Block{block(0x1008, 56, Cached), block(0x1048, 24, Used), block(0x1068, 88, Free)}, 0, 0},
	} {
		h := Heap{Blocks: c.blocks}
		w, ok := h.InTheWay()
		if ok != (c.addr != 0) || w.Block.Addr != c.addr || w.Hole != c.hole {
			t.Errorf("%s: block at %#x, hole of %d, %v; want %#x, %d", c.name, w.Block.Addr, w.Hole, ok, c.addr, c.hole)
		}
	}
}

// Without the name of an allocator, heaps of an allocator without symbols are left out if none is proven, but one of
// another allocator.
func TestSure(t *testing.T) {
	proven, unproven := []Proof{{"end", 1, 1}}, []Proof{{"end", 1, 2}}
	newlib := &Heap{Kind: Newlib, Proof: unproven}
	zephyr, other := &Heap{Kind: SysHeap, Proof: proven}, &Heap{Kind: SysHeap, Proof: unproven}
	for _, c := range []struct{ in, want []*Heap }{
		{[]*Heap{newlib, zephyr, other}, []*Heap{newlib, zephyr, other}},
		{[]*Heap{{Kind: Newlib, Proof: proven}, other}, []*Heap{newlib}},
		{[]*Heap{other}, []*Heap{other}},
		{nil, nil},
	} {
		n := len(c.in)
		got := sure(c.in)
		if len(got) != len(c.want) {
			t.Errorf("%d of %d heaps, want %d", len(got), n, len(c.want))
		}
	}
}

func TestNamesOfKinds(t *testing.T) {
	for _, name := range Names() {
		if k, ok := ParseKind(name); !ok || k.String() != name {
			t.Errorf("%s: %v, %v", name, k, ok)
		}
	}
	if _, ok := ParseKind("dlmalloc"); ok {
		t.Error("dlmalloc is no allocator")
	}
}

// A block between two small holes is not in the way of the largest one.
func TestInTheWayLargerHoleApart(t *testing.T) {
	h := Heap{Blocks: []Block{
		{Addr: 0x1008, Size: 56, Header: 8, State: Free}, {Addr: 0x1048, Size: 24, Header: 8, State: Used},
		{Addr: 0x1068, Size: 88, Header: 8, State: Free}, {Addr: 0x10c8, Size: 24, Header: 8, State: Used},
		{Addr: 0x10e8, Size: 24, Header: 8, State: Used}, {Addr: 0x1108, Size: 1000, Header: 8, State: Free},
	}}
	if w, ok := h.InTheWay(); ok {
		t.Errorf("%#x, hole of %d", w.Block.Addr, w.Hole)
	}
	n, bytes := h.Count(Free)
	if h.Drop(); h.Blocks != nil || h.Largest() != 1000 {
		t.Errorf("without blocks: %d bytes in the largest hole", h.Largest())
	}
	if k, sum := h.Count(Free); k != n || sum != bytes {
		t.Errorf("without blocks: %d holes of %d bytes, want %d of %d", k, sum, n, bytes)
	}
}
