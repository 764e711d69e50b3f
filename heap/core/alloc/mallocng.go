package alloc

import (
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// musl's mallocng (since 1.2.1). Its context is found by its secret, which each page of metadata
// begins with; symbols are not needed:
//
//	context: secret, 8 bytes │ page size, on some machines │ init │ mappings │ free meta │ available │ 3 numbers │ first area │ …
//	area:    secret │ next area │ number of slots │ meta …
//	meta:    previous │ next │ group │ mask of available slots │ mask of freed slots │ last slot:5, freeable:1, class:6, pages
//	group:   meta │ … 16 bytes │ slots
//	slot:    … -3: index:5, reserved:3 │ -2: offset from the group / 16 │ block │ spare bytes │ their number, if 5 or more
//
// So the requested size is exact.

const unit = 16

// classes are the sizes of slots in units.
var classes = [48]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72, 84, 102, 127,
	146, 170, 204, 255, 292, 340, 409, 511, 584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191}

// mallocng is one context.
type mallocng struct {
	*finder
	h      *Heap
	used   [len(classes)]uint64 // slots of each class
	groups map[uint64]bool      // addresses of the groups
	broken uint64               // slots and groups whose headers are not intact
}

func (f *finder) mallocng() ([]*Heap, error) {
	context, head := f.context()
	if context == 0 {
		return nil, ErrNone
	}
	n := &mallocng{finder: f, groups: map[uint64]bool{}, h: &Heap{Kind: MuslNG, Name: "musl mallocng", Addr: context}}
	first, _ := f.m.Pointer(head)
	secret, _ := f.m.Uint(context, 8)
	n.areas(first, secret)
	n.h.sort()
	for i := range n.h.Blocks { // some slots hold a group
		b := &n.h.Blocks[i]
		if n.groups[b.Addr] != (b.State == Internal) && b.Trust != Damaged {
			if n.groups[b.Addr] {
				b.State = Internal
			}
			n.odd(i, "the header and the list of groups disagree: the slot is a group, or a block")
		}
	}
	usage := head + (3+uint64(len(classes)))*f.ptr // behind the last area, unused areas, and the active groups
	var want, got uint64
	for i := range n.used {
		v, _ := f.m.Pointer(usage + uint64(i)*f.ptr)
		want, got = want+v, got+n.used[i]
	}
	n.h.prove("slots of all classes", want, got)
	n.h.prove("slots whose header is not intact", 0, n.broken)
	n.h.own(context, usage+uint64(len(classes))*f.ptr+64-context)
	return []*Heap{n.h}, nil
}

// context returns the addresses of the context and of its pointer to the first area.
func (f *finder) context() (context, head uint64) {
	for _, r := range f.data() {
		f.words(r.Start, r.End, func(addr, _ uint64) bool {
			secret, ok := f.m.Uint(addr, 8)
			if !ok || secret == 0 || addr%8 != 0 && f.ptr == 8 {
				return true
			}
			for _, size := range []uint64{0, f.ptr} { // of the page size
				at := addr + 8 + size + 8 + 5*f.ptr
				area, _ := f.m.Pointer(at)
				init, _ := f.m.Uint(addr+8+size, 4)
				slots, _ := f.m.Uint(area+8+f.ptr, 4)
				if check, ok := f.m.Uint(area, 8); ok && area != 0 && area%4096 == 0 && check == secret && init == 1 && slots > 0 && slots < 4096/f.ptr {
					context, head = addr, at
					return false
				}
			}
			return true
		})
		if context != 0 {
			break
		}
	}
	return context, head
}

// areas reads the pages of metadata.
func (n *mallocng) areas(area, secret uint64) {
	seen := map[uint64]bool{}
	size := up(3*n.ptr+8+n.ptr, 8) // of meta
	for area != 0 && !seen[area] {
		seen[area] = true
		check, ok := n.m.Uint(area, 8)
		count, _ := n.m.Uint(area+8+n.ptr, 4)
		if !ok || check != secret || count > 4096/size {
			n.broken++
			return
		}
		n.h.own(area, 4096)
		slots := up(area+8+n.ptr+4, n.ptr)
		for i := range count {
			n.meta(slots + i*size)
		}
		area, _ = n.m.Pointer(area + 8)
	}
}

