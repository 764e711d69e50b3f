package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// node is the list node of a block, as read from memory.
type node struct {
	addr       uint64
	prev, next uint64
	owner      uint64
	carved     bool
}

// finder finds the blocks of one image. It accepts a node if two of these three
// conditions hold: the node names the owner of the list, the node points back to the
// node that led to it, and its other neighbour points back to it.
type finder struct {
	m       *Image
	h       *Heap
	ptr     uint64 // size of a pointer in bytes
	follows func(pc uint64) (known, follows bool)

	// Of the current list:
	o      *Owner
	nodes  map[uint64]*node // accepted nodes
	broken []link           // links that lead to no node, or to a node that does not point back
	queue  []link
	claims map[uint64]bool // targets of broken links
	full   bool            // MaxBlocks was reached
	// pointing holds the links of all nodes, with from set to 0. It is nil except during
	// carveRest.
	pointing map[link]bool

	damages map[uint64]*Damage // damage in all lists, by node
	near    []span             // RAM, and addresses near it
	scratch codec.Stack
}

// link is a pointer from one node, or the owner (0), to another.
type link struct {
	from, to uint64
	back     bool // by prev, or by the owner's tail
}

func (l link) field() string {
	switch {
	case l.from == 0 && l.back:
		return "tail"
	case l.from == 0:
		return "head"
	case l.back:
		return "prev"
	}
	return "next"
}

func (f *finder) readOwner(addr uint64) (o Owner, ok bool) {
	b, ok := f.m.Bytes(addr, 2*f.ptr+4)
	if !ok || addr == 0 || addr%f.ptr != 0 {
		return o, false
	}
	c := cursor{b: b, word: f.m.Word, order: f.m.Order}
	o.Addr, o.Tail, o.Head, o.Count = addr, c.ptr(), c.ptr(), uint32(c.u32())
	f.readMark(&o)
	return o, true
}

// mark is LWSBT_MARK of device/, without its lowest byte.
const mark = 0x6c777300

// readMark recognises a struct lwsbt_heap of device/:
//
//	tail │ head │ count │ generation │ 4 bytes of settings │ mark │ …
//
// The lowest byte n of the mark gives the address at which the spare bytes after a block end:
// a multiple of the word if n is 1, else a multiple of n, minus a word.
func (f *finder) readMark(o *Owner) {
	v, ok := f.m.Uint(o.Addr+2*f.ptr+12, 4)
	align := v & 0xff
	if !ok || v&^0xff != mark || align&(align-1) != 0 {
		return
	}
	switch {
	case align == 1:
		o.Device, o.Align = true, f.ptr
	case align > f.ptr:
		o.Device, o.Align, o.Spare = true, align, align-f.ptr
	}
}

func (f *finder) readNode(addr uint64) (n node, ok bool) {
	if addr == 0 || addr%f.ptr != 0 {
		return n, false
	}
	b, ok := f.m.Bytes(addr, 3*f.ptr)
	if !ok {
		return n, false
	}
	c := cursor{b: b, word: f.m.Word, order: f.m.Order}
	return node{addr: addr, prev: c.ptr(), next: c.ptr(), owner: c.ptr()}, true
}

// ownsBlocks reports whether the head or tail of an owner is the node of a block.
func (f *finder) ownsBlocks(o Owner) bool {
	if n, ok := f.readNode(o.Head); ok && n.owner == o.Addr && n.prev == 0 && f.decodes(n.addr) {
		return true
	}
	n, ok := f.readNode(o.Tail)
	return ok && n.owner == o.Addr && n.next == 0 && f.decodes(n.addr)
}

// blob returns the blob that ends before a node, and the length of the stack in memory. The
// blob is a subslice of the image, unless it spans segments.
func (f *finder) blob(node uint64) (blob []byte, length uint64, err error) {
	end, ok := f.m.Bytes(node-2, 2)
	if !ok || node < 2 {
		return nil, 0, errors.New("the length is not in the image")
	}
	n := uint64(binary.BigEndian.Uint16(end))
	if n < 2 {
		_, err := codec.BlobAtEnd(end)
		return nil, 0, err
	}
	mem, ok := f.m.Bytes(node-n, n)
	if !ok || node < n {
		return nil, 0, fmt.Errorf("length %d, more than there is before it", n)
	}
	b, err := codec.BlobAtEnd(mem)
	if err == nil {
		err = codec.Decoder{Word: f.m.Word}.Decode(&f.scratch, nil, b)
	}
	if err != nil {
		return nil, 0, err
	}
	return b, n, nil
}

func (f *finder) decodes(node uint64) bool {
	_, _, err := f.blob(node)
	return err == nil
}

// list finds the blocks of an owner and adds them to the heap.
func (f *finder) list(owner int) {
	f.o = &f.h.Owners[owner]
	clear(f.nodes)
	clear(f.claims)
	f.broken, f.full = f.broken[:0], false
	f.queue = append(f.queue[:0], link{0, f.o.Head, false}, link{0, f.o.Tail, true})
	f.walk()
	if len(f.broken) > 0 || uint64(len(f.nodes)) != uint64(f.o.Count) || f.o.Carved {
		f.carveRest()
	}
	f.explain()
	f.collect(owner)
}

