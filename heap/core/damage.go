package core

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/codec"
)

// Parts is the set of overwritten parts of a block.
type Parts uint8

const (
	DamagedBlob  Parts = 1 << iota // the compressed stack or its length
	DamagedLink                    // one link of an otherwise intact node
	DamagedNode                    // the whole node
	DamagedCalls                   // the stack decodes, but its addresses do not follow calls
	DamagedSize                    // the size decodes, but reaches into the next block
	DamagedEnd                     // not the metadata, but bytes after the block
	DamagedFreed                   // a link in a freed block, or in the allocator's own data
)

// Damage describes overwritten metadata of a block, or overwritten bytes after its end.
type Damage struct {
	Addr  uint64 // address of the block, as returned to the program
	Parts Parts
	What  []string // one per finding: the value found and the value expected
	// Suspect is the index of the block that ends before the damage, -1 if there is none.
	// The program probably wrote past the end of this block. If Suspect is the damaged block
	// itself, the program probably wrote before its start (its node is damaged, its blob
	// is intact) or, with DamagedEnd, past its end.
	Suspect int
	// Gap is the number of bytes between the end of the suspect and the node of the
	// damaged block.
	Gap uint64

	node, owner uint64
}

// At returns the address of the overwritten bytes, or of the node that has them.
func (d *Damage) At() uint64 { return d.node }

func (d *Damage) say(part Parts, format string, args ...any) {
	d.Parts |= part
	if text := fmt.Sprintf(format, args...); len(d.What) < 8 && !slices.Contains(d.What, text) {
		d.What = append(d.What, text)
	}
}

// damage returns the damage of a node of the current list, and creates it if necessary.
func (f *finder) damage(node uint64) *Damage {
	d := f.damages[node]
	if d == nil {
		d = &Damage{Addr: node + 3*f.ptr, node: node, owner: f.o.Addr, Suspect: -1}
		f.damages[node] = d
	}
	return d
}

// explain records the damage that broken links reveal: either the pointer was overwritten, or
// its target.
func (f *finder) explain() {
	byPrev, byNext := map[uint64]uint64{}, map[uint64]uint64{} // prev or next link → the node that has it
	for _, n := range f.nodes {
		byPrev[n.prev], byNext[n.next] = n.addr, n.addr
	}
	claimed := map[uint64]int{}
	for _, l := range f.broken {
		claimed[l.to]++
	}
	slices.SortFunc(f.broken, func(a, b link) int { return cmp.Compare(a.from, b.from) })
	for _, l := range f.broken {
		neighbours := byPrev // nodes by their prev
		if l.back {
			neighbours = byNext
		}
		claimant, contradicted := neighbours[l.from]
		target := f.nodes[l.to]
		switch {
		case l.from == 0:
			f.ownerLink(l)
		case contradicted && claimant != l.to:
			f.damage(l.from).say(DamagedLink, "%s is %s, the block at %#x expects itself there", l.field(), f.value(l.to), claimant+3*f.ptr)
		case l.to == 0:
			f.damage(l.from).say(DamagedLink, "%s is 0, but the list goes on", l.field())
		case target != nil && f.pointedTo(l, target):
			f.damage(l.from).say(DamagedLink, "%s is %#x, which belongs to another place in the list", l.field(), l.to)
		case target != nil:
			f.damage(l.to).say(DamagedLink, "%s is %s, expected %s", link{l.to, 0, !l.back}.field(), f.value(target.toward(!l.back)), f.value(l.from))
		case f.m.Find(l.to) == nil || l.to%f.ptr != 0:
			f.unreadable(l, claimed[l.to] > 1)
		default:
			f.lostNode(l)
		}
	}
	for _, n := range f.nodes {
		if n.owner != f.o.Addr {
			f.damage(n.addr).say(DamagedLink, "owner is %s, expected %#x", f.value(n.owner), f.o.Addr)
		}
	}
}

