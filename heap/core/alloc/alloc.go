// Package alloc finds the blocks of common allocators in a memory image, by the structures of the
// allocators themselves. The program needs no instrumentation.
//
//	Image, symbols ─Find→ Heaps: blocks, damage, proof ─Core→ core.Heap: leaks, recordings
//
// Each heap has a proof: what the allocator's own variables say, beside what was found. A heap
// whose proof fails is not complete; leaks must not be computed from it.
//
// Images are not trusted. Headers are checked before they are followed, all loops are bounded by
// the size of the image, and searches for the next intact header have a budget.
package alloc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// Kind is an allocator.
type Kind uint8

const (
	FreeRTOS   Kind = iota // heap_2, heap_4 and heap_5
	Newlib                 // mallocr.c, Doug Lea's malloc
	NewlibNano             // nano-mallocr.c, until newlib 4.x
	Picolibc               // the same file in picolibc
	Glibc
	MuslNG    // musl's mallocng
	SysHeap   // Zephyr's sys_heap
	MultiHeap // of ESP-IDF, TLSF
	ThreadX   // byte pools
	NuttX     // mm_heap
	TLSF      // of Matthew Conte, without ESP-IDF
	LwIP      // mem.c
	JeMalloc  // jemalloc 5.3
	RTThread  // small memory and memheap
	kinds
)

var names = [kinds]string{"freertos", "newlib", "newlib-nano", "picolibc", "glibc", "musl", "zephyr", "esp-idf", "threadx", "nuttx", "tlsf", "lwip", "jemalloc", "rt-thread"}

// String returns the name of the allocator, as the command line takes it.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Names returns the names of all allocators.
func Names() []string { return names[:] }

// ParseKind returns the allocator with a name.
func ParseKind(name string) (Kind, bool) {
	i := slices.Index(names[:], name)
	return Kind(max(i, 0)), i >= 0
}

// State is the state of a block.
type State uint8

const (
	Used     State = iota
	Free           // in the allocator's list of free blocks
	Cached         // free, but in a list for fast reuse: its header is that of a used block
	Internal       // of the allocator
	states
)

// Trust is what is known of the header of a block.
type Trust uint8

const (
	Intact Trust = iota
	// Doubtful means that the allocator's structures contradict each other about the block: a used one may be free or
	// have another size, a free one may be in use.
	Doubtful
	Damaged // the header was overwritten; Size ends at the next intact header
)

// Block is a block of an allocator. Heaps have millions: it takes 24 bytes.
type Block struct {
	Addr uint64 // as returned to the program
	Size uint64 // usable bytes
	// Unused is the number of bytes at the end without pointers of the program: those that it did not request, if the
	// allocator stores the requested size, or that still hold what the allocator wrote when the block was free.
	Unused uint32
	Header uint16 // bytes of the header before Addr
	State  State
	Trust  Trust
}

// doubt makes a block doubtful, unless it is damaged.
func (b *Block) doubt() { b.Trust = max(b.Trust, Doubtful) }

// header returns the number of bytes of the header.
func (b *Block) header() uint64 { return uint64(b.Header) }

// start returns the address of the header.
func (b *Block) start() uint64 { return b.Addr - uint64(b.Header) }

// end returns the address behind the block.
func (b *Block) end() uint64 { return b.Addr + b.Size }

// Proof is a property of a heap that the allocator's variables and the blocks must agree in.
type Proof struct {
	Check     string
	Want, Got uint64
}

// Heap is an arena of an allocator.
type Heap struct {
	Kind   Kind
	Name   string // of the allocator and the arena
	Addr   uint64
	Ranges []core.Map // the allocator's memory, with its variables
	Blocks []Block    // by address
	Damage []Damage
	Proof  []Proof
	Stacks map[uint64][]uint64 // return addresses by the address of the block, if the allocator stores them

	dropped *dropped
	slack   uint8  // the most bytes by which a request was rounded up; 0 if the requested size is known
	least   uint64 // usable bytes of the smallest chunk, which smaller requests have, too
	overlap uint64 // bytes at the end of a used block that the header of the next chunk begins with
}

