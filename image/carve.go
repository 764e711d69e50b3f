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
	all := span{segs[0].Addr, segs[len(segs)-1].Addr + uint64(len(segs[len(segs)-1].Data)) - 1}
	for i := range segs {
		s := &segs[i]
		if s.ELF || !s.Write {
			continue
		}
		for off, b := range s.extents() {
			f.scanBytes(b, s.Addr+uint64(off), all, visit)
		}
	}
}

// scanBytes is scan of bytes at addr. all is from the first to the last address of the image.
func (f *finder) scanBytes(b []byte, addr uint64, all span, visit func(n node)) {
	size, order := int(f.ptr), f.m.Order
	link := func(v uint64) bool { return v&(f.ptr-1) == 0 && (v == 0 || v >= all.start && v <= all.end) }
	// The first aligned address with two bytes before it.
	at := int(-addr & (f.ptr - 1))
	for at < 2 {
		at += size
	}
	for ; at+3*size <= len(b); at += size {
		if b[at-1]|b[at-2] == 0 { // no length: most of memory ends here
			continue
		}
		owner := uintOf(b[at+2*size:][:size], order)
		if owner == 0 || !link(owner) {
			continue
		}
		n := node{addr + uint64(at), uintOf(b[at:][:size], order), uintOf(b[at+size:][:size], order), owner, true}
		if link(n.prev) && link(n.next) && int(binary.BigEndian.Uint16(b[at-2:])) >= codec.MinBlob {
			visit(n)
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
	claims := f.claimsOf()
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

// claimsOf returns the claims of all that looks like a block, by owner.
func (f *finder) claimsOf() map[uint64]*claim {
	claims := map[uint64]*claim{}
	left := maxLost
	f.scan(func(n node) {
		c := claims[n.owner]
		if c == nil && len(claims) == 1<<16 || !f.decodes(n.addr) || !f.plausible(&f.scratch) {
			return
		}
		if c == nil {
			c = &claim{lost: map[uint64]uint8{}}
			claims[n.owner] = c
		}
		switch prev, next := f.beside(&n, true), f.beside(&n, false); {
		case prev == contradicts || next == contradicts:
		case prev == confirms || next == confirms:
			c.linked++
		default:
			c.alone++
			left -= c.leads(n.prev, 1, left) + c.leads(n.next, 2, left)
		}
	})
	return claims
}

// leads notes that a node leads to a place from one side, and returns how many places that
// adds, no more than left.
func (c *claim) leads(at uint64, side uint8, left int) (added int) {
	had, seen := c.lost[at]
	if at == 0 || !seen && left <= 0 {
		return 0
	}
	if !seen {
		added = 1
	}
	if c.lost[at] = had | side; had|side == 3 && had != 3 {
		c.linked++
	}
	return added
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

// rest is what carving a list adds to: nodes that look like its blocks.
type rest struct {
	found  map[uint64]*node
	addrs  []uint64            // of found, sorted
	beside map[uint64][]uint64 // by an address, those of found that link to it
	loose  map[link]bool       // where a chain ends
	seen   int                 // of finder.broken
}

// carveRest finds blocks of the list that no intact chain of links leads to: their
// owner is the list's, their blob decodes, and a neighbour agrees, be it a block,
// or one that was overwritten and to which another link leads; or both neighbours were
// overwritten.
func (f *finder) carveRest() {
	r := rest{found: map[uint64]*node{}, loose: map[link]bool{}}
	f.scan(func(n node) {
		if n.owner == f.o.Addr && f.nodes[n.addr] == nil && len(r.found) < MaxBlocks && f.decodes(n.addr) {
			r.found[n.addr] = &n
		}
	})
	if len(r.found) == 0 {
		return
	}
	r.addrs = slices.Sorted(maps.Keys(r.found))
	f.pointing = make(map[link]bool, 2*len(f.nodes))
	for _, n := range f.nodes {
		f.points(n)
	}
	defer func() { f.pointing = nil }()
	r.beside = make(map[uint64][]uint64, 2*len(r.found))
	for _, addr := range r.addrs {
		for _, at := range []uint64{r.found[addr].prev, r.found[addr].next} {
			if at != 0 {
				r.beside[at] = append(r.beside[at], addr)
			}
		}
	}
	agreed := func(n *node) bool {
		return f.agrees(n, r.found, r.loose, true) || f.agrees(n, r.found, r.loose, false)
	}
	for todo := r.addrs; len(todo) > 0 && !f.full; {
		if todo = f.accept(&r, todo, agreed); len(todo) == 0 {
			todo = f.accept(&r, r.addrs, f.uncontradicted)
		}
	}
	if left := len(r.addrs) - f.countNodes(r.addrs); left > 0 && !f.full {
		f.h.notes.add("%d places look like blocks of the list at %#x, but no other block points to them: not accepted", left, f.o.Addr)
	}
}

// accept accepts those of todo that are blocks, and returns those that stand beside a link that
// broke meanwhile: they may be, too.
func (f *finder) accept(r *rest, todo []uint64, is func(*node) bool) (next []uint64) {
	for ; r.seen < len(f.broken); r.seen++ {
		r.loose[link{f.broken[r.seen].from, 0, f.broken[r.seen].back}] = true
	}
	for _, addr := range todo {
		if n := r.found[addr]; f.nodes[addr] == nil && !f.full && is(n) {
			f.believe(*n)
			f.walk()
		}
	}
	for _, l := range f.broken[r.seen:] {
		next = append(append(next, r.beside[l.from]...), r.beside[l.to]...)
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// countNodes counts those of addrs that are nodes.
func (f *finder) countNodes(addrs []uint64) (n int) {
	for _, addr := range addrs {
		if f.nodes[addr] != nil {
			n++
		}
	}
	return n
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