// walk follows links in both directions until it finds no new node.
func (f *finder) walk() {
	for len(f.queue) > 0 {
		l := f.queue[len(f.queue)-1]
		f.queue = f.queue[:len(f.queue)-1]
		f.step(l)
	}
}

// step follows one link. If the link leads to a node, step queues the node's links in both
// directions, so that each link is checked from both ends.
func (f *finder) step(l link) {
	if l.to == 0 {
		if l.from != 0 && f.end(l.back) != l.from { // the list ends where its owner does not
			f.broken = append(f.broken, l)
		}
		return
	}
	if n := f.nodes[l.to]; n != nil {
		if n.toward(!l.back) != l.from {
			f.broken = append(f.broken, l)
		}
		return
	}
	n, ok := f.readNode(l.to)
	if !ok {
		f.breakOff(l)
		return
	}
	votes := 0
	if n.owner == f.o.Addr {
		votes++
	}
	if n.toward(!l.back) == l.from {
		votes++
	} else {
		f.broken = append(f.broken, l) // one of the two ends is wrong
	}
	if far := n.toward(l.back); far == 0 {
		if f.end(l.back) == n.addr {
			votes++
		}
	} else if other, ok := f.readNode(far); ok && other.toward(!l.back) == n.addr {
		votes++
	}
	if votes < 2 {
		if n.toward(!l.back) == l.from {
			f.broken = append(f.broken, l)
		}
		f.claims[l.to] = true
		return
	}
	f.believe(n)
}

func (f *finder) breakOff(l link) {
	f.broken = append(f.broken, l)
	f.claims[l.to] = true
}

func (f *finder) believe(n node) {
	if len(f.h.Blocks)+len(f.nodes) >= MaxBlocks {
		if !f.full {
			f.full = true
			f.h.notes.add("more than %d blocks: the others are left out", MaxBlocks)
		}
		return
	}
	f.nodes[n.addr] = &n
	if f.pointing != nil {
		f.points(&n)
	}
	f.queue = append(f.queue, link{n.addr, n.next, false}, link{n.addr, n.prev, true})
}

func (f *finder) points(n *node) {
	f.pointing[link{0, n.next, false}] = true
	f.pointing[link{0, n.prev, true}] = true
}

// toward returns the neighbour of a node: prev if back, else next.
func (n *node) toward(back bool) uint64 {
	if back {
		return n.prev
	}
	return n.next
}

// end returns the first (if back) or last node, by the owner.
func (f *finder) end(back bool) uint64 {
	if back {
		return f.o.Head
	}
	return f.o.Tail
}

// collect adds the blocks of the list to the heap: first the blocks linked from the head, in
// order, then the others, by address.
func (f *finder) collect(owner int) {
	order := make([]uint64, 0, len(f.nodes))
	done := make(map[uint64]bool, len(f.nodes))
	run := func(at uint64) {
		for n := f.nodes[at]; n != nil && !done[n.addr]; n = f.nodes[n.next] {
			done[n.addr] = true
			order = append(order, n.addr)
		}
	}
	run(f.o.Head)
	rest := make([]uint64, 0, len(f.nodes)-len(order))
	for addr := range f.nodes {
		if !done[addr] {
			rest = append(rest, addr)
		}
	}
	slices.Sort(rest)
	for _, addr := range rest { // starts of chains first
		if f.nodes[f.nodes[addr].prev] == nil {
			run(addr)
		}
	}
	for _, addr := range rest {
		run(addr)
	}
	order = append(order, f.lost()...)
	for _, addr := range order {
		b := Block{Addr: addr + 3*f.ptr, Owner: int32(owner)}
		if n := f.nodes[addr]; n != nil {
			b.Carved = n.carved
		} else {
			b.Carved = true
		}
		blob, length, err := f.blob(addr)
		if err == nil {
			b.Size, b.meta = f.scratch.Size, uint16(length)
			f.h.setBlob(&b, blob)
		} else if r := (*codec.Error)(nil); errors.As(err, &r) && r.Reason == "empty" {
			f.h.notes.add("the block at %#x has no metadata (length 0): its size is not known", b.Addr)
		} else {
			f.damage(addr).say(DamagedBlob, "blob: %v", err)
		}
		f.h.Blocks = append(f.h.Blocks, b)
	}
	f.h.Owners[owner].Blocks = len(order)
}

// lost returns the nodes that were overwritten but are known from links to them.
func (f *finder) lost() (list []uint64) {
	for _, d := range f.damages {
		if d.owner == f.o.Addr && d.Parts&DamagedNode != 0 && f.nodes[d.node] == nil {
			list = append(list, d.node)
		}
	}
	slices.Sort(list)
	return list
}
