package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Heap holds the live allocations of a program, from the list of their metadata. (BT-MEM-1)
//
//	true start                                   Block.Addr
//	│ unused │ bits and padding │ length │ node     │ Size bytes …
//	         └────── Heap.Blob ──────────┘ prev next owner
type Heap struct {
	Owners []Owner
	// Blocks are in the order of their lists, the oldest first.
	Blocks []Block
	// Damage lists overwritten metadata, by address.
	Damage []Damage
	// User reports whether blobs have user fields after the size.
	User bool
	// Foreign reports whether the blocks were found in the structures of an allocator. Owners
	// are then the allocator's arenas.
	Foreign bool
	// Stacks reports whether the allocator stores call stacks, if Foreign.
	Stacks bool

	inside   []span   // memory of the allocator, if Foreign
	doubtful []span   // of inside: what may be the program's
	free     [][]Map  // of the owners, if Foreign
	blobs    [][]byte // of the blocks: subslices of the image; those of an allocator are shared. The first is nil
	notes    notes
	byAddr   []int32 // indexes of Blocks, by address
	places   *places
	indexed  int // number of blocks in places
}

// Owner is the head of a list of blocks, lws_dll2_owner_t or struct lwsbt_heap.
type Owner struct {
	Addr  uint64
	Name  string // of the variable, "" if not known
	Head  uint64
	Tail  uint64
	Count uint32 // the value in memory
	// Carved reports whether the owner was found by the blocks that point to it.
	Carved bool
	Blocks int // number of blocks found
	// Device reports whether the owner is a struct lwsbt_heap, identified by its mark. Each
	// block is then followed by spare bytes with a known value, up to the next address that
	// equals Spare modulo Align.
	Device bool
	Align  uint64
	Spare  uint64
}

// Block is a live allocation. Heaps have millions: it takes 32 bytes.
type Block struct {
	Addr  uint64 // as returned to the program
	Size  uint64 // requested size in bytes, if Sized
	Owner int32  // index of Heap.Owners
	blob  uint32 // index of Heap.blobs; 0 if there is none
	// meta is the length of the stack in memory, with its padding, 0 if it is not known. If Heap.Foreign, it is the size of the
	// allocator's header in bytes.
	meta uint16
	// Checked is the number of spare bytes after the block that were checked for writes
	// past its end; 0 if there are none.
	Checked uint8
	tail    uint8 // bytes from ArenaBlock.Link to the end of the block; 0 if there is none
	// Carved reports whether the block was found by its own bytes, because no chain of
	// intact links leads to it from its owner.
	Carved bool
	// Damaged reports whether Heap.Damage contains the block.
	Damaged bool
	flags   flags
	slack   uint8 // as in Arena
}

// flags are properties of a block of an arena.
type flags uint8

const (
	doubtful flags = 1 << iota // as in ArenaBlock
	smallest                   // of Arena.Least
)

// Sized reports whether the size of the block is known, and with it its compressed stack.
func (b *Block) Sized() bool { return b.blob != 0 }

// Blob returns the compressed stack of a block, given by its index. It is nil if it was overwritten, or lws had no space
// for it: the size of the block is unknown then.
func (h *Heap) Blob(block int) []byte { return h.blobs[h.Blocks[block].blob] }

// setBlob sets the compressed stack of a block.
func (h *Heap) setBlob(b *Block, blob []byte) {
	b.blob = uint32(len(h.blobs))
	h.blobs = append(h.blobs, blob)
}

// Search holds the options of [Image.FindHeap].
type Search struct {
	// Owners are candidates for the head of the list. If none of them has a list,
	// memory is searched for blocks.
	Owners []Symbol
	// Typed are variables whose type is that of an owner.
	Typed []Symbol
	// Strict restricts the search to Owners, which the user named.
	Strict bool
	// Named restricts the search to Owners and Typed: memory is searched for blocks only if there are any, but none has a
	// list.
	Named bool
	// FollowsCall, if not nil, reports whether the code before an address is known, and
	// whether the address follows a call.
	FollowsCall func(pc uint64) (known, follows bool)
}

// MaxBlocks limits the number of blocks that are read from an image.
const MaxBlocks = 1 << 23

// ErrNoHeap is returned if an image has no list of blocks.
var ErrNoHeap = errors.New("no heap found")

// FindHeap finds the blocks of an image. It returns [ErrNoHeap] if there are none, or an error
// that names the property of the image that must be set first.
func (m *Image) FindHeap(s Search) (*Heap, error) {
	if m.Word == 0 || m.Order == nil {
		return nil, errors.New("raw memory does not tell its word size and byte order: give the ELF file of the program")
	}
	h := &Heap{blobs: make([][]byte, 1)}
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
	if len(h.Owners) == 0 && (!s.Named || len(s.Owners)+len(s.Typed) > 0) {
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

// anyOwner returns an owner without blocks: a variable of the type of an owner, even if its
// list was overwritten, or a candidate whose list is empty.
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

// Notes returns messages about parts of the lists that were rejected.
func (h *Heap) Notes() []string { return h.notes.list() }

// Bytes returns the sum of the sizes of all blocks, saturated at 2^64-1.
func (h *Heap) Bytes() uint64 {
	sum := uint64(0)
	for i := range h.Blocks {
		sum = addSize(sum, h.Blocks[i].Size)
	}
	return sum
}

// addSize returns a + b, saturated at 2^64-1: sizes in an image can have any value.
func addSize(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// Expected returns the expected number of blocks: the sum over all owners of the larger
// of their count and the number of blocks found.
func (h *Heap) Expected() int {
	n := 0
	for _, o := range h.Owners {
		n += max(o.Blocks, int(o.Count))
	}
	return n
}

// sorted returns the indexes of blocks, by address.
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

// finish runs the checks that need all blocks.
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

// userFields reports whether at least one blob has user fields, and the bits after the size of
// every blob are valid user fields.
func (f *finder) userFields() bool {
	var s codec.Stack
	var u codec.User
	some := false
	for i := range f.h.Blocks {
		if b := f.h.Blob(i); b != nil {
			if (codec.Decoder{}).Decode(&s, &u, b) != nil {
				return false
			}
			some = some || u != (codec.User{})
		}
	}
	return some
}
