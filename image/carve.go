package image

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// maxOwners bounds the lists that carving follows.
const maxOwners = 64

// scan calls visit for every address of writable memory where a node may stand:
// aligned, with a length before it, and pointers that look like some.
func (f *finder) scan(visit func(n node)) {
	segs := f.m.Segments()
	if len(segs) == 0 {
		return
	}
	low, high := segs[0].Addr, segs[len(segs)-1].Addr+uint64(len(segs[len(segs)-1].Data))-1
	size, order := int(f.ptr), f.m.Order
	for i := range segs {
		s := &segs[i]
		if s.ELF || !s.Write {
			continue
		}
		for off, b := range s.extents() {
			// The first aligned address with two bytes before it.
			at := int(-(s.Addr + uint64(off)) & (f.ptr - 1))
			for at < 2 {
				at += size
			}
			for ; at+3*size <= len(b); at += size {
				if b[at-1]|b[at-2] == 0 { // no length: most of memory ends here
					continue
				}
				owner := uintOf(b[at+2*size:][:size], order)
				if owner < low || owner > high || owner&(f.ptr-1) != 0 {
					continue
				}
				n := node{s.Addr + uint64(off+at), uintOf(b[at:][:size], order), uintOf(b[at+size:][:size], order), owner, true}
				if (n.prev|n.next)&(f.ptr-1) != 0 || n.prev != 0 && (n.prev < low || n.prev > high) ||
					n.next != 0 && (n.next < low || n.next > high) {
					continue
				}
				if int(binary.BigEndian.Uint16(b[at-2:])) < codec.MinBlob {
					continue
				}
				visit(n)
			}
		}
	}
}

// claim is the nodes that name one owner, each with a blob in front of it that decodes.
type claim struct {
	linked int // those whose neighbours on one side at least point back and name the same owner
	alone  int // others, which no neighbour contradicts
	// lost is where neighbours of those were overwritten, each with the sides that lead
	// there. Two nodes that lead to one place from both sides are linked, too.
	lost map[uint64]uint8
}

// maxLost bounds the places of all claims.
const maxLost = 1 << 16

// carveOwners finds owners by their blocks. The owner of most blocks comes first.
func (f *finder) carveOwners() []Owner {
	claims := map[uint64]*claim{}
	lost := 0
	f.scan(func(n node) {
		c := claims[n.owner]
		if c == nil && len(claims) == 1<<16 || !f.decodes(n.addr) || !f.plausible(&f.scratch) {
			return
		}
		if c == nil {
			c = &claim{}
			claims[n.owner] = c
		}
		switch prev, next := f.beside(&n, true), f.beside(&n, false); {
		case prev == contradicts || next == contradicts:
		case prev == confirms || next == confirms:
			c.linked++
		default:
			c.alone++
			for side, at := range []uint64{n.prev, n.next} {
				if lost == maxLost || at == 0 {
					break
				}
				if c.lost == nil {
					c.lost = map[uint64]uint8{}
				}
				if c.lost[at] == 0 {
					lost++
				}
				if c.lost[at] |= 1 << side; c.lost[at] == 3 {
					c.linked++
				}
			}
		}
	})
	addrs := slices.Sorted(maps.Keys(claims))
	slices.SortStableFunc(addrs, func(a, b uint64) int { return cmp.Compare(claims[b].linked, claims[a].linked) })
	var list []Owner
	for _, addr := range addrs {
		o, ok := f.readOwner(addr)
		if !ok || !f.claimed(o, claims[addr]) {
			continue
		}
		if len(list) == maxOwners {
			f.h.notes.add("more than %d lists: the others are left out", maxOwners)
			break
		}
		o.Carved = true
		list = append(list, o)
	}
	return list
}

// claimed reports whether the blocks that name an owner are enough to make it one.
func (f *finder) claimed(o Owner, c *claim) bool {
	// Other lists of the same library have nodes, too, but hardly ever what
	// decodes before them.
	total := f.length(o)
	if c.linked > 0 && c.linked*5 >= total*4 && (total > 0 || c.linked >= 3) || c.linked >= 3 && c.linked*10 >= total {
		return true
	}
	n := c.linked + c.alone
	if n < 3 || n*10 < total {
		return false
	}
	return o.Device || int64(o.Count) >= int64(n) && f.ownsBlocks(o)
}

// opinion is what the neighbour of a node on one side says of it.
type opinion uint8

const (
	silent      opinion = iota // it was overwritten
	confirms                   // it points back and names the same owner
	contradicts                // it points to another node, which points back to it
)

// beside returns the opinion of the neighbour of n on one side; at an end of the list, that of
// the owner.
func (f *finder) beside(n *node, back bool) opinion {
	at := n.toward(back)
	if at == 0 {
		o, ok := f.readOwner(n.owner)
		end := o.Tail
		if back {
			end = o.Head
		}
		switch {
		case !ok:
		case end == n.addr:
			return confirms
		case f.names(end, n.owner) && f.towards(end, back) == 0:
			return contradicts
		}
		return silent
	}
	if !f.names(at, n.owner) {
		return silent
	}
	other := f.towards(at, !back)
	if other == n.addr {
		return confirms
	}
	if f.names(other, n.owner) && f.towards(other, back) == at {
		return contradicts
	}
	return silent
}

// names reports whether at an address there is a node that names an owner.
func (f *finder) names(addr, owner uint64) bool {
	n, ok := f.readNode(addr)
	return ok && n.owner == owner
}

