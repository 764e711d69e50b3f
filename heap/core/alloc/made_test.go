package alloc

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
)

// made is memory with a heap that a test builds word by word. Variables and data are in its first page.
type made struct {
	kind  Kind
	base  uint64
	data  []byte
	word  uint64 // bytes
	names map[string]uint64
	array uint64 // bytes of the variables, 0 for a word
}

func make32(kind Kind, size int) *made {
	return &made{kind: kind, base: 0x20000000, data: make([]byte, size), word: 4}
}

func make64(kind Kind, base uint64, size int) *made {
	return &made{kind: kind, base: base, data: make([]byte, size), word: 8}
}

// put stores words at an offset.
func (x *made) put(off uint64, words ...uint64) {
	for i, v := range words {
		at := x.data[off+uint64(i)*x.word:]
		if x.word == 8 {
			binary.LittleEndian.PutUint64(at, v)
		} else {
			binary.LittleEndian.PutUint32(at, uint32(v))
		}
	}
}

// image returns the image, and the program with the data and the variables.
func (x *made) image(t *testing.T) (*core.Image, Program) {
	t.Helper()
	m := &core.Image{Word: int(8 * x.word), Order: binary.LittleEndian}
	t.Cleanup(m.Close)
	name := filepath.Join(t.TempDir(), "ram")
	if err := os.WriteFile(name, x.data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.AddRAM(x.base, name); err != nil {
		t.Fatal(err)
	}
	return m, Program{Data: []core.Map{{Start: x.base, End: x.base + pageSize, Write: true, File: "fw.elf"}},
		Variables: func(names ...string) (list []core.Symbol) {
			for _, n := range names {
				if off, ok := x.names[n]; ok {
					list = append(list, core.Symbol{Name: n, Addr: x.base + off, Size: max(x.word, x.array)})
				}
			}
			return list
		}}
}

func (x *made) find(t *testing.T) ([]*Heap, error) {
	t.Helper()
	m, p := x.image(t)
	return Find(m, p, x.kind)
}

// none fails if there is a heap.
func (x *made) none(t *testing.T, name string) {
	t.Helper()
	if heaps, err := x.find(t); !errors.Is(err, ErrNone) {
		t.Errorf("%s: %d heaps, %v; want none", name, len(heaps), err)
	}
}

// used fails if the used blocks of the first heap are not those at offsets, or the heap is not proven.
func (x *made) used(t *testing.T, name string, offsets ...uint64) *Heap {
	t.Helper()
	heaps, err := x.find(t)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var got []uint64
	for _, b := range heaps[0].Blocks {
		if b.State == Used && b.Trust != Damaged {
			got = append(got, b.Addr-x.base)
		}
	}
	if !slices.Equal(got, offsets) || !heaps[0].Proven() {
		t.Errorf("%s: used blocks %#x, want %#x; proof %+v", name, got, offsets, heaps[0].Proof)
	}
	return heaps[0]
}

// multiHeapMade is a heap of ESP-IDF with a control block of size bytes, all lists of which are empty, and one used block.
func multiHeapMade(x *made, size, block uint64) *made {
	p := x.word
	info, control := uint64(64), 64+5*p
	at := control + 5*p
	x.put(info, 0, p, p, size+2*p+block, x.base+control)
	x.put(at, size, 0, x.base+at+4*p, x.base+at+8*p)
	for off := at + 4*p; off < control+size; off += p {
		x.put(off, x.base+control)
	}
	x.put(control+size, block) // the block, and the end mark
	return x
}

// What a heap of ESP-IDF cannot have is none, though all else fits.
func TestNoMultiHeap(t *testing.T) {
	valid := func() *made { return multiHeapMade(make32(MultiHeap, 1<<18), 0x100, 24) }
	const control = 64 + 20
	valid().used(t, "valid", control+0x100+4)
	multiHeapMade(make32(MultiHeap, 1<<18), 1<<16, 24).used(t, "the largest control block", control+1<<16+4)
	multiHeapMade(make32(MultiHeap, 1<<18), 1<<16+4, 24).none(t, "a larger control block")
	multiHeapMade(make32(MultiHeap, 1<<18), 0x100, 16).used(t, "the smallest pool", control+0x100+4)
	multiHeapMade(make32(MultiHeap, 1<<18), 0x100, 12).none(t, "a smaller pool")
	for _, c := range []struct {
		name       string
		off, value uint64
	}{
		{"lists in the bitmaps", control + 20 + 12, 0x20000000 + control + 20 + 16},
		{"no lists", control + 20 + 12, 0x20000000 + control + 0x100},
		{"bitmaps elsewhere", control + 20 + 8, 0x20000000 + control + 20 + 20},
		{"more bytes free at least than are free", 64 + 8, 8},
		{"more bytes free than in the pool", 64 + 4, 0x100 + 8 + 24 + 4},
	} {
		x := valid()
		x.put(c.off, c.value)
		x.none(t, c.name)
	}
	high := ^uint64(0) - 1<<20 + 1
	multiHeapMade(make64(MultiHeap, high, 1<<18), 0x200, 1<<31).none(t, "a pool that leads over the end of the address space")
	multiHeapMade(make64(MultiHeap, 1<<32, 1<<18), 0x200, 1<<32).none(t, "a pool of over 4 GB")
}

// mmHeapMade is a heap of NuttX with two regions, each with one used block, or one region.
func mmHeapMade(regions uint64) *made {
	x := make32(NuttX, 1<<13)
	const at, node = 64, 8
	size := uint64(0)
	for i := range regions {
		start := 4096 + i*1024
		x.put(start, 0, node|1, 0, 32|1)
		x.put(start+node+32, 0, node|1)
		x.put(at+4*i, x.base+start)
		x.put(at+4*(regions+i), x.base+start+node+32)
		size += node + 32 + node
	}
	x.put(at-12, size)
	lists := at + 8*regions
	if regions > 1 {
		x.put(lists, regions)
		lists += 4
	}
	x.put(lists+8, x.base+lists+16, x.base+lists+16) // two empty lists
	x.put(lists+24, x.base+lists, x.base+lists)
	return x
}

func TestNoMMHeap(t *testing.T) {
	mmHeapMade(1).used(t, "a region", 4096+16)
	h := mmHeapMade(2).used(t, "two regions", 4096+16, 5120+16)
	if own := (core.Map{Start: 0x20000000 + 64 - 12, End: 0x20000000 + 64 + 16 + 4 + 2*16, Write: true}); !slices.Contains(h.Ranges, own) { // with two lists
		t.Errorf("ranges %+v, want %+v", h.Ranges, own)
	}
	x := mmHeapMade(1)
	x.put(64-12, 0)
	x.put(64+16, 0) // the number, if there are several
	x.none(t, "no region")
	x = mmHeapMade(1)
	x.put(64+4, x.base+4096)
	x.put(64-12, 8)
	x.none(t, "a region whose first node is the last one")
	x = mmHeapMade(1)
	x.put(4096+40+4, 16|1)
	x.none(t, "a last node with a size")
	x = mmHeapMade(2)
	x.put(5120+4, 16|1)
	x.none(t, "a first node with a size, in the second region")

	const node, at, end = 16, 64, 1<<37 + 3
	x = make64(NuttX, 1<<37-1<<13, 1<<14) // the number of regions, 3, as part of an address
	first, second := x.base+4096, x.base+6144
	for _, addr := range []uint64{first, first + 64, second, second + 64, end} {
		x.put(addr-x.base+8, node|1)
	}
	x.put(at, first, second, first+64, second+64, end)
	x.put(at-24, 64+node+64+node+end-first-64+node)
	x.none(t, "more regions than there is space for")
}

// The end of a heap of newlib-nano is a value of a variable, to which chunks lead, even if a header is damaged.
func TestEndOfNanoHeap(t *testing.T) {
	const start, chunks, damaged = 4096 + 4, 24, 5
	for _, size := range []uint64{16, 0x13, 1 << 20} { // intact, no multiple of a word, beyond all memory
		x := make32(NewlibNano, 1<<13)
		x.names = map[string]uint64{"__malloc_sbrk_start": 16, "__malloc_free_list": 20}
		x.put(16, x.base+start)
		var want []uint64
		for i := range uint64(chunks) {
			if x.put(start+16*i, 16); i != damaged || size == 16 {
				want = append(want, start+16*i+4)
			}
		}
		x.put(start+16*damaged, size)
		x.put(64, x.base+start+16*chunks)      // the end
		x.put(68, x.base+start+16*(chunks+9))  // no end: only one chunk leads there
		x.put(start+16*(chunks+8), 16)         // it
		x.put(72, x.base+start+16*damaged+120) // no end: an address in the heap
		h := x.used(t, "nano", want...)
		if n := len(h.Damage); (n > 0) != (size != 16) {
			t.Errorf("size %#x: %+v", size, h.Damage)
		}
	}
}

// arenaMade is a main arena of glibc since 2.43, without fast bins, of size bytes, and its offset.
func arenaMade(top, size uint64) (x *made, arena uint64) {
	x = make64(Glibc, 0x7f0000000000, 1<<16)
	const bins = 256
	for i := range uint64(binPairs) {
		x.put(bins+16*i, x.base+bins+16*i-16, x.base+bins+16*i-16)
	}
	x.put(bins-16, x.base+top)
	x.put(bins+16*binPairs+16, x.base+bins-24, 0, 1, size, size)
	return x, bins - 24
}

// glibcMade is a main arena with used blocks of 24 bytes.
func glibcMade() (x *made, arena uint64) {
	const heap, size, blocks = 1 << 13, 1 << 14, 16
	top := uint64(heap + 32*blocks)
	x, arena = arenaMade(top, size)
	for i := range uint64(blocks) {
		x.put(heap+32*i+8, 32|1)
		x.put(heap+32*i+16, 1) // not zeros: these may be a cache
	}
	x.put(top+8, size-32*blocks|1)
	return x, arena
}

// The part of a main arena with its top chunk may be a mapping below the part of sbrk.
func TestScatteredArena(t *testing.T) {
	const mapped, grown, top = 1 << 12, 1 << 14, 1<<12 + 2048
	x, _ := arenaMade(top, 4*pageSize)
	x.put(mapped+8, 1024|1)
	x.put(mapped+1024+8, 1024|1)
	x.put(top+8, 2048|1)
	x.put(grown+8, 4096|1)
	x.put(grown+4096+8, 4096|1)
	x.put(grown+8192+8, 4064|1)
	x.put(grown+12256+8, 16|1, 0, 16|1) // the end marks of 3 pages
	x.put(3072, 1<<16<<32, 0, 0, 0, x.base+grown)
	x.used(t, "scattered", mapped+16, mapped+1024+16, grown+16, grown+4096+16, grown+8192+16)
}

// A part of an arena has a block.
func TestPartWithoutBlocks(t *testing.T) {
	x := make32(Glibc, 1<<14)
	const start = 1 << 13
	for i := range uint64(4) { // where the first chunks would be
		x.put(start+8+32*i, 0, 32|1)
	}
	m, p := x.image(t)
	g := &glibc{finder: &finder{m: m, p: p, ptr: 4, budget: 1 << 16, blocks: 1 << 16}, align: 16}
	if n := g.part(&Heap{}, x.base+start, x.base+start, x.base+start+4096, 4096); n != 0 {
		t.Errorf("%d bytes", n)
	}
}

// A variable before an arena without fast bins is none.
func TestNoFastBins(t *testing.T) {
	x, arena := glibcMade()
	x.put(arena-8, x.base+1<<13+32*3)
	heaps, err := x.find(t)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := heaps[0].Count(Used); n != 16 {
		t.Errorf("%d used blocks, want 16: %+v", n, heaps[0].Blocks)
	}
}

// The block of a mapping of musl may begin so far behind its slot that the distance does not fit into 16 bits: only its rest is there.
func TestFarInSlot(t *testing.T) {
	x := make64(MuslNG, 0x7f0000000000, 5<<20)
	const context, area, group, pages, units = 64, 1 << 13, 1 << 14, 1024, 0x30010
	const secret, block = 0x1122334455667788, group + unit + units*unit
	x.put(context, secret, 1)
	x.put(context+16+5*8, x.base+area)
	x.put(area, secret, 0, 1)
	x.put(area+24, 0, 0, x.base+group, 0, 63<<6|pages<<12)
	x.put(group, x.base+area+24)
	copy(x.data[group+unit-3:], []byte{7 << 5, units & 0xff, units >> 8 & 0xff})
	binary.LittleEndian.PutUint32(x.data[block-8:], units)
	x.data[block-4] = 1
	h := x.used(t, "far", block)
	if n, bytes := h.Count(Used); n != 1 || bytes != group+pages*4096-4-block {
		t.Errorf("%d blocks of %d bytes", n, bytes)
	}
}

// A size leads past a block only if pointers lead there: bytes that look like a header are none.
func TestShifted(t *testing.T) {
	for _, pointer := range []bool{false, true} {
		x, _ := glibcMade()
		const block = 1<<13 + 32*3 + 16
		x.put(block-24, 32|1)
		if pointer {
			x.put(128, x.base+block-16)
		}
		heaps, err := x.find(t)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(heaps[0].Damage); (n > 0) != pointer {
			t.Errorf("a pointer before the block: %v; %+v", pointer, heaps[0].Damage)
		}
	}
}

// sysHeapMade is a heap of Zephyr with big chunks: struct z_heap of 5 units, and 4 used blocks.
func sysHeapMade() *made {
	x := make32(SysHeap, 1<<13)
	const heap, last = 4096, 5 + 4*8
	x.put(64, x.base+heap)
	x.put(heap, 0, 5<<1|1, last)
	left := uint64(5)
	for at := uint64(5); at < last; at += 8 {
		x.put(heap+8*at, left, 8<<1|1)
		left = 8
	}
	x.put(heap+8*last, left, 1)
	return x
}

func TestNoSysHeap(t *testing.T) {
	const heap, end = 4096, 4096 + 8*37
	sysHeapMade().used(t, "valid", heap+48, heap+112, heap+176, heap+240)
	for _, c := range []struct {
		name       string
		off, value uint64
	}{
		{"a free first chunk", heap + 4, 5 << 1},
		{"a chunk before the first one", heap, 1},
		{"a free end chunk", end + 4, 0},
		{"an end chunk with a size", end + 4, 8<<1 | 1},
		{"an end chunk without a chunk before it", end, 0},
		{"an end elsewhere", heap + 8, 36},
	} {
		x := sysHeapMade()
		x.put(c.off, c.value)
		x.none(t, c.name)
	}
}

// The text at an address ends at the first other byte.
func TestTextOfDamage(t *testing.T) {
	for text, want := range map[string]string{"user name\x01more": "user name", "abc\x00": "", "tidy\x7f": "tidy", "\x80text": ""} {
		x := make32(FreeRTOS, pageSize)
		copy(x.data[64:], text)
		m, _ := x.image(t)
		if got := (&finder{m: m}).text(x.base + 64); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// With MEM_OVERFLOW_CHECK, lwIP's blocks begin behind bytes of 0xcd: if all used ones do, the heap is not proven.
func TestCheckedLwIP(t *testing.T) {
	for _, first := range []uint64{0, 0xcdcdcdcd} {
		x := make32(LwIP, 1<<13)
		const heap, end = 4096, 200
		x.names = map[string]uint64{"ram_heap": heap, "ram": 64, "ram_end": 68, "lfree": 72}
		x.array = end + 2*8 + 3 // two headers, and the alignment less one
		x.put(64, x.base+heap, x.base+heap+end, x.base+heap+40)
		x.put(heap, 40, 1, first) // next and previous, used: offsets have 16 bits
		x.put(heap+40, end, 0)
		x.put(heap+end, end<<16|end, 1)
		heaps, err := x.find(t)
		if err != nil {
			t.Fatal(err)
		}
		if n, bytes := heaps[0].Count(Used); n != 1 || bytes != 32 || heaps[0].Proven() != (first == 0) {
			t.Errorf("%#x: %d blocks of %d bytes; %+v", first, n, bytes, heaps[0].Proof)
		}
	}
}
