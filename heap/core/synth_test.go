package core

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// synth is a synthetic device: RAM with a list of blocks in the layout of lws. It also holds
// the expected results.
type synth struct {
	word   int
	order  binary.ByteOrder
	base   uint64 // of mem
	mem    []byte
	owner  uint64
	brk    uint64 // address of the next block
	blocks []synthBlock
	rnd    *rand.Rand
}

type synthBlock struct {
	addr, size uint64
	start      uint64 // of the blob
	blob       []byte
	live       bool
}

const (
	synthOwner = 0x100  // offset of the owner: in bss
	synthStack = 0x800  // offsets of a stack
	synthHeap  = 0x1000 // offset of the heap
)

func newSynth(word int, order binary.ByteOrder, size int, seed uint64) *synth {
	s := &synth{word: word, order: order, base: 0x20000000, mem: make([]byte, size), rnd: rand.New(rand.NewPCG(seed, 14))}
	if word == 64 {
		s.base = 0x7f0012340000
	}
	s.owner, s.brk = s.base+synthOwner, s.base+synthHeap
	return s
}

func (s *synth) ptr() uint64 { return uint64(s.word / 8) }

func (s *synth) put(addr, v uint64) {
	p := s.mem[addr-s.base:]
	if s.word == 64 {
		s.order.PutUint64(p, v)
	} else {
		s.order.PutUint32(p, uint32(v))
	}
}

func (s *synth) get(addr uint64) uint64 { return uintOf(s.mem[addr-s.base:][:s.ptr()], s.order) }

// alloc adds a block, with a new call stack unless one is given, and returns its number.
func (s *synth) alloc(size int, pcs ...uint64) int {
	if len(pcs) == 0 {
		for range 1 + s.rnd.IntN(12) {
			pcs = append(pcs, 0x8000000+uint64(s.rnd.IntN(1<<18))*2)
		}
	}
	m := codec.MachineExact64
	if s.word == 32 {
		m = codec.MachineExact32
	}
	blob, err := codec.Encoder{Machine: m}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: uint64(size)}, nil)
	if err != nil {
		panic(err)
	}
	p := s.ptr()
	node := s.brk + 2*p + (uint64(len(blob))+p-1)/p*p // after the header of an allocator
	b := synthBlock{node + 3*p, uint64(size), node - uint64(len(blob)), blob, true}
	copy(s.mem[b.start-s.base:], blob)
	tail := s.get(s.owner)
	s.put(node, tail)
	s.put(node+p, 0)
	s.put(node+2*p, s.owner)
	if tail != 0 {
		s.put(tail+p, node)
	} else {
		s.put(s.owner+p, node)
	}
	s.put(s.owner, node)
	s.count(1)
	s.brk = (b.addr + uint64(size) + 2*p - 1) / (2 * p) * 2 * p
	s.blocks = append(s.blocks, b)
	return len(s.blocks) - 1
}

func (s *synth) count(d uint32) {
	p := s.mem[s.owner+2*s.ptr()-s.base:]
	s.order.PutUint32(p, s.order.Uint32(p)+d)
}

// free removes a block from the list, as lws_dll2_remove does, and leaves its bytes.
func (s *synth) free(i int) {
	p := s.ptr()
	node := s.blocks[i].addr - 3*p
	prev, next := s.get(node), s.get(node+p)
	if next != 0 {
		s.put(next, prev)
	} else {
		s.put(s.owner, prev)
	}
	if prev != 0 {
		s.put(prev+p, next)
	} else {
		s.put(s.owner+p, next)
	}
	s.put(node, 0)
	s.put(node+p, 0)
	s.put(node+2*p, 0)
	s.count(^uint32(0))
	s.blocks[i].live = false
}

func (s *synth) image() *Image {
	m := &Image{Word: s.word, Order: s.order}
	m.add(Segment{Addr: s.base, Data: s.mem, Write: true})
	return m
}

func (s *synth) search() Search { return Search{Owners: []Symbol{{Name: "active", Addr: s.owner}}} }

