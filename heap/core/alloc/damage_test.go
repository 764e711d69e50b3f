package alloc

import (
	"bytes"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// overwritten counts the effects of overwritten headers.
type overwritten struct {
	cases, detected, lost, hidden, invented int
	leaks                                   int // that are none
}

// overwrite overwrites the header of each of the program's blocks in turn.
func (s *stopped) overwrite(t *testing.T, kind Kind, text []byte) (o overwritten) {
	t.Helper()
	m, p := s.open(t)
	heaps, err := Find(m, p, kind)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[uint64]uint64{}
	known := map[uint64]bool{}
	for _, h := range heaps {
		for _, b := range h.Blocks {
			headers[b.Addr] = b.header()
			known[b.Addr] = true
		}
	}
	most := 40
	if cmdtest.All() {
		most = 300
	}
	leaks := map[uint64]bool{}
	for _, x := range s.readTruth(t) {
		leaks[x.addr] = x.leaked
	}
	step := max(1, len(s.readTruth(t))/most)
	for i := 0; i < len(s.truth); i += step {
		x := s.truth[i]
		if text == nil {
			text = make([]byte, headers[x.addr])
		}
		if now, _ := m.Bytes(x.addr-headers[x.addr], uint64(len(text))); bytes.Equal(now, text) {
			continue // nothing to overwrite
		}
		o.cases++
		m, p := s.open(t, patch{x.addr - headers[x.addr], text})
		heaps, err := Find(m, p, kind)
		if err != nil {
			t.Errorf("block at %#x: %v", x.addr, err)
			continue
		}
		o.add(t, heaps, known, x, s.truth)
		if uint64(len(text)) > headers[x.addr] { // the block's own pointers are overwritten, too
			m.Close()
			continue
		}
		h := Core(m, heaps)
		l := m.FindLeaks(h, core.Roots{Data: p.Data})
		for i, r := range l.Reach {
			if leaked, known := leaks[h.Blocks[i].Addr]; known && !leaked && r == core.Leaked {
				o.leaks++
			}
		}
		m.Close()
	}
	return o
}

// add counts the effects of one header, that of block x.
func (o *overwritten) add(t *testing.T, heaps []*Heap, known map[uint64]bool, x truth, all []truth) {
	found, detected := map[uint64]bool{}, false
	for _, h := range heaps {
		detected = detected || len(h.Damage) > 0 || !h.Proven()
		for _, d := range h.Damage {
			if d.Lost > 0 && h.Blocks[d.Block].Trust != Damaged {
				t.Errorf("%s: the block of the damage at %#x is at %#x", h.Name, d.Addr, h.Blocks[d.Block].Addr)
			}
		}
		for _, b := range h.Blocks {
			if b.State != Used {
				continue
			}
			if found[b.Addr] = true; !known[b.Addr] && b.Trust != Damaged {
				o.invented++
			}
		}
	}
	if detected {
		o.detected++
	}
	doubtful := func(addr uint64) bool {
		return slices.ContainsFunc(heaps, func(h *Heap) bool { i := h.block(addr); return i >= 0 && h.Blocks[i].Trust != Intact })
	}
	for _, y := range all {
		switch {
		case y == x || found[y.addr]:
		case doubtful(y.addr):
			o.hidden++
		default:
			o.lost++
		}
	}
}

// TestOverwrittenHeaders overwrites each header by text and by zeros: the damage is detected, and
// the blocks around it are still found. TestSavedImages does so for each allocator; here are words and byte orders that no
// saved image has, with LWSBT_FULL=all each machine.
func TestOverwrittenHeaders(t *testing.T) {
	few := []string{"glibc", "glibc-i386", "glibc-mips", "glibc-s390x", "musl-threads"}
	for _, s := range systems() {
		if !cmdtest.All() && !slices.Contains(few, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if s.name != "glibc" {
				cmdtest.Long(t)
			}
			if s.kind == JeMalloc {
				t.Skip("its blocks have no headers: TestDamageOfJemalloc")
			}
			s.run(t).overwriteAll(t, s.kind)
		})
	}
}

