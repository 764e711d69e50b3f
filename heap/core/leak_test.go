package core

import (
	"slices"
	"testing"
)

// graphOf makes blocks that point to each other at random, with roots in a stack and in data,
// and returns the leaked blocks. It computes them from the generated links, not from memory.
func graphOf(s *synth, n int) (leaked []int) {
	word := uint64(s.word / 8)
	links := make([][]int, n)
	live := make([]bool, n)
	for range n {
		s.alloc(int(word) * (2 + s.rnd.IntN(10)))
	}
	pointTo := func(at uint64, to int) {
		b := s.blocks[to]
		inside := uint64(0)
		if s.rnd.IntN(3) == 0 { // interior pointers
			inside = uint64(s.rnd.IntN(int(b.size)))
		}
		s.put(at, b.addr+inside)
	}
	for i := range n {
		b := s.blocks[i]
		for at := b.addr; at+word <= b.addr+b.size; at += word {
			switch s.rnd.IntN(8) {
			case 0, 1:
				to := s.rnd.IntN(n)
				if s.rnd.IntN(2) == 0 { // near ones, so that there are long chains
					to = min(n-1, i+s.rnd.IntN(4))
				}
				pointTo(at, to)
				links[i] = append(links[i], to)
			case 2: // a pointer to no block: to metadata, between blocks, or outside
				x := s.blocks[s.rnd.IntN(n)]
				s.put(at, []uint64{x.addr - 3*word, x.start, s.base + 8, 0x1234, x.addr - 1}[s.rnd.IntN(5)])
			}
		}
	}
	var work []int
	for range 1 + n/20 {
		to := s.rnd.IntN(n)
		pointTo(s.base+synthStack+8*uint64(s.rnd.IntN(64)), to)
	}
	// A root may have been overwritten: read the roots again.
	for a := s.base + synthStack; a < s.base+synthStack+64*8+8; a += word {
		v := s.get(a)
		for i, b := range s.blocks {
			if b.addr <= v && v < b.addr+b.size {
				work = append(work, i)
			}
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if !live[i] {
			live[i] = true
			work = append(work, links[i]...)
		}
	}
	for i := range n {
		if !live[i] {
			leaked = append(leaked, i)
		}
	}
	return leaked
}

// TestLeaksOfGraphs checks on random graphs that every leaked block is found, and no other
// block is reported.
func TestLeaksOfGraphs(t *testing.T) {
	blocks, found := 0, 0
	for _, c := range synths {
		for seed := range uint64(50) {
			s := newSynth(c.word, c.order, 1<<16, seed)
			want := graphOf(s, 20+int(seed)*4)
			m := s.image()
			h, err := m.FindHeap(s.search())
			if err != nil {
				t.Fatal(err)
			}
			l := m.FindLeaks(h, Roots{})
			var got []int
			for i, r := range l.Reach {
				if r < OnStack {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, seed %d: %v are leaked, want %v", c.name, seed, got, want)
			}
			blocks += len(l.Reach)
			found += len(want)
			// Each is in one group, directly or indirectly.
			var all []int
			for _, g := range l.Groups {
				all = append(append(all, g.Direct...), g.Indirect...)
			}
			slices.Sort(all)
			var leaked []int
			for i, r := range l.Reach {
				if r == Leaked {
					leaked = append(leaked, i)
				}
			}
			if !slices.Equal(all, leaked) {
				t.Fatalf("%s, seed %d: groups have %v, want %v", c.name, seed, all, leaked)
			}
		}
	}
	if found < 1000 || blocks-found < 1000 {
		t.Errorf("%d of %d blocks are leaked: too few or too many to test anything", found, blocks)
	}
	t.Logf("%d blocks, %d leaked", blocks, found)
}

// TestLeakGroups groups a chain, a cycle and a tree, each with a different call stack.
func TestLeakGroups(t *testing.T) {
	s := newSynth(64, synths[2].order, 1<<14, 1)
	at := func(i, word int) uint64 { return s.blocks[i].addr + uint64(8*word) }
	link := func(from, word, to int) { s.put(at(from, word), s.blocks[to].addr) }
	pcs := func(n uint64) []uint64 { return []uint64{0x8000100 * n, 0x8000200} }
	for range 2 { // blocks 0 to 2 and 3 to 5: a list of two that hold one more
		a, b, c := s.alloc(32, pcs(1)...), s.alloc(32, pcs(2)...), s.alloc(16, pcs(3)...)
		link(a, 0, b)
		link(b, 0, c)
	}
	var ring [6]int // 6 to 11: two rings of three, with something that hangs on it
	for r := range 2 {
		for i := range 3 {
			ring[3*r+i] = s.alloc(24, pcs(uint64(4+i%2))...)
		}
		for i := range 3 {
			link(ring[3*r+i], 1, ring[3*r+(i+1)%3])
		}
	}
	hung := s.alloc(100, pcs(6)...)
	link(ring[0], 2, hung)
	self := s.alloc(8, pcs(7)...)
	link(self, 0, self)
	kept := s.alloc(50, pcs(8)...)
	s.put(s.base+synthStack, s.blocks[kept].addr+49)

	m := s.image()
	h, err := m.FindHeap(s.search())
	if err != nil {
		t.Fatal(err)
	}
	l := m.FindLeaks(h, Roots{})
	type group struct {
		direct, indirect, stacks int
		cycle                    bool
		bytes                    uint64
	}
	var got []group
	for _, g := range l.Groups {
		got = append(got, group{len(g.Direct), len(g.Indirect), len(g.Stacks), g.Cycle, g.Bytes})
	}
	want := []group{
		{6, 1, 2, true, 6*24 + 100},
		{2, 4, 1, false, 2 * (32 + 32 + 16)},
		{1, 0, 1, true, 8},
	}
	if !slices.Equal(got, want) {
		t.Errorf("groups %+v, want %+v", got, want)
	}
	if l.Reach[kept] != Reachable {
		t.Error("an interior pointer to the last byte does not count")
	}
}

// TestUncertain checks a pointer from heap memory that is in no block.
func TestUncertain(t *testing.T) {
	s := newSynth(32, synths[0].order, 1<<14, 1)
	s.alloc(32)
	gone := s.alloc(32)
	s.alloc(32)
	only := s.alloc(32)
	s.put(s.base+synthStack, s.blocks[0].addr)
	s.put(s.base+synthStack+8, s.blocks[2].addr)
	s.put(s.blocks[gone].addr, s.blocks[only].addr)
	s.free(gone)
	m := s.image()
	h, err := m.FindHeap(s.search())
	if err != nil {
		t.Fatal(err)
	}
	l := m.FindLeaks(h, Roots{})
	if want := []Reach{Reachable, Reachable, Uncertain}; !slices.Equal(l.Reach, want) {
		t.Errorf("%v, want %v", l.Reach, want)
	}
}

// TestSpans compares set operations on spans with sets of bytes.
func TestSpans(t *testing.T) {
	s := newSynth(32, synths[0].order, 1<<12, 3)
	for range 2000 {
		random := func() (list []span, set [40]bool) {
			for range s.rnd.IntN(5) {
				a := s.rnd.IntN(36)
				b := a + s.rnd.IntN(5)
				list = append(list, span{uint64(a), uint64(b)})
				for i := a; i < b; i++ {
					set[i] = true
				}
			}
			return normal(list), set
		}
		a, inA := random()
		b, inB := random()
		for _, op := range []struct {
			name string
			got  []span
			want func(i int) bool
		}{
			{"normal", a, func(i int) bool { return inA[i] }},
			{"subtract", subtract(a, b), func(i int) bool { return inA[i] && !inB[i] }},
			{"overlap", overlap(a, b), func(i int) bool { return inA[i] && inB[i] }},
		} {
			var got [40]bool
			for _, s := range op.got {
				if s.start >= s.end {
					t.Fatalf("%s of %v and %v: empty span in %v", op.name, a, b, op.got)
				}
				for i := s.start; i < s.end; i++ {
					if got[i] {
						t.Fatalf("%s of %v and %v: %v overlap", op.name, a, b, op.got)
					}
					got[i] = true
				}
			}
			for i := range got {
				if got[i] != op.want(i) {
					t.Fatalf("%s of %v and %v: %v", op.name, a, b, op.got)
				}
			}
		}
	}
}