// live returns the addresses of the blocks in the list, in the order of the list.
func (s *synth) live() (list []uint64) {
	for _, b := range s.blocks {
		if b.live {
			list = append(list, b.addr)
		}
	}
	return list
}

func (s *synth) block(addr uint64) *synthBlock {
	for i := range s.blocks {
		if s.blocks[i].addr == addr {
			return &s.blocks[i]
		}
	}
	return nil
}

func addrs(h *Heap) (list []uint64) {
	for i := range h.Blocks {
		list = append(list, h.Blocks[i].Addr)
	}
	return list
}

var synths = []struct {
	name  string
	word  int
	order binary.ByteOrder
}{
	{"32-little", 32, binary.LittleEndian},
	{"32-big", 32, binary.BigEndian},
	{"64-little", 64, binary.LittleEndian},
	{"64-big", 64, binary.BigEndian},
}

// fill allocates n blocks and frees some of them.
func (s *synth) fill(n int) {
	for range n {
		s.alloc(s.rnd.IntN(200))
		if s.rnd.IntN(4) == 0 {
			if i := s.rnd.IntN(len(s.blocks)); s.blocks[i].live {
				s.free(i)
			}
		}
	}
}

// TestFindHeap finds undamaged lists with and without their owner.
func TestFindHeap(t *testing.T) {
	for _, c := range synths {
		for _, carve := range []bool{false, true} {
			s := newSynth(c.word, c.order, 1<<17, 1)
			s.fill(300)
			search := s.search()
			if carve {
				search = Search{}
			}
			h, err := s.image().FindHeap(search)
			if err != nil {
				t.Fatalf("%s, carving %v: %v", c.name, carve, err)
			}
			if !slices.Equal(addrs(h), s.live()) {
				t.Errorf("%s, carving %v: %d blocks, want %d", c.name, carve, len(h.Blocks), len(s.live()))
			}
			for i := range h.Blocks {
				b := &h.Blocks[i]
				if w := s.block(b.Addr); w == nil || b.Size != w.size || !slices.Equal(h.Blob(i), w.blob) {
					t.Fatalf("%s: block at %#x: size %d, want %+v", c.name, b.Addr, b.Size, w)
				}
			}
			if len(h.Owners) != 1 || h.Owners[0].Addr != s.owner || h.Owners[0].Carved != carve || len(h.Damage) > 0 || len(h.Notes()) > 0 {
				t.Errorf("%s, carving %v: %+v, damage %v, notes %q", c.name, carve, h.Owners, h.Damage, h.Notes())
			}
		}
	}
}

// TestNoHeap checks that no heap is found in random memory.
func TestNoHeap(t *testing.T) {
	for _, c := range synths {
		for seed := range uint64(20) {
			s := newSynth(c.word, c.order, 1<<16, seed)
			for i := range s.mem {
				s.mem[i] = byte(s.rnd.Uint32())
				if seed%2 == 0 { // words that look like pointers
					s.mem[i] &= 3
				}
			}
			for a := s.base; seed%4 < 2 && a < s.base+uint64(len(s.mem)); a += s.ptr() {
				s.put(a, s.base+uint64(s.rnd.IntN(len(s.mem)))&^(s.ptr()-1))
			}
			if h, err := s.image().FindHeap(Search{}); err != ErrNoHeap {
				t.Errorf("%s, seed %d: %v, %d blocks", c.name, seed, err, len(h.Blocks))
			}
		}
		s := newSynth(c.word, c.order, 1<<12, 1) // an empty list
		if h, err := s.image().FindHeap(s.search()); err != nil || len(h.Blocks) != 0 || len(h.Owners) != 1 {
			t.Errorf("%s, empty list: %v %v", c.name, h, err)
		}
	}
}