// towards returns a link of the node at an address.
func (f *finder) towards(addr uint64, back bool) uint64 {
	n, _ := f.readNode(addr)
	return n.toward(back)
}

// length counts the nodes of a list from its head on, as far as links are sound.
func (f *finder) length(o Owner) int {
	total, prev := 0, uint64(0)
	for at := o.Head; at != 0 && total < MaxBlocks; total++ {
		n, ok := f.readNode(at)
		if !ok || n.prev != prev || n.owner != o.Addr {
			break
		}
		prev, at = at, n.next
	}
	return total
}

// plausible reports whether the addresses of a stack may be return addresses: not
// most of those whose code is known follow no call.
func (f *finder) plausible(s *codec.Stack) bool {
	known, wrong := f.countCalls(s)
	return wrong == 0 || wrong <= known/2
}

// countCalls counts the addresses of a stack whose code is known, and those of them
// that follow no call. Addresses of which bits were lost are not asked for.
func (f *finder) countCalls(s *codec.Stack) (known, wrong int) {
	if f.follows == nil {
		return 0, 0
	}
	for i, pc := range s.PCs {
		if s.Marks.Lossy>>i&1 != 0 {
			continue
		}
		if k, ok := f.follows(pc); k {
			known++
			if !ok {
				wrong++
			}
		}
	}
	return known, wrong
}

// carveRest finds blocks of the list that no intact chain of links leads to: their
// owner is the list's, their blob decodes, and a neighbour agrees, be it a block,
// or one that was overwritten and to which another link leads.
func (f *finder) carveRest() {
	found := map[uint64]*node{}
	f.scan(func(n node) {
		if n.owner == f.o.Addr && f.nodes[n.addr] == nil && len(found) < MaxBlocks && f.decodes(n.addr) {
			found[n.addr] = &n
		}
	})
	if len(found) == 0 {
		return
	}
	addrs := slices.Sorted(maps.Keys(found))
	f.pointing = make(map[link]bool, 2*len(f.nodes))
	for _, n := range f.nodes {
		f.points(n)
	}
	defer func() { f.pointing = nil }()
	beside := make(map[uint64][]uint64, 2*len(found)) // by an address, those that link to it
	for _, addr := range addrs {
		for _, at := range []uint64{found[addr].prev, found[addr].next} {
			if at != 0 {
				beside[at] = append(beside[at], addr)
			}
		}
	}
	loose := map[link]bool{} // where a chain ends
	seen := 0                // of broken
	for todo := addrs; len(todo) > 0; {
		for ; seen < len(f.broken); seen++ {
			loose[link{f.broken[seen].from, 0, f.broken[seen].back}] = true
		}
		for _, addr := range todo {
			n := found[addr]
			if f.nodes[addr] != nil || !(f.agrees(n, found, loose, true) || f.agrees(n, found, loose, false)) {
				continue
			}
			f.believe(*n)
			f.walk()
			if f.nodes[addr] == nil {
				return // full
			}
		}
		// Only what stands beside a link that broke meanwhile may agree now.
		todo = nil
		for _, l := range f.broken[seen:] {
			todo = append(append(todo, beside[l.from]...), beside[l.to]...)
		}
		slices.Sort(todo)
		if todo = slices.Compact(todo); len(todo) > 0 {
			continue
		}
		for _, addr := range addrs { // those between blocks that were overwritten
			if n := found[addr]; f.nodes[addr] == nil && f.uncontradicted(n) {
				f.believe(*n)
				f.walk()
				if f.nodes[addr] == nil {
					return // full
				}
			}
		}
		for _, l := range f.broken[seen:] {
			todo = append(append(todo, beside[l.from]...), beside[l.to]...)
		}
		slices.Sort(todo)
		todo = slices.Compact(todo)
	}
	left := 0
	for _, addr := range addrs {
		if f.nodes[addr] == nil {
			left++
		}
	}
	if left > 0 {
		f.h.notes.add("%d places look like blocks of the list at %#x, but no other block points to them: not believed", left, f.o.Addr)
	}
}

// uncontradicted reports whether a carved node whose neighbours were overwritten may be believed
// alone: its stack is plausible, and no other block is where it says that it is in the list.
// Memory may be in an image twice, by mirrors.
func (f *finder) uncontradicted(n *node) bool {
	if f.beside(n, true) == contradicts || f.beside(n, false) == contradicts ||
		f.pointing[link{0, n.prev, true}] && n.prev != 0 || f.pointing[link{0, n.next, false}] && n.next != 0 {
		return false
	}
	return f.decodes(n.addr) && f.plausible(&f.scratch)
}

// agrees reports whether the neighbour of a carved node on one side agrees that it
// is one.
func (f *finder) agrees(n *node, found map[uint64]*node, loose map[link]bool, back bool) bool {
	at := n.toward(back)
	if at == 0 {
		return f.end(back) == n.addr
	}
	if o := f.nodes[at]; o != nil { // a block whose own link is lost
		return o.toward(!back) == n.addr || loose[link{at, 0, !back}] && !f.pointing[link{0, at, back}]
	}
	if o := found[at]; o != nil && o.toward(!back) == n.addr {
		return true
	}
	// It was overwritten, a link leads there from its other side, and none from this
	// one: memory may be in an image twice, by mirrors.
	return f.claims[at] && !f.pointing[link{0, at, back}]
}