// Proven reports whether all checks of the proof agree.
func (h *Heap) Proven() bool {
	return !slices.ContainsFunc(h.Proof, func(p Proof) bool { return p.Want != p.Got })
}

// Count returns the number of blocks in a state, and the sum of their usable bytes.
func (h *Heap) Count(s State) (blocks int, bytes uint64) {
	if h.dropped != nil {
		return h.dropped.blocks[s], h.dropped.bytes[s]
	}
	for i := range h.Blocks {
		if h.Blocks[i].State == s {
			blocks++
			bytes += h.Blocks[i].Size
		}
	}
	return blocks, bytes
}

// dropped is what a heap tells when its blocks were dropped.
type dropped struct {
	blocks  [states]int
	bytes   [states]uint64
	largest uint64
	way     Way
	inWay   bool
}

// Drop drops the blocks, and keeps what Count, Largest and InTheWay return.
func (h *Heap) Drop() {
	x := &dropped{largest: h.Largest()}
	for s := range states {
		x.blocks[s], x.bytes[s] = h.Count(s)
	}
	x.way, x.inWay = h.InTheWay()
	h.Blocks, h.dropped = nil, x
}

// Largest returns the largest free block, 0 if there is none.
func (h *Heap) Largest() (size uint64) {
	if h.dropped != nil {
		return h.dropped.largest
	}
	for i := range h.Blocks {
		if h.Blocks[i].State == Free {
			size = max(size, h.Blocks[i].Size)
		}
	}
	return size
}

// sort orders the blocks by address.
func (h *Heap) sort() {
	if slices.IsSortedFunc(h.Blocks, byAddr) {
		return
	}
	order := make([]int, len(h.Blocks)) // indexes before, by those after
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return byAddr(h.Blocks[a], h.Blocks[b]) })
	blocks, after := make([]Block, len(order)), make([]int, len(order))
	for i, at := range order {
		blocks[i], after[at] = h.Blocks[at], i
	}
	h.Blocks = blocks
	for i := range h.Damage {
		d := &h.Damage[i]
		if d.Block >= 0 {
			d.Block = after[d.Block]
		}
		if d.Before >= 0 {
			d.Before = after[d.Before]
		}
	}
}

func (h *Heap) prove(check string, want, got uint64) {
	h.Proof = append(h.Proof, Proof{check, want, got})
}

// own adds a variable of the allocator to the ranges of the heap.
func (h *Heap) own(start, size uint64) {
	if end := start + size; end > start {
		h.Ranges = append(h.Ranges, core.Map{Start: start, End: end, Write: true})
	}
}

// Program is what is known about the program of an image.
type Program struct {
	// Variables returns the variables with one of the names, in the order of the names.
	Variables func(names ...string) []core.Symbol
	Data      []core.Map // data and bss of its files
}

// ErrNone is returned if an image has no heap of a known allocator.
var ErrNone = errors.New("no heap of a known allocator")

// MissingError reports that the image lacks memory that the heap is in, or a variable of the allocator.
type MissingError struct {
	Name       string // of the heap or variable
	Start, End uint64
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is at %#x to %#x, which is not in this image", e.Name, e.Start, e.End)
}

// MismatchError reports that a variable of an allocator cannot have its value: the symbols are those of another build.
type MismatchError struct{ What string }

func (e *MismatchError) Error() string {
	return e.What + ": the ELF file is not that of this image"
}

// finder is a search for heaps.
type finder struct {
	m      *core.Image
	p      Program
	ptr    uint64        // size of a pointer in bytes
	budget int           // probes left for searches
	blocks int           // blocks left
	absent *MissingError // the first variable of an allocator that the image lacks
}