// value formats a pointer that may have been overwritten. A value that is not an
// address of the program may be part of a password, so it is not printed.
func (f *finder) value(v uint64) string {
	if v == 0 || f.m.Find(v) != nil || f.m.MapAt(v) != nil {
		return fmt.Sprintf("%#x", v)
	}
	return "no address"
}

// pointedTo reports whether the target of a broken link has another neighbour on the side of
// l.from that points back to it, or is the end of the list on that side.
func (f *finder) pointedTo(l link, target *node) bool {
	back := target.toward(!l.back)
	if back == 0 {
		return f.end(!l.back) == target.addr
	}
	n := f.nodes[back]
	return n != nil && n.toward(l.back) == target.addr
}

func (f *finder) ownerLink(l link) {
	switch {
	case l.to == 0:
	case f.nodes[l.to] == nil && f.m.Find(l.to) != nil && l.to%f.ptr == 0:
		f.lostNode(l)
	default:
		f.h.notes.add("the owner at %#x: %s is %s, expected a block", f.o.Addr, l.field(), f.value(l.to))
	}
}

// unreadable records a link to memory that is not in the image.
func (f *finder) unreadable(l link, twice bool) {
	if l.to%f.ptr == 0 && (twice || f.mayBeCut(l.to)) {
		f.h.notes.add("%s of the block at %#x leads to %#x, which is not in the image: it is cut",
			l.field(), l.from+3*f.ptr, l.to)
		return
	}
	f.damage(l.from).say(DamagedLink, "%s is %s", l.field(), f.value(l.to))
}

// nearRAM is the greatest distance, in bytes, from the RAM in the image to RAM that may
// be missing from it.
const nearRAM = 16 << 20

// mayBeCut reports whether an address may be memory of the program that is missing from
// the image.
func (f *finder) mayBeCut(addr uint64) bool {
	if len(f.m.Maps) > 0 {
		r := f.m.MapAt(addr)
		return r != nil && r.Write
	}
	if f.near == nil {
		for _, s := range f.m.Segments() {
			if !s.ELF {
				f.near = append(f.near, span{s.Addr - min(s.Addr, nearRAM), addSize(s.End()-1, nearRAM)})
			}
		}
		f.near = normal(f.near)
	}
	i := sort.Search(len(f.near), func(i int) bool { return f.near[i].end > addr })
	return i < len(f.near) && f.near[i].start <= addr
}

// lostNode records a link to memory that is not a node.
func (f *finder) lostNode(l link) {
	n, _ := f.readNode(l.to)
	d := f.damage(l.to)
	if n.owner != f.o.Addr {
		d.say(DamagedNode, "owner is %s, expected %#x", f.value(n.owner), f.o.Addr)
	}
	if got := n.toward(!l.back); got != l.from {
		d.say(DamagedNode, "%s is %s, expected %s", link{l.to, 0, !l.back}.field(), f.value(got), f.value(l.from))
	}
	if d.Parts == 0 {
		d.say(DamagedNode, "%s is %s, which does not point back", link{l.to, 0, l.back}.field(), f.value(n.toward(l.back)))
	}
}

// checkSizes finds sizes that reach into the metadata of the next block or, for the
// last block, beyond the memory of the program.
func (f *finder) checkSizes() {
	order := f.h.sorted()
	for i, at := range order {
		b := &f.h.Blocks[at]
		if !b.Sized() {
			continue
		}
		f.o = &f.h.Owners[b.Owner]
		if i+1 == len(order) {
			if last := b.Addr + max(b.Size, 1) - 1; last < b.Addr || f.m.Find(last) == nil && !f.mayBeCut(last) {
				f.damage(b.Addr-3*f.ptr).say(DamagedSize, "size reaches to %#x, where there is no memory", last)
			}
			continue
		}
		limit := f.start(&f.h.Blocks[order[i+1]])
		if end := b.Addr + b.Size; end < b.Addr || end > limit {
			if f.damages[b.Addr-3*f.ptr] != nil || end < b.Addr || f.damages[f.h.Blocks[order[i+1]].Addr-3*f.ptr] == nil {
				f.damage(b.Addr-3*f.ptr).say(DamagedSize, "size reaches into the next block, at %#x", limit)
			}
		}
	}
}