// meta reads the slots of a group.
func (n *mallocng) meta(addr uint64) {
	group, ok := n.m.Pointer(addr + 2*n.ptr)
	if !ok || group == 0 {
		return // not used
	}
	avail, _ := n.m.Uint(addr+3*n.ptr, 4)
	freed, _ := n.m.Uint(addr+3*n.ptr+4, 4)
	bits, _ := n.m.Pointer(addr + 3*n.ptr + 8)
	last, freeable, class, pages := bits&31, bits>>5&1, bits>>6&63, bits>>12
	back, there := n.m.Pointer(group)
	if !there || back != addr || class >= uint64(len(classes)) && (last > 0 || pages == 0) {
		n.broken++
		return
	}
	stride := pages*4096 - unit
	if last > 0 || pages == 0 {
		stride = classes[class] * unit
	}
	if class < uint64(len(classes)) && freeable == 1 {
		n.used[class] += last + 1
	}
	n.h.own(group, unit+(last+1)*stride)
	n.groups[group] = true
	for i := range last + 1 {
		if n.blocks == 0 {
			return
		}
		n.blocks--
		start := group + unit + i*stride
		if (avail|freed)>>i&1 == 1 {
			n.h.Blocks = append(n.h.Blocks, Block{Addr: start, Size: stride - 4, Header: 4, State: Free})
			continue
		}
		b := n.slot(group+unit, start, i, stride)
		n.h.Blocks = append(n.h.Blocks, b)
		if b.State == Free {
			n.odd(len(n.h.Blocks)-1, "the header is that of a free slot, which is used by its group")
		}
	}
}

// odd adds damage of a header, and makes the block doubtful.
func (n *mallocng) odd(i int, what string) {
	n.h.doubt(Damage{Addr: n.h.Blocks[i].Addr - 4, Part: core.DamagedNode, What: what, Before: max(i-1, -1), Block: i}, i)
}

// slot reads a used slot.
func (n *mallocng) slot(storage, start, index, stride uint64) Block {
	at, end := start, start+stride-4
	if mark, _ := n.m.Uint(start-3, 1); mark == 7<<5 { // the block does not begin at the slot
		off, _ := n.m.Uint(start-2, 2)
		at += off * unit
		for at < end && !n.begins(storage, at, index) && !n.freed(at) { // large offsets do not fit
			at += (1 << 16) * unit
		}
	}
	b := Block{Addr: at, Size: end - at, Header: 4}
	if n.freed(start) || at < end && n.freed(at) {
		b.State = Free
		return b
	}
	if at >= end || !n.begins(storage, at, index) {
		return n.damaged(start, index, stride)
	}
	if big, _ := n.m.Uint(at-4, 1); big != 0 {
		b.Header = 8
	}
	mark, _ := n.m.Uint(at-3, 1)
	spare := mark >> 5
	if spare == 5 {
		spare, _ = n.m.Uint(end-4, 4)
	}
	if mark>>5 == 6 { // the slot holds a group
		b.State = Internal
		return b
	}
	ok, sure := n.nominal(at, end, spare, mark>>5, stride)
	if mark>>5 == 7 || spare > end-at || !ok {
		return n.damaged(start, index, stride)
	}
	if sure {
		b.Unused = uint32(spare)
	}
	return b
}

// nominal reports whether a slot can have a number of spare bytes: the byte before them is 0, and so is that before the
// number; a request of that size gets a slot of this class or the next one. sure is false if only an aligned
// request does: the number may be wrong.
func (n *mallocng) nominal(at, end, spare, mark, stride uint64) (ok, sure bool) {
	zero := func(addr uint64) bool { v, _ := n.m.Uint(addr, 1); return v == 0 }
	if spare > 0 && !zero(end-spare) || mark == 5 && (spare < 5 || !zero(end-5)) {
		return false, false
	}
	class := slices.Index(classes[:], stride/unit)
	if class < 0 || stride%unit != 0 { // a mapping of its own
		return true, true
	}
	need := func(size uint64) int {
		i := slices.IndexFunc(classes[:], func(c uint64) bool { return c*unit >= size+4 })
		return i & (1<<16 - 1) // larger than all: after the last
	}
	size := end - spare - at
	switch {
	case need(size) > class:
		return false, false
	case need(size)+1 >= class:
		return true, true
	}
	return need(size+at&-at-1)+1 >= class, false // aligned_alloc requests the alignment, too
}

// begins reports whether the header of a slot is before an address.
func (n *mallocng) begins(storage, at, index uint64) bool {
	mark, _ := n.m.Uint(at-3, 1)
	off, ok := n.m.Uint(at-2, 2)
	if big, _ := n.m.Uint(at-4, 1); big != 0 {
		if off, _ = n.m.Uint(at-8, 4); off <= 0xffff {
			ok = false
		}
	}
	return ok && mark&31 == index && off == (at-storage)/unit
}

// freed reports whether free has cleared the header before an address. It does so before it marks the slot.
func (n *mallocng) freed(at uint64) bool {
	mark, _ := n.m.Uint(at-3, 1)
	off, ok := n.m.Uint(at-2, 2)
	return ok && mark == 0xff && off == 0
}

// damaged returns the block of a slot whose header was overwritten.
func (n *mallocng) damaged(start, index, stride uint64) Block {
	n.broken++
	before := -1
	if index > 0 {
		before = len(n.h.Blocks) - 1
	}
	n.h.Damage = append(n.h.Damage, Damage{Addr: start - 4, Part: core.DamagedNode, What: "the header does not fit its slot", Before: before, Block: len(n.h.Blocks), Lost: stride})
	return Block{Addr: start, Size: stride - 4, Header: 4, Trust: Damaged}
}
