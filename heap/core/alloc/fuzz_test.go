package alloc

import (
	"encoding/binary"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const (
	fuzzBase = 0x20000000
	heapSize = 4 << 10
)

// hostile returns an image of RAM whose variables are at addresses that their names choose.
func hostile(t testing.TB, data []byte, word int) (*core.Image, Program) {
	t.Helper()
	m := &core.Image{Word: word, Order: binary.LittleEndian}
	t.Cleanup(m.Close)
	name := filepath.Join(t.TempDir(), "ram")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.AddRAM(fuzzBase, name); err != nil {
		t.Fatal(err)
	}
	return m, Program{Data: []core.Map{{Start: fuzzBase, End: fuzzBase + 4096, Write: true, File: "fw.elf"}},
		Variables: func(names ...string) (list []core.Symbol) {
			for _, n := range names {
				list = append(list, core.Symbol{Name: n, Addr: variableAt(n), Size: heapSize})
			}
			return list
		}}
}

// variableAt returns the address of a variable in images of hostile.
func variableAt(name string) uint64 {
	if name == "ucHeap" {
		return fuzzBase + 4096
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return fuzzBase + uint64(h.Sum32()%120)*32
}

// check checks what holds for each result: blocks are in order and do not overlap, and each is in the
// image or has a damaged header.
func checkHeaps(t *testing.T, m *core.Image, p Program, end uint64) {
	t.Helper()
	start := cmdtest.ProcessorTime()
	for k := range kinds {
		heaps, err := Find(m, p, k)
		if err != nil {
			continue
		}
		for _, h := range heaps {
			checkHeap(t, h, end)
		}
		m.FindLeaks(Core(m, heaps), core.Roots{Data: p.Data})
	}
	if d := cmdtest.ProcessorTime() - start; d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

func checkHeap(t *testing.T, h *Heap, end uint64) {
	t.Helper()
	last := uint64(0)
	for i := range h.Blocks {
		b := &h.Blocks[i]
		if b.start() < last && h.Name != "FreeRTOS heap_5" {
			t.Fatalf("%s: the block at %#x begins before %#x", h.Name, b.Addr, last)
		}
		if uint64(b.Unused) > b.Size || b.end() < b.Addr {
			t.Fatalf("%s: block at %#x: %d bytes, %d unused", h.Name, b.Addr, b.Size, b.Unused)
		}
		if last = b.Addr; b.start() >= end {
			t.Fatalf("%s: the block at %#x is not in the image", h.Name, b.Addr)
		}
	}
	for _, d := range h.Damage {
		if d.Block >= len(h.Blocks) || d.Before >= len(h.Blocks) {
			t.Fatalf("%s: damage of block %d, behind %d, of %d", h.Name, d.Block, d.Before, len(h.Blocks))
		}
	}
}

// ram is memory that a test fills.
type ram struct {
	data []byte
	word int
}

func (r *ram) put(addr uint64, values ...uint64) {
	for _, v := range values {
		if r.word == 64 {
			binary.LittleEndian.PutUint64(r.data[addr-fuzzBase:], v)
		} else {
			binary.LittleEndian.PutUint32(r.data[addr-fuzzBase:], uint32(v))
		}
		addr += uint64(r.word / 8)
	}
}

// hostileRAM returns images with heaps that lie.
func hostileRAM(word int) map[string][]byte {
	const size = 4096 + heapSize + 1024
	heap := uint64(fuzzBase + 4096)
	top := uint64(1) << (word - 1)
	step := uint64(word / 4) // smallest chunk, in bytes
	list := map[string][]byte{}
	add := func(name string, fill func(r *ram)) {
		r := &ram{make([]byte, size), word}
		fill(r)
		list[name] = r.data
	}
	start := func(r *ram) {
		r.put(variableAt("xStart"), heap, 0)
		r.put(variableAt("pxEnd"), heap+heapSize-step)
		r.put(variableAt("__malloc_sbrk_start"), heap)
		r.put(variableAt("__malloc_sbrk_base"), heap)
		r.put(variableAt("__malloc_free_list"), heap)
		r.put(variableAt("__malloc_av_")+2*uint64(word/8), heap+heapSize)
	}
	add("zeros", func(r *ram) { start(r) })
	add("a free list that is a loop", func(r *ram) { start(r); r.put(heap, heap, 64) })
	add("sizes near the end of the address space", func(r *ram) {
		start(r)
		for at := heap; at < heap+heapSize; at += step {
			r.put(at, top-1, ^uint64(0)-7)
		}
	})
	add("a top chunk larger than memory", func(r *ram) {
		start(r)
		r.put(heap+heapSize, 0, ^uint64(0)-7)
	})
	add("smallest chunks", func(r *ram) {
		start(r)
		for at := heap; at < heap+heapSize; at += step {
			r.put(at, 0, step|top)
		}
	})
	add("each second header is wrong", func(r *ram) {
		start(r)
		for at := heap; at < heap+heapSize; at += 2 * step {
			r.put(at, 0, step|top, 3, 5)
		}
	})
	add("sizes that lead nowhere", func(r *ram) {
		start(r)
		for i, at := uint64(0), heap; at < heap+heapSize; i, at = i+1, at+step/2 {
			r.put(at, 8+i%64*8)
		}
	})
	arena := func(r *ram, next, top, system uint64) {
		p := uint64(word / 8)
		const bins = fuzzBase + 1024
		for i := uint64(0); i < binPairs; i++ {
			r.put(bins+2*i*p, bins+2*i*p-2*p, bins+2*i*p-2*p)
		}
		r.put(bins-2*p, top)
		r.put(bins+2*binPairs*p+16, next, 0, 1, system, system)
	}
	main := uint64(fuzzBase + 1024 - word/8*14)
	if word == 32 {
		main = fuzzBase + 1024 - 60
	}
	add("an arena without memory", func(r *ram) { arena(r, main, ^uint64(0)-64, 4096) })
	add("an arena that is larger than memory", func(r *ram) {
		arena(r, main, heap+heapSize-64, top+heapSize)
		r.put(heap+heapSize-64, 0, 64|1)
	})
	add("a ring of arenas that does not end", func(r *ram) { arena(r, main+8, heap, 64) })
	add("an arena of smallest chunks", func(r *ram) {
		arena(r, main, heap+heapSize-64, heapSize)
		for at := heap; at < heap+heapSize; at += 2 * step {
			r.put(at, 0, 2*step|1, heap, heap)
		}
	})
	add("a heap of Zephyr", func(r *ram) {
		start(r) // variables point to it
		for i := heap; i < heap+heapSize; i += 4 {
			binary.LittleEndian.PutUint32(r.data[i-fuzzBase:], uint32(i%64))
		}
		binary.LittleEndian.PutUint32(r.data[heap-fuzzBase:], 0)
		binary.LittleEndian.PutUint32(r.data[heap+4-fuzzBase:], 9)
		binary.LittleEndian.PutUint32(r.data[heap+8-fuzzBase:], heapSize/8)
		binary.LittleEndian.PutUint32(r.data[heap+32-fuzzBase:], 4)
		binary.LittleEndian.PutUint32(r.data[heap+heapSize-fuzzBase:], 5)
		binary.LittleEndian.PutUint32(r.data[heap+heapSize+4-fuzzBase:], 1)
	})
	multiHeap := func(r *ram, at, pool uint64) (blocks uint64) {
		p := uint64(word / 8)
		control := at + 5*p
		r.put(at, 0, 64, 64, pool, control)
		r.put(control, 0, 0, control, control, 0, 9*p+16*p, 0, control+9*p, control+9*p+4*p)
		return control + 25*p
	}
	add("a heap of ESP-IDF with lists that are loops", func(r *ram) {
		p := uint64(word / 8)
		at := multiHeap(r, heap, heapSize)
		for i := at - 12*p; i < at; i += p {
			r.put(i, at)
		}
		for ; at < heap+heapSize-8*p; at += 4 * p {
			r.put(at, 3*p+3, at, at, at-p)
		}
	})
	add("byte pools of ThreadX that overlap", func(r *ram) {
		for at := heap; at < heap+heapSize-64; at += 32 {
			for i, v := range []uint64{bytePoolID, 0, 8, 1 << 31, fuzzBase, fuzzBase, fuzzBase, size &^ 7} {
				binary.LittleEndian.PutUint32(r.data[at+4*uint64(i)-fuzzBase:], uint32(v))
			}
			r.put(fuzzBase, fuzzBase+16, bytePoolFree, 0, 0, fuzzBase+28, bytePoolFree)
		}
	})
	add("a heap of NuttX whose list is a loop and whose regions overlap", func(r *ram) {
		p := uint64(word / 8)
		at := uint64(fuzzBase + 512)
		r.put(at, heapSize+heapSize/2-4*p, 0, 0, heap, heap+heapSize/2, heap+heapSize-2*p, heap+heapSize-2*p, 2, at+8*p)
		for i := uint64(0); i < 40; i++ {
			r.put(at+(8+i)*p, at+8*p, at+12*p)
		}
		for i := heap; i < heap+heapSize; i += 4 * p {
			r.put(i, 4*p, 4*p, i-4*p, i+4*p)
		}
		for _, i := range []uint64{heap, heap + heapSize/2, heap + heapSize - 2*p} {
			r.put(i, 0, 2*p|1)
		}
	})
	add("heaps of ESP-IDF that overlap", func(r *ram) {
		for at := heap; at < heap+heapSize-64*8; at += 40 {
			multiHeap(r, at, 1<<32)
		}
	})
	add("a context of musl", func(r *ram) {
		at := uint64(fuzzBase + 512)
		r.put(at, 0x1234567, 0x1234567)
		for i := at + 8; i < at+128; i += uint64(word / 8) {
			r.put(i, heap)
		}
		r.put(heap, 0x1234567, 0x1234567, heap, 99, heap)
		for i := heap + 64; i < heap+heapSize; i += uint64(word / 8) {
			r.put(i, heap+i%512*8)
		}
	})
	return list
}

// TestHostileImages finds no panic, no endless loop and no overlapping blocks in images that lie.
func TestHostileImages(t *testing.T) {
	for _, word := range []int{32, 64} {
		for name, data := range hostileRAM(word) {
			t.Run(name, func(t *testing.T) {
				m, p := hostile(t, data, word)
				checkHeaps(t, m, p, fuzzBase+uint64(len(data)))
			})
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, word := range []int{32, 64} {
		for _, data := range hostileRAM(word) {
			f.Add(slices.Clone(data), word == 64)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, wide bool) {
		if len(data) == 0 || len(data) > 1<<20 {
			return
		}
		word := 32
		if wide {
			word = 64
		}
		m, p := hostile(t, data, word)
		checkHeaps(t, m, p, fuzzBase+uint64(len(data)))
	})
}