// start returns the start of the metadata of a block, as far as it is known.
func (f *finder) start(b *Block) uint64 {
	return b.Addr - 3*f.ptr - max(uint64(b.meta), 2)
}

// checkCalls finds stacks whose addresses follow no call, where the code is known. A
// single such address may be the frame that a signal interrupted.
func (f *finder) checkCalls() {
	if f.follows == nil {
		return
	}
	for i := range f.h.Blocks {
		b := &f.h.Blocks[i]
		if !b.Sized() {
			continue
		}
		if (codec.Decoder{Word: f.m.Word}).Decode(&f.scratch, nil, f.h.Blob(i)) != nil {
			continue
		}
		if known, wrong := f.countCalls(&f.scratch); wrong >= 2 && wrong > known/2 {
			f.o = &f.h.Owners[b.Owner]
			f.damage(b.Addr-3*f.ptr).say(DamagedCalls, "%d of %d addresses of the stack follow no call", wrong, known)
		}
	}
}

// spareByte is LWSBT_SPARE_BYTE of device/: the value of the spare bytes after a block.
const spareByte = 0xe5

// checkEnds finds blocks with overwritten spare bytes after their end.
func (f *finder) checkEnds() {
	for i := range f.h.Blocks {
		b := &f.h.Blocks[i]
		o := &f.h.Owners[b.Owner]
		if !b.Sized() || !o.Device {
			continue
		}
		if d := f.damages[b.Addr-3*f.ptr]; d != nil && d.Parts&(DamagedSize|DamagedCalls) != 0 {
			continue // its size may be wrong
		}
		end := b.Addr + b.Size
		bytes, ok := f.m.Bytes(end, (o.Spare-end)&(o.Align-1))
		if !ok {
			continue
		}
		b.Checked = uint8(min(len(bytes), 1<<8-1))
		wrong := 0
		for _, c := range bytes {
			if c != spareByte {
				wrong++
			}
		}
		if wrong > 0 {
			f.o = o
			f.damage(b.Addr-3*f.ptr).say(DamagedEnd, "%d of %d bytes from %#x on, behind its end", wrong, len(bytes), end)
		}
	}
}

// Limits of the search for a suspect: the distance in bytes from the end of a block to
// the damaged node, and the number of blocks to examine.
const (
	suspectReach = 64 << 10
	suspectSteps = 256
)

// suspect sets the Suspect of each damage: the block whose overflow may have caused it.
func (f *finder) suspect() {
	h := f.h
	for _, d := range f.damages {
		h.Damage = append(h.Damage, *d)
	}
	slices.SortFunc(h.Damage, func(a, b Damage) int { return cmp.Compare(a.node, b.node) })
	order := h.sorted()
	for i := range h.Blocks {
		h.Blocks[i].Damaged = f.damages[h.Blocks[i].Addr-3*f.ptr] != nil
	}
	for i := range h.Damage {
		d := &h.Damage[i]
		at := sort.Search(len(order), func(i int) bool { return h.Blocks[order[i]].Addr >= d.Addr })
		if at < len(order) && d.Parts&(DamagedBlob|DamagedCalls|DamagedSize) == 0 {
			if b := &h.Blocks[order[at]]; b.Addr == d.Addr && b.Sized() {
				d.Suspect = int(order[at])
				continue
			}
		}
		here := f.m.Find(d.node)
		for last := max(0, at-suspectSteps); at > last; {
			at--
			b := &h.Blocks[order[at]]
			over := f.damages[b.Addr-3*f.ptr]
			if !b.Sized() || over != nil && over.Parts != DamagedEnd {
				continue
			}
			if over == nil && b.Checked > 0 {
				break // a write past its end would have changed these bytes
			}
			if gap := d.node - b.Addr - min(b.Size, d.node-b.Addr); gap <= suspectReach && f.m.Find(b.Addr) == here {
				d.Suspect, d.Gap = int(order[at]), gap
			}
			break
		}
	}
}