// Find finds the heaps of an image. If kinds are given, it looks only for these. It returns
// [ErrNone] if there is none, and a [MissingError] if the image lacks the memory of a heap.
func Find(m *core.Image, p Program, only ...Kind) (heaps []*Heap, err error) {
	if m.Word == 0 || m.Order == nil {
		return nil, errors.New("raw memory does not tell its word size and byte order: give the ELF file of the program")
	}
	if p.Variables == nil {
		p.Variables = func(...string) []core.Symbol { return nil }
	}
	f := &finder{m: m, p: p, ptr: uint64(m.PointerSize()), budget: probes(m), blocks: core.MaxBlocks}
	search := [kinds]func() ([]*Heap, error){FreeRTOS: f.freeRTOS, Newlib: f.newlib, NewlibNano: f.nano, Picolibc: f.picolibc, Glibc: f.glibc, MuslNG: f.mallocng, SysHeap: f.zephyr, MultiHeap: f.multiHeaps, ThreadX: f.bytePools, NuttX: f.mmHeaps, TLSF: f.tlsfPools, LwIP: f.lwip, JeMalloc: f.jemalloc, RTThread: f.rtThread}
	err = ErrNone
	for k := range kinds {
		if len(only) > 0 && !slices.Contains(only, k) {
			continue
		}
		list, e := search[k]()
		if e != nil && errors.Is(err, ErrNone) {
			err = e
		}
		for _, h := range list {
			f.finish(h)
		}
		heaps = append(heaps, list...)
	}
	if len(only) == 0 {
		heaps = sure(heaps)
	}
	switch {
	case len(heaps) > 0:
		return heaps, nil
	case errors.Is(err, ErrNone) && f.absent != nil:
		return nil, f.absent
	}
	return nil, err
}

// sure removes heaps that are not proven, of allocators without a symbol, if there are proven ones of others: they may be
// other data.
func sure(heaps []*Heap) []*Heap {
	proven := [kinds]bool{}
	for _, h := range heaps {
		proven[h.Kind] = proven[h.Kind] || h.Proven() && len(h.Proof) > 0
	}
	return slices.DeleteFunc(heaps, func(h *Heap) bool {
		return h.Kind >= MuslNG && !proven[h.Kind] && slices.Contains(proven[:], true)
	})
}

// variable returns a variable. ok is false if there is none in the memory of the program.
func (f *finder) variable(name string) (v core.Symbol, ok bool) {
	for _, v := range f.p.Variables(name) {
		seg := f.m.Find(v.Addr)
		if seg != nil && (!seg.ELF || len(f.m.Maps) > 0) {
			return v, true
		}
		if f.absent == nil {
			f.absent = &MissingError{"the variable " + name, v.Addr, v.Addr + max(v.Size, f.ptr)}
		}
	}
	return core.Symbol{}, false
}

// pointer returns the value of a variable of the size of a pointer. It adds the variable to the
// ranges of a heap.
func (f *finder) pointer(h *Heap, name string) (uint64, bool) {
	s, ok := f.variable(name)
	if !ok {
		return 0, false
	}
	h.own(s.Addr, f.ptr)
	return f.m.Pointer(s.Addr)
}

func up(v, align uint64) uint64 { return (v + align - 1) &^ (align - 1) }

// Way is a used block between two holes.
type Way struct {
	Block Block
	Hole  uint64 // size in bytes of the hole that there would be without the block
}

// InTheWay returns the block without which the largest hole would be largest. ok is false if no
// block is between holes that are larger together than the largest hole.
func (h *Heap) InTheWay() (w Way, ok bool) {
	if h.dropped != nil {
		return h.dropped.way, h.dropped.inWay
	}
	largest := h.Largest()
	for i := 1; i+1 < len(h.Blocks); i++ {
		before, b, after := &h.Blocks[i-1], &h.Blocks[i], &h.Blocks[i+1]
		if b.State != Used || before.State != Free || after.State != Free {
			continue
		}
		size := after.Addr + after.Size - before.Addr
		near := b.Addr-before.end() <= b.header()+16 && after.Addr-b.end() <= after.header()+16
		if near && size > largest && size > w.Hole {
			w, ok = Way{*b, size}, true
		}
	}
	return w, ok
}