// overwriteAll overwrites each header by text of one or two words of 32 bits, and by zeros.
func (s *stopped) overwriteAll(t *testing.T, kind Kind) {
	t.Helper()
	texts := [][]byte{[]byte("ABCDEFGH"), nil} // nil: zeros
	if cmdtest.All() {
		texts = append(texts, []byte("ABCD"))
	}
	for _, text := range texts {
		o := s.overwrite(t, kind, text)
		t.Logf("%q: %d of %d detected, %d other blocks lost, %d in doubtful ones, %d invented, %d false leaks", text, o.detected, o.cases, o.lost, o.hidden, o.invented, o.leaks)
		least := o.cases * 99 / 100
		if kind == MuslNG && text == nil { // zeros are a valid header of the first slot of a group
			least = o.cases * 80 / 100
		}
		most := max(1, o.cases/20)
		// An old header in the content of a block may lead over the blocks behind it. Then these are in a block that is said to be
		// doubtful or damaged.
		if o.cases < 30 || o.detected < least || o.lost > most || o.lost+o.hidden > max(3, most) || o.invented > max(1, o.cases/20) || o.leaks > 0 {
			t.Errorf("%q: %+v", text, o)
		}
	}
}

// TestStoppedInFree sets the memory as free leaves it before its last step: the size behind a free block is
// missing, or in musl, the slot is not marked yet: this is found. All other blocks are found, and only them.
func TestStoppedInFree(t *testing.T) {
	for _, s := range systems() {
		if s.name != "glibc" && s.name != "newlib" && s.name != "musl" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			cmdtest.Long(t)
			p := s.run(t)
			if s.kind == Glibc { // no caches: more blocks are free
				p = coreOf(t, "gcc", "", oddCase{"trimmed", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", 0})
			}
			m, program := p.open(t)
			heaps, err := Find(m, program, s.kind)
			if err != nil {
				t.Fatal(err)
			}
			word, cases := uint64(m.PointerSize()), 0
			known := map[uint64]bool{}
			for _, b := range heaps[0].Blocks {
				known[b.Addr] = true
			}
			own := map[uint64]truth{}
			for _, x := range p.readTruth(t) {
				own[x.addr] = x
			}
			for i, b := range heaps[0].Blocks {
				x, state := patch{b.Addr + b.Size - word, make([]byte, word)}, Free
				if s.kind == MuslNG {
					x, state = patch{b.Addr - 3, []byte{0xff, 0, 0}}, Used
				}
				if b.State != state || i+2 >= len(heaps[0].Blocks) || b.Size < 2*word {
					continue
				}
				cases++
				m, program := p.open(t, x)
				again, err := Find(m, program, s.kind)
				if err != nil {
					t.Fatal(err)
				}
				var o overwritten
				o.add(t, again, known, own[b.Addr], p.readTruth(t))
				if o.lost+o.hidden > 0 || o.invented > 0 || o.detected == 0 {
					t.Errorf("block at %#x of %d bytes: %+v", b.Addr, b.Size, o)
				}
				m.Close()
			}
			if cases < 20 {
				t.Errorf("%d blocks", cases)
			}
		})
	}
}

// Where a heap of FreeRTOS marks the blocks in use, one that lost its mark is damaged. Versions that mark none have no such block.
func TestLostMark(t *testing.T) {
	cases := 0
	for _, s := range images(t) {
		if s.kind != FreeRTOS {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			p := s.run(t)
			m, program := p.open(t)
			heaps, err := Find(m, program, s.kind)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range heaps[0].Blocks {
				size, _ := m.Uint(b.Addr-4, 4)
				if b.State != Used || i == 0 || i%8 != 0 || size>>31 == 0 {
					continue
				}
				cases++
				size &^= 1 << 31
				m, program := p.open(t, patch{b.Addr - 4, []byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24)}})
				again, err := Find(m, program, s.kind)
				if err == nil && !slices.ContainsFunc(again, func(h *Heap) bool { return len(h.Damage) > 0 || !h.Proven() }) {
					t.Errorf("block at %#x: nothing is found", b.Addr)
				}
				m.Close()
			}
		})
	}
	if cases < 10 {
		t.Errorf("%d blocks", cases)
	}
}