// damages lists kinds of damage: a function that overwrites memory, and the expected report.
var damages = []struct {
	name string
	do   func(s *synth, p uint64)
	// damaged lists the numbers of the blocks that must be reported. Block 5 follows block
	// 4, which overflows.
	damaged []int
	suspect int
	parts   Parts
}{
	{"overflow of 4 over all metadata of 5", func(s *synth, p uint64) {
		a := s.blocks[4]
		for x := a.addr + a.size; x < s.blocks[5].addr+1; x++ {
			s.mem[x-s.base] = 'A'
		}
	}, []int{5}, 4, DamagedNode | DamagedBlob},
	{"overflow of 4 over 5 and 6", func(s *synth, p uint64) {
		a := s.blocks[4]
		for x := a.addr + a.size; x < s.blocks[6].addr; x++ {
			s.mem[x-s.base] = 0xff
		}
	}, []int{5, 6}, 4, DamagedNode | DamagedBlob},
	{"overflow of 4 up to the length of 5", func(s *synth, p uint64) {
		a := s.blocks[4]
		for x := a.addr + a.size; x < s.blocks[5].addr-3*p; x++ {
			s.mem[x-s.base] = 'A'
		}
	}, []int{5}, 4, DamagedBlob},
	{"zeros of 4 over 5", func(s *synth, p uint64) {
		a := s.blocks[4]
		clear(s.mem[a.addr+a.size-s.base : s.blocks[5].addr-s.base])
	}, []int{5}, 4, DamagedNode},
	{"write before the start of 5", func(s *synth, p uint64) {
		for x := s.blocks[5].addr - 2*p; x < s.blocks[5].addr; x++ {
			s.mem[x-s.base] = 'A'
		}
	}, []int{5}, 5, 0},
	{"owner of 5", func(s *synth, p uint64) { s.put(s.blocks[5].addr-p, 0x41414141) }, []int{5}, 5, DamagedLink},
	{"next of 5", func(s *synth, p uint64) { s.put(s.blocks[5].addr-2*p, 0x41414141) }, []int{5}, 5, DamagedLink},
	{"prev of 5", func(s *synth, p uint64) { s.put(s.blocks[5].addr-3*p, 0x41414140) }, []int{5}, 5, DamagedLink},
	{"next of 5 leads back to 2", func(s *synth, p uint64) { s.put(s.blocks[5].addr-2*p, s.blocks[2].addr-3*p) }, []int{5}, 5, DamagedLink},
	{"prev of 5 leads on to 9", func(s *synth, p uint64) { s.put(s.blocks[5].addr-3*p, s.blocks[9].addr-3*p) }, []int{5}, 5, DamagedLink},
	{"next of 5 is itself", func(s *synth, p uint64) { s.put(s.blocks[5].addr-2*p, s.blocks[5].addr-3*p) }, []int{5}, 5, DamagedLink},
	{"next of 5 is 0", func(s *synth, p uint64) { s.put(s.blocks[5].addr-2*p, 0) }, []int{5}, 5, DamagedLink},
	{"5 and 8, each by the one before", func(s *synth, p uint64) {
		for _, i := range []int{5, 8} {
			for x := s.blocks[i].start; x < s.blocks[i].addr; x++ {
				s.mem[x-s.base] = 'B'
			}
		}
	}, []int{5, 8}, -2, DamagedNode | DamagedBlob},
	{"5 and 7: 6 alone between them", func(s *synth, p uint64) {
		for _, i := range []int{5, 7} {
			for x := s.blocks[i].start; x < s.blocks[i].addr; x++ {
				s.mem[x-s.base] = 'B'
			}
		}
	}, []int{5, 7}, -2, DamagedNode | DamagedBlob},
}

