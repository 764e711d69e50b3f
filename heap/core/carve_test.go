package core

import (
	"fmt"
	"slices"
	"testing"
)

// carveModes lists ways to damage block i without damage to the adjacent blocks.
var carveModes = []struct {
	name string
	do   func(s *synth, i int)
}{
	{"length and node zeroed", func(s *synth, i int) { s.fillFrom(s.blocks[i].addr-3*s.ptr()-2, s.blocks[i].addr, 0) }},
	{"all metadata zeroed", func(s *synth, i int) { s.fillFrom(s.blocks[i].start, s.blocks[i].addr, 0) }},
	{"all metadata overwritten by text", func(s *synth, i int) { s.fillFrom(s.blocks[i].start, s.blocks[i].addr, 'A') }},
	{"prev", func(s *synth, i int) { s.put(s.blocks[i].addr-3*s.ptr(), 0x41414140) }},
	{"next", func(s *synth, i int) { s.put(s.blocks[i].addr-2*s.ptr(), 0x41414140) }},
	{"owner", func(s *synth, i int) { s.put(s.blocks[i].addr-s.ptr(), 0x41414140) }},
	{"prev and next swapped", func(s *synth, i int) {
		node := s.blocks[i].addr - 3*s.ptr()
		prev, next := s.get(node), s.get(node+s.ptr())
		s.put(node, next)
		s.put(node+s.ptr(), prev)
	}},
	{"length", func(s *synth, i int) { s.fillFrom(s.blocks[i].addr-3*s.ptr()-2, s.blocks[i].addr-3*s.ptr(), 0xff) }},
	{"a run from the block before over its metadata and contents", func(s *synth, i int) {
		s.fillFrom(s.blocks[i-1].addr+s.blocks[i-1].size, s.blocks[i].addr+s.blocks[i].size, 0x20)
	}},
}

func (s *synth) fillFrom(from, to uint64, c byte) {
	for ; from < to; from++ {
		s.mem[from-s.base] = c
	}
}

// TestCarveBehindDamage overwrites some of 30 blocks, and checks that the others are found,
// with and without the owner.
func TestCarveBehindDamage(t *testing.T) {
	hits := map[string]func(i int) bool{
		"each third block":       func(i int) bool { return i%3 == 1 },
		"each second block":      func(i int) bool { return i%2 == 1 },
		"two of each four":       func(i int) bool { return i%4 == 1 || i%4 == 2 },
		"the first and the last": func(i int) bool { return i == 1 || i == 29 },
		"all but four":           func(i int) bool { return i > 0 && i%8 != 3 },
	}
	for _, c := range synths {
		for _, mode := range carveModes {
			for hit, is := range hits {
				for _, named := range []bool{true, false} {
					s := newSynth(c.word, c.order, 1<<14, 3)
					for range 30 {
						s.alloc(16+s.rnd.IntN(60), 0x8000101, 0x8000203, 0x8000305)
					}
					name := fmt.Sprintf("%s, %s: %s, owner named %v", c.name, hit, mode.name, named)
					carveBehind(t, name, s, mode.do, is, named)
				}
			}
		}
	}
}

// carveBehind damages the blocks for which is returns true, and checks that the others are found.
func carveBehind(t *testing.T, name string, s *synth, do func(*synth, int), is func(int) bool, named bool) {
	var intact []uint64
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if is(i) {
			do(s, i)
		} else {
			intact = append(intact, s.blocks[i].addr)
		}
	}
	search := s.search()
	if !named {
		search = Search{}
	}
	h, err := s.image().FindHeap(search)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	found := addrs(h)
	for _, addr := range intact {
		if !slices.Contains(found, addr) {
			t.Errorf("%s: the block at %#x is not among %d found; notes %q", name, addr, len(found), h.Notes())
			break
		}
	}
	for _, addr := range found {
		if s.block(addr) == nil {
			t.Errorf("%s: no block is at %#x", name, addr)
		}
	}
}
