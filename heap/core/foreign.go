package core

import (
	"encoding/binary"
	"iter"

	"github.com/lwsbt/lwsbt/codec"
)

// Arena is memory of an allocator that has no metadata of libwebsockets or device/. Its blocks
// were found in the structures of the allocator itself.
type Arena struct {
	Name string // of the allocator and of the arena
	Addr uint64
	// Ranges is the memory of the allocator, with its variables. Apart from the blocks, the
	// program stores nothing there: no pointer in it counts.
	Ranges []Map
	// Slack is the most bytes at the end of a block that the program did not request, because the allocator rounds up;
	// 0 if Size is the requested size. What is there may be old.
	Slack uint8
	// Least is the usable size of the smallest blocks, which smaller requests get, too; 0 if it is not known. An address in them
	// that is not aligned may be a number with a rest of an old pointer.
	Least uint64
	// Doubtful is memory of Ranges in no block that may be the program's, since the allocator's structures contradict each
	// other. What it points to is uncertain.
	Doubtful []Map
	Free     []Map // free memory that a request can get, by address, without headers
	Blocks   iter.Seq[ArenaBlock]
	Count    int // of Blocks, 0 if not known
	Damage   []ArenaDamage
}

// ArenaBlock is a block of an [Arena].
type ArenaBlock struct {
	Addr   uint64 // as returned to the program
	Size   uint64 // usable size in bytes, or the requested size if the allocator stores it
	Header uint64 // number of bytes of the allocator's header before Addr
	// Link is an address in the block that links of free memory hold, because the next header overlaps the end of
	// the block; 0 if there is none. What points there may be an old link: it makes the block uncertain, not reachable.
	Link uint64
	// Damaged reports whether the header was overwritten. Size is then the distance to the next
	// intact block.
	Damaged bool
	// Doubtful reports whether the block may be free, or its size wrong. It is uncertain, not leaked, and so is what it
	// points to.
	Doubtful bool
	Stack    []uint64 // return addresses, the innermost first; nil if the allocator stores none
}

// ArenaDamage describes an overwritten header, link or canary.
type ArenaDamage struct {
	Addr    uint64 // of the block
	At      uint64 // address of the overwritten bytes
	Part    Parts  // DamagedNode, DamagedEnd, DamagedFreed
	What    string
	Suspect int // index of the arena's block whose bytes run over its end, -1 if none does
}

// NewHeap returns a heap of the blocks of arenas. Each block has a blob, without call stack if
// its stack is not known. NewHeap omits blocks beyond [MaxBlocks], and notes it.
func (m *Image) NewHeap(arenas []Arena) *Heap {
	h := &Heap{Foreign: true, blobs: make([][]byte, 1)}
	machine := codec.MachineExact64
	if m.Word == 32 {
		machine = codec.MachineExact32
	}
	n := 0
	for i := range arenas {
		n += arenas[i].Count
	}
	h.Blocks = make([]Block, 0, min(n, MaxBlocks))
	f := foreign{h: h, machine: machine, blobs: map[string]uint32{}}
	for i := range arenas {
		f.add(&arenas[i])
	}
	return h
}

// foreign builds a heap from arenas.
type foreign struct {
	h       *Heap
	machine codec.Machine
	blobs   map[string]uint32 // index of Heap.blobs by size and call stack
	key     []byte
}

// add adds an arena.
func (f *foreign) add(a *Arena) {
	h := f.h
	first, dropped := len(h.Blocks), false
	for b := range a.Blocks {
		if len(h.Blocks) == MaxBlocks {
			h.notes.add("more than %d blocks: the others are left out", MaxBlocks)
			dropped = true
			break
		}
		blob, err := f.blob(&b)
		if err != nil {
			h.notes.add("the block at %#x is left out: %v", b.Addr, err)
			dropped = true
			continue
		}
		tail := uint8(0)
		if b.Link != 0 {
			tail = uint8(b.Addr + b.Size - b.Link)
		}
		flag := flags(0)
		if b.Doubtful {
			flag |= doubtful
		}
		if a.Slack > 0 && b.Size <= a.Least {
			flag |= smallest
		}
		h.Blocks = append(h.Blocks, Block{Addr: b.Addr, Size: b.Size, blob: blob, Owner: int32(len(h.Owners)), Damaged: b.Damaged, meta: uint16(b.Header), flags: flag, tail: tail, slack: a.Slack})
	}
	n := len(h.Blocks) - first
	h.Owners = append(h.Owners, Owner{Addr: a.Addr, Name: a.Name, Count: uint32(n), Blocks: n})
	for _, d := range a.Damage {
		x := Damage{Addr: d.Addr, node: d.At, Suspect: -1}
		x.say(d.Part, "%s", d.What)
		if d.Suspect >= 0 && d.Suspect < n && !dropped {
			b := &h.Blocks[first+d.Suspect]
			x.Suspect = first + d.Suspect
			x.Gap = d.At - min(d.At, addSize(b.Addr, b.Size))
		}
		h.Damage = append(h.Damage, x)
	}
	for _, r := range a.Ranges {
		h.inside = append(h.inside, span{r.Start, r.End})
	}
	h.free = append(h.free, a.Free)
	for _, r := range a.Doubtful {
		h.doubtful = append(h.doubtful, span{r.Start, r.End})
	}
}

// blob returns the index of the blob of a block. Blocks with the same size and call stack share one.
func (f *foreign) blob(b *ArenaBlock) (uint32, error) {
	s := codec.Stack{PCs: b.Stack[:min(len(b.Stack), codec.MaxDepth)], Size: b.Size}
	f.key = binary.LittleEndian.AppendUint64(f.key[:0], s.Size)
	for _, pc := range s.PCs {
		f.key = binary.LittleEndian.AppendUint64(f.key, pc)
	}
	if blob, ok := f.blobs[string(f.key)]; ok {
		return blob, nil
	}
	blob, err := codec.Encoder{Machine: f.machine}.AppendBlob(nil, &s, nil)
	if err != nil { // an address that is none of this machine
		s.PCs = nil
		blob, err = codec.Encoder{Machine: f.machine}.AppendBlob(nil, &s, nil)
	}
	if err != nil {
		return 0, err
	}
	n := uint32(len(f.h.blobs))
	f.h.blobs, f.blobs[string(f.key)] = append(f.h.blobs, blob), n
	f.h.Stacks = f.h.Stacks || len(s.PCs) > 0
	return n, nil
}

// Chunk returns the number of bytes of a block with the allocator's header, 0 if it is not one of an allocator.
func (h *Heap) Chunk(block int) uint64 {
	b := &h.Blocks[block]
	if !h.Foreign || b.meta == 0 {
		return 0
	}
	return b.Size + uint64(b.meta)
}

// headerSize returns the number of bytes of metadata directly before a block.
func (h *Heap) headerSize(b *Block, ptr uint64) uint64 {
	if h.Foreign {
		return uint64(b.meta)
	}
	return 3*ptr + max(uint64(b.meta), 2)
}