// A size of the last block that reaches beyond memory is damage; a size that ends with
// the memory is not.
func TestDamagedLastSize(t *testing.T) {
	for _, c := range synths {
		for _, damaged := range []bool{false, true} {
			s := newSynth(c.word, c.order, 1<<14, 5)
			for range 11 {
				s.alloc(16 + s.rnd.IntN(60))
			}
			size := 1 << 30
			if !damaged {
				size = 100
			}
			last := s.blocks[s.alloc(size, 0x8000101, 0x8000201)].addr
			h, err := s.image().FindHeap(s.search())
			if err != nil || len(h.Blocks) != 12 {
				t.Fatalf("%s: %v", c.name, err)
			}
			switch {
			case !damaged && len(h.Damage) > 0:
				t.Errorf("%s: damage %v of an intact heap", c.name, h.Damage)
			case damaged && (len(h.Damage) != 1 || h.Damage[0].Addr != last || h.Damage[0].Parts != DamagedSize):
				t.Errorf("%s: damage %v, want a size at %#x", c.name, h.Damage, last)
			}
		}
	}
}

func TestDamage(t *testing.T) {
	for _, c := range synths {
		for _, d := range damages {
			for _, carve := range []bool{false, true} {
				s := newSynth(c.word, c.order, 1<<14, 5)
				for range 12 {
					s.alloc(16 + s.rnd.IntN(60))
				}
				d.do(s, s.ptr())
				search := s.search()
				if carve {
					search = Search{}
				}
				name := c.name + ", " + d.name
				h, err := s.image().FindHeap(search)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := addrs(h)
				slices.Sort(got)
				if !slices.Equal(got, s.live()) {
					t.Errorf("%s: %d blocks, want %d: %#x; notes %q", name, len(got), len(s.live()), got, h.Notes())
					continue
				}
				var hit []int
				for _, x := range h.Damage {
					i := slices.Index(s.live(), x.Addr)
					hit = append(hit, i)
					want := d.suspect
					if want == -2 {
						want = i - 1
					}
					if x.Suspect < 0 || h.Blocks[x.Suspect].Addr != s.blocks[want].addr {
						t.Errorf("%s: block %d: suspect %d, want %d", name, i, x.Suspect, want)
					}
					if x.Parts&d.parts != d.parts {
						t.Errorf("%s: block %d: parts %b, want %b: %q", name, i, x.Parts, d.parts, x.What)
					}
				}
				if !slices.Equal(hit, d.damaged) {
					t.Errorf("%s: damage at %v, want %v: %+v", name, hit, d.damaged, h.Damage)
				}
			}
		}
	}
}

// TestOwnerOverwritten checks that the blocks are found if the owner is overwritten.
func TestOwnerOverwritten(t *testing.T) {
	for _, c := range synths {
		s := newSynth(c.word, c.order, 1<<14, 5)
		for range 12 {
			s.alloc(40)
		}
		for i := range 3 * s.ptr() {
			s.mem[synthOwner+i] = 0x5a
		}
		h, err := s.image().FindHeap(s.search())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := addrs(h); !slices.Equal(got, s.live()) {
			t.Errorf("%s: %d blocks, want %d", c.name, len(got), len(s.live()))
		}
		if len(h.Notes()) == 0 {
			t.Errorf("%s: no note about the owner", c.name)
		}
	}
}

// TestCut removes memory in the middle. The rest is found, and the missing part is
// reported.
func TestCut(t *testing.T) {
	for _, c := range synths {
		s := newSynth(c.word, c.order, 1<<14, 5)
		for range 40 {
			s.alloc(100)
		}
		from, to := s.blocks[10].addr+20-s.base, s.blocks[20].addr+20-s.base
		m := &Image{Word: s.word, Order: s.order}
		m.add(Segment{Addr: s.base, Data: s.mem[:from], Write: true})
		m.add(Segment{Addr: s.base + to, Data: s.mem[to:], Write: true})
		h, err := m.FindHeap(s.search())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want := slices.Delete(s.live(), 11, 21)
		if got := addrs(h); !slices.Equal(got, want) {
			t.Errorf("%s: %d blocks, want %d", c.name, len(got), len(want))
		}
		if len(h.Damage) > 0 || len(h.Notes()) == 0 {
			t.Errorf("%s: damage %+v, notes %q", c.name, h.Damage, h.Notes())
		}
	}
}
