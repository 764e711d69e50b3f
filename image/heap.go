package image

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Heap is the live allocations of a program, as the list of their metadata has
// them. (BT-MEM-1)
//
//	true start                                   Block.Addr
//	│ unused │ bits and padding │ length │ node     │ Size bytes …
//	         └────── Block.Blob ─────────┘ prev next owner
type Heap struct {
	Owners []Owner
	// Blocks are in the order of their lists, the oldest first.
	Blocks []Block
	// Damage is what was overwritten, by address.
	Damage []Damage
	// User reports that blobs have user fields behind the size.
	User bool

	notes  notes
	byAddr []int32 // indexes of Blocks, by address
}

// Owner is the head of a list of blocks, lws_dll2_owner_t or struct lwsbt_heap.
type Owner struct {
	Addr  uint64
	Name  string // of the variable, "" if not known
	Head  uint64
	Tail  uint64
	Count uint32 // as it stands in memory
	// Carved reports that it was found by its blocks.
	Carved bool
	Blocks int // that were found
	// Device reports that it is a struct lwsbt_heap, by its mark: bytes of known value are behind
	// each block, up to the next address that is Spare modulo Align.
	Device bool
	Align  uint64
	Spare  uint64
}

// Block is a live allocation.
type Block struct {
	Addr uint64 // what the program got
	Size uint64 // what it asked for, in bytes
	// Blob is the compressed stack, part of the image; nil where it was
	// overwritten or lws had no room for it. Size is then unknown.
	Blob  []byte
	Owner int // index of Heap.Owners
	// Carved reports that no chain of intact links leads to the block from its
	// owner: it was found by its own bytes.
	Carved bool
	// Damaged reports that Heap.Damage names the block.
	Damaged bool
	// Checked is how many bytes behind the block were looked at, to find writes past
	// its end; 0 if none there have a known value.
	Checked uint64
}

// Search says where to look for heaps.
type Search struct {
	// Owners are candidates for the head of the list. Without any, or if there is
	// no list in any of them, memory is searched for blocks.
	Owners []Symbol
	// Typed are owners for certain: variables of that type.
	Typed []Symbol
	// Strict reports that the user named the owners: nothing else is searched.
	Strict bool
	// FollowsCall, if not nil, tells whether an address follows a call, where the
	// code in front of it is known.
	FollowsCall func(pc uint64) (known, follows bool)
}

// MaxBlocks is the most blocks that are read from an image.
const MaxBlocks = 1 << 23

// ErrNoHeap reports that an image has no list of blocks.
var ErrNoHeap = errors.New("no heap found")

// FindHeap finds the blocks of an image. The error is [ErrNoHeap], or names a property
// of the image that must be set first.
func (m *Image) FindHeap(s Search) (*Heap, error) {
	if m.Word == 0 || m.Order == nil {
		return nil, errors.New("raw memory does not tell its word size and byte order: give the ELF file of the program")
	}
	h := &Heap{}
	f := &finder{m: m, h: h, ptr: uint64(m.PointerSize()), follows: s.FollowsCall,
		nodes: map[uint64]*node{}, claims: map[uint64]bool{}, damages: map[uint64]*Damage{}}
	seen := map[uint64]bool{}
	for _, sym := range s.Typed {
		if o, ok := f.readOwner(sym.Addr); ok && !seen[o.Addr] && (o.Device || f.ownsBlocks(o)) {
			seen[o.Addr] = true
			o.Name = sym.Name
			h.Owners = append(h.Owners, o)
		}
	}
	for _, sym := range s.Owners {
		if o, ok := f.readOwner(sym.Addr); ok && !seen[o.Addr] && (f.ownsBlocks(o) || s.Strict) {
			seen[o.Addr] = true
			o.Name = sym.Name
			h.Owners = append(h.Owners, o)
		} else if s.Strict && !ok {
			return nil, fmt.Errorf("the owner at %#x is not in the image", sym.Addr)
		}
	}
	if len(h.Owners) == 0 {
		for _, o := range f.carveOwners() {
			o.Name = nameOf(append(slices.Clip(s.Typed), s.Owners...), o.Addr)
			h.Owners = append(h.Owners, o)
		}
	}
	if len(h.Owners) == 0 {
		o, ok := f.anyOwner(s)
		if !ok {
			return nil, ErrNoHeap
		}
		h.Owners = append(h.Owners, o)
	}
	for i := range h.Owners {
		f.list(i)
	}
	h.finish(f)
	return h, nil
}

// anyOwner returns an owner that no block was found of: one whose type or name is known, be its
// list empty or overwritten, or a candidate whose list is empty.
func (f *finder) anyOwner(s Search) (o Owner, ok bool) {
	for _, sym := range append(slices.Clip(s.Typed), s.Owners...) {
		typed := slices.Contains(s.Typed, sym)
		if o, ok := f.readOwner(sym.Addr); ok && (typed || o.Device || o.Head == 0 && o.Tail == 0 && o.Count == 0) {
			o.Name = sym.Name
			return o, true
		}
	}
	return o, false
}

func nameOf(list []Symbol, addr uint64) string {
	for _, s := range list {
		if s.Addr == addr {
			return s.Name
		}
	}
	return ""
}

// Notes returns which parts of the lists were not accepted.
func (h *Heap) Notes() []string { return h.notes.list() }

// Bytes returns the sum of the sizes of all blocks, up to 2^64-1.
func (h *Heap) Bytes() uint64 {
	sum := uint64(0)
	for i := range h.Blocks {
		sum = addSize(sum, h.Blocks[i].Size)
	}
	return sum
}

// addSize adds sizes, up to 2^64-1: those of an image may be anything.
func addSize(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// Expected returns how many blocks there should be: as many as the owners count,
// or as were found if those are more.
func (h *Heap) Expected() int {
	n := 0
	for _, o := range h.Owners {
		n += max(o.Blocks, int(o.Count))
	}
	return n
}

// sorted returns the indexes of blocks by address.
func (h *Heap) sorted() []int32 {
	if len(h.byAddr) != len(h.Blocks) {
		h.byAddr = make([]int32, len(h.Blocks))
		for i := range h.byAddr {
			h.byAddr[i] = int32(i)
		}
		slices.SortFunc(h.byAddr, func(a, b int32) int { return cmp.Compare(h.Blocks[a].Addr, h.Blocks[b].Addr) })
	}
	return h.byAddr
}

// finish looks at all blocks together, once they are known.
func (h *Heap) finish(f *finder) {
	h.User = f.userFields()
	f.checkSizes()
	f.checkCalls()
	f.checkEnds()
	f.suspect()
	for i := range h.Owners {
		if o := &h.Owners[i]; uint64(o.Count) != uint64(o.Blocks) {
			h.notes.add("the owner at %#x counts %d blocks, %d were found", o.Addr, o.Count, o.Blocks)
		}
	}
}

// userFields reports whether what stands behind the sizes of all blobs reads as
// user fields, of any.
func (f *finder) userFields() bool {
	var s codec.Stack
	var u codec.User
	some := false
	for i := range f.h.Blocks {
		if b := f.h.Blocks[i].Blob; b != nil {
			if codec.DecodeUser(&s, &u, b, 64) != nil {
				return false
			}
			some = some || u != (codec.User{})
		}
	}
	return some
}
